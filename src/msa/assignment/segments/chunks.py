"""Chunks for segments: room now, and if possible until later uses."""

from __future__ import annotations

from bisect import bisect_left

from msa.assignment.allocation import AliasedOffset, Allocation
from msa.assignment.request import AllocationRequest
from msa.assignment.state import State


def live_allocation(sequence: list[Allocation], step: int) -> Allocation | None:
    """The last allocation of the sequence that covers the step."""
    for allocation in reversed(sequence):
        if allocation.start <= step <= allocation.end and allocation.kind != "window":
            return allocation
    return None


def find_best_offset(
    state: State,
    request: AllocationRequest,
    preferred: AliasedOffset | None,
    start: int,
) -> int | None:
    """An offset free from `start` to the request's end, or None.

    A preferred offset is taken or nothing. Otherwise the offset stays free until as
    late a use as the value may stay for: serving one use must not cost the next.
    """
    space, size = state.space, request.size
    if preferred is not None:
        wanted = preferred.offset
        return wanted if space.fits_at(start, request.end, size, wanted) else None
    times = request.all_use_times
    first = bisect_left(times, request.end)
    last = first
    may_stay = state.picker.can_allocate_no_copy
    value_size = request.target.value.size
    while last + 1 < len(times) and may_stay(value_size, times[last], times[last + 1]):
        last += 1
    found = None
    count = last + 1 - first
    while count > 0:
        half = count // 2
        offset = space.find(start, times[first + half], size)
        if offset is not None:
            found = offset
            first += half + 1
            count -= half + 1
        else:
            count = half
    return found
