"""An independent checker of plans: shares no code with the packers.

It works on the buffers as the user wrote them, in one sweep over time with a
sorted list of the live address ranges.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from msa.errors import PlanError, shown
from msa.heap.whole_number import WORD_LIMIT

if TYPE_CHECKING:
    from msa.heap.packing.buffer import Buffer
    from msa.heap.packing.plan import HeapPlan
    from msa.heap.packing.reservation import Reservation

#: A live range: offset, end, number of the owner (a group or a buffer alone).
_Live = tuple[int, int, int, str]


def verify_plan(plan: HeapPlan) -> None:
    """Raise `PlanError` at the first claim of the plan that is wrong."""
    buffers, offsets = plan.buffers, plan.offsets
    if len(buffers) != len(offsets):
        raise PlanError(f"{len(offsets)} offsets for {len(buffers)} buffers")
    for name in ("height", "lower_bound"):
        if not isinstance(getattr(plan, name), int):
            raise PlanError(f"{name} is no whole number: {shown(getattr(plan, name))}")
    height = 0
    for buffer, offset in zip(buffers, offsets, strict=True):
        _verify_offset(buffer, offset, plan.alignment)
        if buffer.size and buffer.pieces():
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
    if not isinstance(offset, int):
        raise PlanError(f"offset is no whole number: {shown(offset)}", where=where)
    if not 0 <= offset < WORD_LIMIT:
        raise PlanError(f"offset {shown(offset)} is out of range", where=where)
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

    Nor may one share an address with a live reservation; reservations may overlap
    each other. O(p log p) for p lifetime pieces: at any time the live ranges, sorted
    by offset, are disjoint, so a new one needs to be compared with its neighbours
    only. Reservations of different times cost O(p) each.
    """
    owners: dict[Any, int] = {}
    pieces: list[tuple[int, int, _Live]] = []
    for number, (buffer, offset) in enumerate(zip(buffers, offsets, strict=True)):
        if not buffer.size:
            continue
        owner = number
        if buffer.group is not None:
            owner = owners.setdefault(buffer.group, number)
        live = (offset, offset + buffer.size, owner, f"buffer {buffer.id!r}")
        pieces += [(start, end, live) for start, end in buffer.pieces()]
    events = [(start, 1, live) for start, _, live in pieces]
    events += [(end, 0, live) for _, end, live in pieces]
    # Ends (0) sort before starts (1) of the same time: lifetimes are half-open.
    events.sort()
    at_once: SortedList = SortedList()
    for time, is_start, live in events:
        if is_start:
            _verify_neighbours(at_once, live, time)
            at_once.add(live)
        else:
            at_once.remove(live)
    _verify_reservations(pieces, reserved)


def _verify_reservations(
    pieces: list[tuple[int, int, _Live]], reserved: Sequence[Reservation]
) -> None:
    """Compare every piece with the reservations, those of equal times together."""
    by_time: dict[tuple[int | None, int | None], list[tuple[int, int, int]]] = {}
    for number, hold in enumerate(reserved):
        never = None not in (hold.start, hold.end) and hold.start == hold.end
        if hold.size and not never:
            spans = by_time.setdefault((hold.start, hold.end), [])
            spans.append((hold.offset, hold.offset + hold.size, number))
    for (first, last), spans in by_time.items():
        spans.sort()
        # Up to each span, the one that reaches highest.
        highest, top = [], spans[0]
        for span in spans:
            top = max(top, span, key=lambda each: each[1])
            highest.append(top)
        for start, end, (offset, stop, _, name) in pieces:
            if (last is not None and start >= last) or (
                first is not None and end <= first
            ):
                continue
            # Among those that begin below the end of the piece.
            index = bisect_left(spans, (stop, 0, 0)) - 1
            if index >= 0 and highest[index][1] > offset:
                low, high, number = highest[index]
                raise PlanError(
                    f"[{offset}, {stop}) overlaps reservation {number} at "
                    f"[{low}, {high})",
                    where=f"time {start if first is None else max(start, first)}, "
                    f"{name}",
                )


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
