"""Staying in alternate memory, or being defined there."""

from __future__ import annotations

from msa.assignment.allocation import MemorySpace, PinnedAllocation
from msa.assignment.outcomes import (
    CONFLICTING_PREFERRED_OFFSETS,
    LIVE_RANGE_TOO_LONG,
    OUT_OF_MEMORY,
    PREVIOUS_NOT_IN_ALTERNATE,
    SUCCESS,
)
from msa.assignment.request import AllocationRequest
from msa.assignment.segments.chunks import find_best_offset
from msa.assignment.state import State
from msa.heap.chunk import Chunk


def allocate_without_copy(state: State, request: AllocationRequest) -> int:
    """Serve the use from alternate memory without moving the value."""
    source = request.source
    previous = source.sequence[-1] if source.sequence else None
    if previous is None:
        possible = source.value.definable
    else:
        possible = previous.is_alternate and previous.kind != "window"
    if not possible:
        return PREVIOUS_NOT_IN_ALTERNATE
    if not (
        request.require_no_copy
        or request.prefer_no_copy
        or _is_coloured_throughout(request)
        or state.picker.can_allocate_no_copy(
            source.value.size, request.start, request.end
        )
    ):
        return LIVE_RANGE_TOO_LONG

    start = request.start
    offset = None
    if previous is not None:
        offset = previous.aliased_offset
        start = previous.end + 1
    if request.no_copy_start is not None:
        start = request.no_copy_start
    wanted = request.preferred_offset
    if wanted is not None:
        if offset is not None and offset is not wanted:
            return CONFLICTING_PREFERRED_OFFSETS
        offset = wanted

    if start > request.end and request.no_copy_start is not None:
        assert offset is not None  # of the aliases that hold all of it
        chunk = Chunk(offset.offset, request.size)
    else:
        address = find_best_offset(state, request, offset, start)
        if address is None:
            return OUT_OF_MEMORY
        chunk = state.hold(start, request.end, address, request.size)
    if previous is not None and (
        previous.is_copy_like or previous.position == source.position
    ):
        previous.extend(request.end)
    else:
        previous = PinnedAllocation(
            value=source.value.id,
            position=source.position,
            space=MemorySpace.ALTERNATE,
            chunk=chunk,
            start=request.start,
            end=request.end,
        )
        source.sequence.append(previous)
        state.share_offset(previous, offset)
    if not request.only_extend:
        previous.uses.append(request.use.use)
    return SUCCESS


def _is_coloured_throughout(request: AllocationRequest) -> bool:
    """Whether a chunk in one piece has to span the segment; its room was kept."""
    return (
        request.source.contiguous
        and request.start_in_alternate
        and request.end_in_alternate
    )
