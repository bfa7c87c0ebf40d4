"""Where an allocation, or a whole program, is fullest.

Source: `xla/service/buffer_assignment.cc` (ComputePeakMemoryLogicalBuffers,
ComputePeakMemory), `xla/service/hlo.proto` (HeapSimulatorTrace).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msa.analysis.buffer_assignment.sharing import merge_pieces
from msa.errors import FileFormatError

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment.allocation import BufferAllocation
    from msa.analysis.live_ranges import LiveRanges


def allocation_load(
    allocation: BufferAllocation, live: LiveRanges, steps: int
) -> NDArray[np.int64]:
    """Bytes of an allocation that hold needed values, at each step.

    Values at one offset count once. O(values log values + steps).
    """
    spans: dict[int, list[tuple[int, int, int]]] = {}
    value_of = live.alias.dataflow.value
    for number, (offset, size) in allocation.assigned.items():
        bound = live.range_of(value_of(number))
        if bound is not None and size:
            row = (bound.start, bound.end + 1, size)
            spans.setdefault(offset, []).append(row)
    change = np.zeros(steps + 1, dtype=np.int64)
    for rows in spans.values():
        sizes = {size for _, _, size in rows}
        if len(sizes) == 1:
            size = sizes.pop()
            for start, end in merge_pieces([row[:2] for row in rows]):
                change[start] += size
                change[end] -= size
        else:
            for start, end, size in _profile(rows):
                change[start] += size
                change[end] -= size
    load: NDArray[np.int64] = np.cumsum(change)[:steps]
    return load


def _profile(
    rows: Sequence[tuple[int, int, int]],
) -> Iterable[tuple[int, int, int]]:
    """Disjoint pieces with the largest size alive in each."""
    times = sorted({t for start, end, _ in rows for t in (start, end)})
    ordered = sorted(rows)
    alive: list[tuple[int, int]] = []
    i = 0
    for start, end in pairwise(times):
        while i < len(ordered) and ordered[i][0] <= start:
            alive.append((ordered[i][1], ordered[i][2]))
            i += 1
        alive = [row for row in alive if row[0] > start]
        if alive:
            yield start, end, max(size for _, size in alive)


def values_at(
    allocation: BufferAllocation, live: LiveRanges, step: int
) -> tuple[int, ...]:
    """Ids of the values that hold bytes at a step, one per offset, sorted.

    Of values that share an offset at that step, the one that starts last counts.
    """
    found: dict[int, tuple[int, int]] = {}
    value_of = live.alias.dataflow.value
    for number, (offset, size) in allocation.assigned.items():
        bound = live.range_of(value_of(number))
        if bound is None or not size or not bound.start <= step <= bound.end:
            continue
        row = (bound.start, number)
        if offset not in found or found[offset] < row:
            found[offset] = row
    return tuple(sorted(number for _, number in found.values()))


# -- traces ------------------------------------------------------------------------


class EventKind(StrEnum):
    """What a heap trace records."""

    ALLOC = "alloc"
    FREE = "free"
    SHARE_WITH = "share_with"


class TraceEvent(NamedTuple):
    """One event: `canonical` is the buffer whose bytes `SHARE_WITH` joins."""

    kind: EventKind
    buffer: int
    canonical: int = -1


def peak_memory(
    static_bytes: int, trace: Iterable[TraceEvent], sizes: Mapping[int, int]
) -> int:
    """The most bytes in use at a moment of a trace, on top of static storage.

    A buffer that shares counts with the root of what it shares with, once; the
    bytes are returned when the last sharer is freed. Linear.

    Raises:
        FileFormatError: the trace frees or shares a buffer that is not in use.

    >>> A, S, F = EventKind.ALLOC, EventKind.SHARE_WITH, EventKind.FREE
    >>> peak_memory(0, [TraceEvent(A, 1), TraceEvent(S, 2, 1), TraceEvent(F, 1),
    ...                 TraceEvent(A, 3), TraceEvent(F, 2)], {1: 10, 2: 10, 3: 4})
    14
    """
    root: dict[int, int] = {}
    holders: dict[int, int] = {}
    now = peak = 0
    for event in trace:
        buffer = event.buffer
        if event.kind is EventKind.ALLOC:
            root[buffer] = buffer
            holders[buffer] = 1
            now += sizes[buffer]
        elif event.kind is EventKind.SHARE_WITH:
            target = root.get(event.canonical)
            if target is None:
                raise FileFormatError(
                    f"buffer {buffer} shares with {event.canonical}, which is unknown"
                )
            root[buffer] = target
            if not holders[target]:
                now += sizes[target]
            holders[target] += 1
        else:
            target = root.get(buffer)
            if target is None or not holders[target]:
                raise FileFormatError(f"buffer {buffer} is freed but not in use")
            holders[target] -= 1
            if not holders[target]:
                now -= sizes[target]
        peak = max(peak, now)
    return static_bytes + peak
