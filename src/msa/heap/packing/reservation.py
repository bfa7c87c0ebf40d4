"""Ranges of addresses that no buffer may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msa.errors import PackingError, shown
from msa.heap.whole_number import SIZE_LIMIT, TIME_LIMIT, read_whole

#: Addresses `[low, high)` in the times `[start, end)`: start, end, low, high.
Rectangle = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Addresses `[offset, offset + size)` that nothing may use in `[start, end)`.

    With `start` None it holds from the beginning, with `end` None to the end. A
    reservation takes space like a pinned buffer but is no part of a plan's height.
    Reservations may overlap each other.

    >>> Reservation(0, 4096).end is None
    True
    """

    offset: int
    size: int
    start: int | None = None
    end: int | None = None


def read_reservations(rows: Any) -> tuple[Reservation, ...]:
    """Checked reservations from `Reservation`s and `(offset, size[, start, end])`.

    Raises:
        PackingError: a row cannot be read or is out of range.

    >>> read_reservations([(0, 64), (64, 8, 2, 5)])[1].end
    5
    """
    try:
        listed = list(rows)
    except TypeError:
        raise PackingError(
            f"cannot read {shown(rows)} as reservations",
            hint="a list of (offset, size)",
        ) from None
    return tuple(_read(row, f"reservation {n}") for n, row in enumerate(listed))


def _read(row: Any, where: str) -> Reservation:
    if isinstance(row, Reservation):
        fields: Sequence[Any] = (row.offset, row.size, row.start, row.end)
    elif isinstance(row, (tuple, list)) and len(row) in (2, 4):
        fields = (*row, None, None)[:4]
    else:
        raise PackingError(
            f"cannot read {shown(row)} as a reservation",
            where=where,
            hint="(offset, size) or (offset, size, start, end)",
        )
    offset, size = (
        read_whole(
            value, what, at_least=0, below=SIZE_LIMIT, error=PackingError, where=where
        )
        for value, what in zip(fields, ("offset", "size"), strict=False)
    )
    start, end = (
        None
        if value is None
        else read_whole(
            value,
            what,
            at_least=1 - TIME_LIMIT,
            below=TIME_LIMIT,
            error=PackingError,
            where=where,
        )
        for value, what in zip(fields[2:], ("start", "end"), strict=True)
    )
    if start is not None and end is not None and end < start:
        raise PackingError(f"end {end} is before start {start}", where=where)
    return Reservation(offset, size, start, end)


def disjoint_rectangles(
    holds: Sequence[Reservation], first: int, last: int
) -> list[Rectangle]:
    """What the reservations cover in the times `[first, last)`, as disjoint parts.

    A sweep over time: at each time at which something begins or ends, the live ranges
    are merged; a merged range goes on while it does not change. O(times * live log
    live), which is O(r log r) for r reservations of the whole time.

    >>> disjoint_rectangles([Reservation(0, 8), Reservation(4, 8, 1, 2)], 0, 3)
    [(0, 1, 0, 8), (1, 2, 0, 12), (2, 3, 0, 8)]
    """
    rows = []
    for hold in holds:
        start = first if hold.start is None else max(hold.start, first)
        end = last if hold.end is None else min(hold.end, last)
        if start < end and hold.size:
            rows.append((start, end, hold.offset, hold.offset + hold.size))
    rows.sort()
    times = sorted({time for row in rows for time in row[:2]})
    done: list[Rectangle] = []
    open_at: dict[tuple[int, int], int] = {}
    live: list[Rectangle] = []
    following = 0
    for time in times:
        live = [row for row in live if row[1] > time]
        while following < len(rows) and rows[following][0] == time:
            live.append(rows[following])
            following += 1
        merged = _merged(sorted((low, high) for _, _, low, high in live))
        closed = [span for span in open_at if span not in merged]
        done.extend((open_at.pop(span), time, *span) for span in closed)
        for span in merged:
            open_at.setdefault(span, time)
    return sorted(done)


def _merged(spans: list[tuple[int, int]]) -> dict[tuple[int, int], None]:
    """Spans sorted by their low end, with those that touch or overlap joined."""
    merged: list[tuple[int, int]] = []
    for low, high in spans:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return dict.fromkeys(merged)
