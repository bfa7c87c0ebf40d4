"""Demand of bandwidth over time against what there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msa.errors import OptionsError
from msa.runtime.perf.events import EventType, ProfilerSim


@dataclass(frozen=True, slots=True)
class Demand:
    """Something that wants bandwidth: seconds, and bytes/s of memory.

    >>> Demand("copy", 0.0, 1.0, 1e9).bandwidth
    1000000000.0
    """

    name: str
    start: float
    end: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of constant demand.

    Attributes:
        start, end: seconds.
        demand: bytes/s in all.
        slowdown: demand / capacity, at least 1.
        running: names, sorted.
    """

    start: float
    end: float
    demand: float
    slowdown: float
    running: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContentionReport:
    """Where memory is asked for more than it has.

    Attributes:
        capacity: bytes/s.
        intervals: in time order, without gaps of no demand.
        stall_seconds: how much longer everything takes if all is slowed alike.
        peak_demand: bytes/s.
    """

    capacity: float
    intervals: tuple[Interval, ...]
    stall_seconds: float
    peak_demand: float

    @property
    def oversubscribed(self) -> tuple[Interval, ...]:
        """Intervals whose demand is over the capacity."""
        return tuple(i for i in self.intervals if i.slowdown > 1.0)


def concurrency_report(timeline: Iterable[Demand], capacity: float) -> ContentionReport:
    """Sum the demands that run at the same time.

    Args:
        timeline: kernels and copies; half-open in time, empty ones do not count.
        capacity: bytes/s of the memory.

    Raises:
        OptionsError: the capacity is not positive, or something ends before it starts.

    O(n log n) plus the names that run in each interval.

    >>> report = concurrency_report(
    ...     [Demand("kernel", 0.0, 2.0, 80.0), Demand("copy", 1.0, 3.0, 40.0)], 100.0)
    >>> [(i.start, i.end, i.demand, i.slowdown) for i in report.intervals]
    [(0.0, 1.0, 80.0, 1.0), (1.0, 2.0, 120.0, 1.2), (2.0, 3.0, 40.0, 1.0)]
    >>> round(report.stall_seconds, 9)
    0.2
    """
    if not capacity > 0:
        raise OptionsError(f"a capacity is positive, not {capacity}")
    events: list[tuple[float, int, int]] = []
    demands = list(timeline)
    for number, demand in enumerate(demands):
        if demand.end < demand.start:
            raise OptionsError(f"{demand.name} ends before it starts")
        if demand.end > demand.start:
            events.append((demand.start, 1, number))
            events.append((demand.end, 0, number))
    events.sort()
    running: dict[int, None] = {}
    found: list[Interval] = []
    stall = peak = 0.0
    before = 0.0
    for time, begins, number in events:
        if running and time > before:
            total = sum(demands[i].bandwidth for i in running)
            slowdown = max(1.0, total / capacity)
            names = tuple(sorted(demands[i].name for i in running))
            found.append(Interval(before, time, total, slowdown, names))
            stall += (slowdown - 1.0) * (time - before)
            peak = max(peak, total)
        before = time
        if begins:
            running[number] = None
        else:
            del running[number]
    return ContentionReport(capacity, tuple(found), stall, peak)


def demands(profiler: ProfilerSim, device: int = 0) -> list[Demand]:
    """What the kernels and copies of a device want of its memory, spread evenly.

    >>> from msa.runtime.perf.device import DeviceDescription
    >>> profiler = ProfilerSim([DeviceDescription.preset("a100_40")])
    >>> profiler.kernel("k", 0.0, 2.0, bytes_read=100)
    >>> demands(profiler)[0].bandwidth
    50.0
    """
    return [
        Demand(
            event.name,
            event.start,
            event.end,
            (event.bytes_read + event.bytes_written) / event.seconds,
        )
        for event in profiler.of_type(
            EventType.KERNEL, EventType.COPY, EventType.MEMSET
        )
        if event.device == device and event.seconds > 0
    ]
