"""Leaving alternate memory: the copy to default memory that frees the room."""

from __future__ import annotations

from msa.assignment.allocation import Allocation, CopyAllocation, MemorySpace
from msa.assignment.outcomes import OUT_OF_ASYNC_COPIES, SUCCESS
from msa.assignment.request import AllocationRequest
from msa.assignment.state import State
from msa.errors import InternalError


def evict(state: State, request: AllocationRequest, *, force: bool) -> int:
    """Copy the value of the last allocation to default memory.

    The copy starts as soon as the value exists and may take until the picker's
    preferred end, if the chunk is free that long. With `force`, a copy right after
    the last allocation is made whatever the bandwidth says.
    """
    source = request.source
    last = source.sequence[-1]
    if last.is_copy_like:
        raise InternalError("an allocation that was copied in needs no eviction")
    start_after = last.start
    end = _latest_end(state, request, last)
    resource = state.copy_seconds(source.value.size)
    lane = state.evictions
    enough = lane.bandwidth.has_enough(start_after, end, resource)
    if not enough and state.picker.retry_number == state.options.max_retries - 1:
        # The last attempt: better a late copy than none.
        resource, enough = 0.0, True
    # XLA counts the new eviction twice, so that one fewer may overlap than allowed.
    additional = 1 if state.options.faithful else 0
    crowded = lane.violates_limit(start_after + 1, end, additional=additional)
    if start_after != end and enough and not crowded:
        if end > last.end:
            assert last.aliased_offset is not None
            state.hold(
                last.end + 1, end, last.aliased_offset.offset, request.source.size
            )
        last.extend(end)
        _append(state, request, last, start_after, last.end, end, resource)
        return SUCCESS
    if force:
        at = last.end
        _append(state, request, last, at, request.end, at + 1, 0.0)
        return SUCCESS
    return OUT_OF_ASYNC_COPIES


def _append(
    state: State,
    request: AllocationRequest,
    last: Allocation,
    start_after: int,
    end: int,
    done_before: int,
    resource: float,
) -> None:
    copy = CopyAllocation(
        value=request.source.value.id,
        position=last.position,
        space=MemorySpace.DEFAULT,
        chunk=None,
        start=start_after + 1,
        end=end,
        source=last,
        start_after=start_after,
        done_before=done_before,
        resource=resource,
    )
    state.add_copy(copy)
    request.source.sequence.append(copy)


def _latest_end(state: State, request: AllocationRequest, last: Allocation) -> int:
    """The step before which the copy has to land: as late as wished and possible."""
    source = request.source
    earliest = last.end
    preferred = state.picker.preferred_eviction_end(
        source.value.size, last.start, request.end
    )
    preferred = min(max(preferred, earliest), request.latest_prefetch)
    size = max(source.size, request.size)
    assert last.aliased_offset is not None
    offset = last.aliased_offset.offset
    end = preferred
    while end > earliest:
        latest = state.space.latest_end_at(earliest + 1, end, size, offset)
        if latest <= earliest:
            return earliest
        if latest == preferred or latest in state.edges:
            return latest
        # Only ends of finished allocations are tried below the preferred one.
        below = state.edges.below(latest)
        end = earliest if below is None else below
    return earliest if end < earliest else end
