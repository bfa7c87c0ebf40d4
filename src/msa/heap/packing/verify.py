"""An independent checker of plans: shares no code with the packers.

It works on the buffers as the user wrote them, in one sweep over time with a
sorted list of the live address ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from msa.errors import PlanError

if TYPE_CHECKING:
    from msa.heap.packing.buffer import Buffer
    from msa.heap.packing.instance import Reservation
    from msa.heap.packing.plan import HeapPlan

#: A live range: offset, end, number of the owner (a group or a buffer alone).
_Live = tuple[int, int, int, str]


def verify_plan(plan: HeapPlan) -> None:
    """Raise `PlanError` at the first claim of the plan that is wrong."""
    buffers, offsets = plan.buffers, plan.offsets
    if len(buffers) != len(offsets):
        raise PlanError(f"{len(offsets)} offsets for {len(buffers)} buffers")
    height = 0
    for buffer, offset in zip(buffers, offsets, strict=True):
        _verify_offset(buffer, offset, plan.alignment)
        if buffer.size and buffer.start < buffer.end:
            height = max(height, offset + buffer.size)
    if height != plan.height:
        raise PlanError(f"the height is {height}, the plan says {plan.height}")
    if plan.capacity is not None and height > plan.capacity:
        raise PlanError(f"height {height} is over the capacity {plan.capacity}")
    if not 0 <= plan.lower_bound <= height:
        raise PlanError(f"lower bound {plan.lower_bound} is not within 0..{height}")
    if plan.optimal != (plan.lower_bound == height):
        raise PlanError(
            f"optimal is {plan.optimal}, lower bound {plan.lower_bound}, height {height}"
        )
    _verify_groups(buffers, offsets)
    verify_disjoint(buffers, offsets, plan.reserved)


def _verify_offset(buffer: Buffer, offset: int, alignment: int) -> None:
    where = f"buffer {buffer.id!r}"
    if offset < 0:
        raise PlanError(f"offset {offset} is negative", where=where)
    if buffer.offset is not None and offset != buffer.offset:
        raise PlanError(f"lies at {offset}, pinned at {buffer.offset}", where=where)
    multiple = buffer.alignment or alignment
    if buffer.offset is None and offset % multiple:
        raise PlanError(f"offset {offset} is not a multiple of {multiple}", where=where)


def _verify_groups(buffers: Sequence[Buffer], offsets: Sequence[int]) -> None:
    where_is: dict[Any, int] = {}
    for buffer, offset in zip(buffers, offsets, strict=True):
        if buffer.group is None:
            continue
        expected = where_is.setdefault(buffer.group, offset)
        if expected != offset:
            raise PlanError(
                f"group {buffer.group!r} lies at {expected} and at {offset}",
                where=f"buffer {buffer.id!r}",
            )


def verify_disjoint(
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    reserved: Sequence[Reservation] = (),
) -> None:
    """Raise `PlanError` if two live buffers of different groups share an address.

    O(p log p) for p lifetime pieces: at any time the live ranges, sorted by offset,
    are disjoint, so a new one needs to be compared with its neighbours only.
    """
    owners: dict[Any, int] = {}
    events: list[tuple[int, int, _Live]] = []
    for number, (buffer, offset) in enumerate(zip(buffers, offsets, strict=True)):
        if not buffer.size:
            continue
        owner = number
        if buffer.group is not None:
            owner = owners.setdefault(buffer.group, number)
        live = (offset, offset + buffer.size, owner, f"buffer {buffer.id!r}")
        for start, end in buffer.pieces():
            events += [(start, 1, live), (end, 0, live)]
    first = min((time for time, _, _ in events), default=0)
    last = max((time for time, _, _ in events), default=0)
    for number, hold in enumerate(reserved):
        start = first if hold.start is None else hold.start
        end = last if hold.end is None else hold.end
        if start < end and hold.size:
            name = f"reservation {number}"
            live = (hold.offset, hold.offset + hold.size, -1 - number, name)
            events += [(start, 1, live), (end, 0, live)]
    # Ends (0) sort before starts (1) of the same time: lifetimes are half-open.
    events.sort()
    at_once: SortedList = SortedList()
    for time, is_start, live in events:
        if is_start:
            _verify_neighbours(at_once, live, time)
            at_once.add(live)
        else:
            at_once.remove(live)


def _verify_neighbours(at_once: SortedList, live: _Live, time: int) -> None:
    offset, end, owner, name = live
    index = at_once.bisect_left(live)
    for step, place in ((-1, index - 1), (1, index)):
        # Aliases of the same group lie at the same offset, next to each other.
        while 0 <= place < len(at_once) and at_once[place][2] == owner:
            place += step
        if not 0 <= place < len(at_once):
            continue
        other_offset, other_end, _, other = at_once[place]
        if other_offset < end and offset < other_end:
            raise PlanError(
                f"[{offset}, {end}) overlaps {other} at [{other_offset}, {other_end})",
                where=f"time {time}, {name}",
            )
