"""Memory in use over time, and the heap trace that gives the same series."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

from msa.analysis.buffer_assignment import (
    BufferAllocation,
    BufferAssignment,
    EventKind,
    TraceEvent,
)
from msa.runtime.diag.loads import step_count, usage_of
from msa.runtime.diag.sizes import human_bytes


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """What holds from a moment on.

    Attributes:
        time: moment of the schedule.
        live: bytes in use; `allocated`: bytes of all allocations.
        events: `alloc name` and `free name`, at that moment.
    """

    time: int
    live: int
    allocated: int
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """Points at which something changes, in order of time.

    Attributes:
        space: memory space, -1 for all.
        end: the last moment.
        points: the first one is at moment 0.
    """

    space: int
    end: int
    points: tuple[TimelinePoint, ...]

    def series(self) -> list[int]:
        """Bytes in use at every moment."""
        found: list[int] = []
        for number, point in enumerate(self.points):
            last = number + 1 == len(self.points)
            until = self.end + 1 if last else self.points[number + 1].time
            found += [point.live] * (until - point.time)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def to_csv(self) -> str:
        """Rows `time,live,allocated,events`."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("time", "live", "allocated", "events"))
        writer.writerows(
            (p.time, p.live, p.allocated, "; ".join(p.events)) for p in self.points
        )
        return out.getvalue()

    def to_text(self, width: int = 72, height: int = 12) -> str:
        """A plot in characters: the highest value of each column."""
        series = self.series()
        top = max(series, default=0)
        if not top:
            return f"space {self.space}: nothing in use"
        width = min(width, len(series))
        columns = []
        for k in range(width):
            first = k * len(series) // width
            last = max(first + 1, (k + 1) * len(series) // width)
            columns.append(max(series[first:last]))
        lines = []
        for row in range(height, 0, -1):
            level = top * (row - 1) / height
            marks = "".join("█" if value > level else " " for value in columns)
            label = human_bytes(top) if row == height else ""
            lines.append(f"{label:>10} │{marks}".rstrip())
        lines.append(f"{'0':>10} └{'─' * width} {self.end}")
        return "\n".join(lines)


def usage_timeline(assignment: BufferAssignment, space: int | None = None) -> Timeline:
    """Bytes in use whenever they change.

    Temporaries count while their bytes are needed, everything else all the time.

    Args:
        assignment: of a scheduled module.
        space: memory space; None for all.

    O(values log values + steps).

    >>> import msa
    >>> from msa.analysis import BufferAssignment
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> usage_timeline(BufferAssignment.run(module)).series()
    [2048, 2048, 2048, 2048]
    """
    chosen = _chosen(assignment, space)
    allocated = sum(a.size for a in chosen)
    usage = usage_of(assignment, space).tolist()
    events: dict[int, list[str]] = {}
    for start, end, name, _ in _pieces(assignment, chosen):
        events.setdefault(start, []).append(f"alloc {name}")
        if end < len(usage):
            events.setdefault(end, []).append(f"free {name}")
    points = []
    before = None
    for time, live in enumerate(usage):
        here = tuple(sorted(events.get(time, ())))
        if live != before or here or not time:
            points.append(TimelinePoint(time, live, allocated, here))
        before = live
    return Timeline(-1 if space is None else space, len(usage) - 1, tuple(points))


def heap_trace(
    assignment: BufferAssignment, space: int | None = None
) -> tuple[int, list[list[TraceEvent]], dict[int, int]]:
    """The temporaries as events of a heap: fixed bytes, events per moment, sizes.

    Buffers are numbered by their first moment; frees come before allocations.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> assignment = BufferAssignment.run(module)
    >>> fixed, moments, sizes = heap_trace(assignment)
    >>> fixed, sizes
    (2048, {})
    """
    chosen = _chosen(assignment, space)
    fixed = sum(a.size for a in chosen if not a.is_temporary)
    moments: list[list[TraceEvent]] = [[] for _ in range(step_count(assignment) + 1)]
    sizes: dict[int, int] = {}
    for number, (start, end, _, size) in enumerate(_pieces(assignment, chosen)):
        sizes[number] = size
        moments[start].append(TraceEvent(EventKind.ALLOC, number))
        moments[min(end, len(moments) - 1)].insert(
            0, TraceEvent(EventKind.FREE, number)
        )
    return fixed, moments, sizes


def _chosen(assignment: BufferAssignment, space: int | None) -> list[BufferAllocation]:
    return [
        a
        for a in assignment.allocations
        if not a.is_thread_local and space in (None, a.color)
    ]


def _pieces(
    assignment: BufferAssignment, allocations: Iterable[BufferAllocation]
) -> list[tuple[int, int, str, int]]:
    """Stays of temporaries: half-open moments, name of the first value, bytes.

    Values at one offset whose lives touch are one stay of their largest size, split
    where that size changes.
    """
    found: list[tuple[int, int, str, int]] = []
    value_of = assignment.alias.dataflow.value
    for allocation in allocations:
        if not allocation.is_temporary:
            continue
        rows: dict[int, list[tuple[int, int, int, str]]] = {}
        for number, (offset, size) in allocation.assigned.items():
            value = value_of(number)
            bound = assignment.live.range_of(value)
            if bound is not None and size:
                row = (bound.start, bound.end + 1, size, str(value.position))
                rows.setdefault(offset, []).append(row)
        for stays in rows.values():
            found += _stays(stays)
    found.sort()
    return found


def _stays(
    rows: Sequence[tuple[int, int, int, str]],
) -> list[tuple[int, int, str, int]]:
    times = sorted({t for start, end, _, _ in rows for t in (start, end)})
    ordered = sorted(rows)
    oldest: list[tuple[int, str, int]] = []  # start, name, end
    largest: list[tuple[int, int]] = []  # -size, end
    pieces: list[tuple[int, int, str, int]] = []
    place = 0
    for start, end in pairwise(times):
        while place < len(ordered) and ordered[place][0] <= start:
            begin, stop, size, name = ordered[place]
            heappush(oldest, (begin, name, stop))
            heappush(largest, (-size, stop))
            place += 1
        while oldest and oldest[0][2] <= start:
            heappop(oldest)
        while largest and largest[0][1] <= start:
            heappop(largest)
        if not largest:
            continue
        size = -largest[0][0]
        if pieces and pieces[-1][1] == start and pieces[-1][3] == size:
            pieces[-1] = (pieces[-1][0], end, pieces[-1][2], size)
        else:
            pieces.append((start, end, oldest[0][1], size))
    return pieces
