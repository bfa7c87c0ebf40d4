"""Buffer intervals: what is allocated, in the order of heap events.

A heap simulator walks over the schedule; at every step values that start there are
allocated (or share the storage of their buffer's first value), then values that end
there are freed. Every event gets a number, and an interval runs from the number of
its allocation to that of its freeing. These numbers, not steps, are what sorting by
duration means.

Reference: `xla/service/heap_simulator/heap_simulator.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass

from msa.assignment.problem import Problem


@dataclass(frozen=True, slots=True)
class MsaBufferInterval:
    """One value as the algorithm is asked to place it.

    Attributes:
        value: its id.
        size: bytes, the largest of its buffer's values.
        start, end: numbers of heap events.
        colocations: values that share its storage (listed at the first one only).
        need_allocation: whether it is the first value of its buffer.
    """

    value: int
    size: int
    start: int
    end: int
    colocations: tuple[int, ...]
    need_allocation: bool


def create_buffer_intervals(problem: Problem) -> list[MsaBufferInterval | None]:
    """The interval of every value, None for empty ones. O(n log n)."""
    values = problem.values
    sizes = [
        max((values[member].size for member in members), default=0)
        for members in problem.buffers
    ]
    order = sorted(
        (v.id for v in values if sizes[v.buffer] > 0),
        key=lambda i: (*values[i].live, i),
    )
    # At one step, allocations come before frees; each in the order just found.
    events = [(values[i].live[0], 0, rank) for rank, i in enumerate(order)]
    events += [(values[i].live[1], 1, rank) for rank, i in enumerate(order)]
    events.sort()
    start = [0] * len(order)
    end = [0] * len(order)
    for clock, (_, is_free, rank) in enumerate(events):
        (end if is_free else start)[rank] = clock
    shared: dict[int, list[int]] = {}
    for i in order:
        shared.setdefault(values[i].buffer, []).append(i)
    intervals: list[MsaBufferInterval | None] = [None] * len(values)
    for rank, i in enumerate(order):
        buffer = values[i].buffer
        first = shared[buffer][0] == i
        intervals[i] = MsaBufferInterval(
            i,
            sizes[buffer],
            start[rank],
            end[rank],
            tuple(shared[buffer][1:]) if first else (),
            first,
        )
    return intervals


def colocated(
    interval: MsaBufferInterval, intervals: list[MsaBufferInterval | None]
) -> list[MsaBufferInterval]:
    """The interval and those that share its storage, by (start, end)."""
    if not interval.colocations:
        return [interval]
    group = [interval]
    for member in interval.colocations:
        other = intervals[member]
        if other is not None:
            group.append(other)
    group.sort(key=lambda x: (x.start, x.end))
    return group
