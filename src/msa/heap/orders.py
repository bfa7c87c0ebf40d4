"""The orders in which best fit places buffers.

Keys ascend; the id of the buffer breaks ties, so that results do not depend on
the order of input. Reference: `xla/service/heap_simulator/heap_simulator.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msa.errors import OptionsError, shown
from msa.heap.buffer_interval import BufferInterval, transitive_colocations

Order = Literal["spatial", "temporal", "fast_merge"]
Key = tuple[int, ...]
#: A custom order: from an interval to a sortable key.
SortKey = Callable[[BufferInterval], Key]


def colocated_span(
    interval: BufferInterval, intervals: Mapping[int, BufferInterval]
) -> tuple[int, int]:
    """Smallest start and largest end over the interval and its colocations."""
    start, end = interval.start, interval.end
    for other in transitive_colocations(interval, intervals):
        start, end = min(start, other.start), max(end, other.end)
    return start, end


def spatial_key(interval: BufferInterval) -> Key:
    """Largest first, then longest, then by id."""
    return (-interval.size, interval.start - interval.end, interval.buffer)


def sort_key(
    order: Order | SortKey, intervals: Mapping[int, BufferInterval]
) -> SortKey:
    """The key function of a named or custom order.

    * `spatial`: largest, then longest first.
    * `temporal`: longest span over colocations first, then largest.
    * `fast_merge`: earliest start over colocations first, then largest.
    """
    if callable(order):
        return order
    if not isinstance(order, str):
        raise OptionsError(f"unknown order {shown(order)}")
    if order == "spatial":
        return spatial_key
    if order == "temporal":

        def temporal(interval: BufferInterval) -> Key:
            start, end = colocated_span(interval, intervals)
            return (start - end, -interval.size, interval.buffer)

        return temporal
    if order == "fast_merge":

        def fast_merge(interval: BufferInterval) -> Key:
            start, _ = colocated_span(interval, intervals)
            return (start, -interval.size, interval.buffer)

        return fast_merge
    raise OptionsError(
        f"unknown order {shown(order)}", hint="spatial, temporal, fast_merge"
    )


def sorted_intervals(
    intervals: Mapping[int, BufferInterval], order: Order | SortKey
) -> list[BufferInterval]:
    """All intervals in placement order, O(n log n)."""
    chosen: Iterable[BufferInterval] = intervals.values()
    return sorted(chosen, key=sort_key(order, intervals))
