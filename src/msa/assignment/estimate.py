"""What a result would take to run, without lowering it.

The problem's steps run one after another on the simulated machine of
`msa.analysis.simulation`, with accesses where the allocations put them and their
copies in flight: the figure that `msa.simulate` gives for the lowered module, at a
fraction of the cost. Searches compare candidates by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from msa.analysis.simulation.engine import (
    DONE,
    ENTER,
    LEAVE,
    RUN,
    START,
    Event,
    Run,
    run,
)
from msa.analysis.simulation.machine import TO_ALTERNATE, TO_DEFAULT
from msa.assignment.allocation import Allocation, CopyAllocation, SlicedCopyAllocation
from msa.assignment.problem import Problem

#: Instructions whose traffic is that of the regions that they run.
_NEVER_FAST = frozenset({"call", "conditional", "while"})
#: Instructions that take no time themselves.
FREE = frozenset(
    {
        "all-gather-done",
        "all-gather-start",
        "all-reduce-done",
        "all-reduce-start",
        "async-done",
        "async-start",
        "collective-permute-done",
        "collective-permute-start",
        "copy-done",
        "copy-start",
        "while",
    }
)


class Loop(NamedTuple):
    """A loop whose parts lie right before it: steps `start` up to `step`, exclusive."""

    start: int
    step: int
    trips: float


def loops_of(problem: Problem) -> list[Loop]:
    """The loops that run their steps several times, by step of the `while`."""
    found = []
    for step, called in sorted(problem.called.items()):
        if problem.opcodes[step] != "while":
            continue
        regions = [problem.regions[number] for number in called]
        first, last = sorted(regions, key=lambda r: r.start)
        if first.end == last.start and last.end == step:
            trips = max(region.trip_count for region in regions)
            found.append(Loop(first.start, step, trips))
    return found


class Estimator:
    """Times results of one problem.

    Everything that does not depend on the result is prepared once; `seconds` is
    linear in steps and allocations.
    """

    __slots__ = (
        "_bytes",
        "_compute",
        "_copy_rate",
        "_enters",
        "_loops",
        "_problem",
        "_total",
    )

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        machine = problem.machine
        self._compute = np.asarray(problem.compute_seconds, np.float64)
        self._total = np.maximum(np.asarray(problem.total_bytes, np.float64), 0.0)
        self._copy_rate = machine.default_bandwidth * machine.copy_scaling
        loops = loops_of(problem)
        self._loops = {loop.step for loop in loops}
        self._enters: dict[int, list[Loop]] = {}
        for loop in reversed(loops):  # the outer loop is the later instruction
            self._enters.setdefault(loop.start, []).append(loop)
        self._bytes = bytes_of_places(problem)

    def seconds(self, allocations: Iterable[Allocation]) -> float:
        """Seconds of one run of the program with these allocations."""
        return self.run(allocations).seconds

    def run(self, allocations: Iterable[Allocation]) -> Run:
        """The simulated run: seconds, stalls and where they happen."""
        placed = list(allocations)
        seconds, idle = self._step_seconds(placed)
        events = self._events(placed, seconds.tolist(), idle.tolist())
        return run(events, self._problem.end + 1, self._copy_rate)

    def _step_seconds(
        self, allocations: Sequence[Allocation]
    ) -> tuple[np.ndarray, np.ndarray]:
        machine = self._problem.machine
        read = np.zeros(len(self._total))
        written = np.zeros(len(self._total))
        sizes = self._bytes
        for allocation in allocations:
            if not allocation.is_alternate or allocation.kind in ("scoped", "window"):
                continue
            for use in allocation.uses:
                read[use.step] += sizes.get(use, 0.0)
            if not allocation.is_copy_like:
                written[allocation.position.step] += sizes.get(allocation.position, 0.0)
        slow = np.maximum(self._total - read - written, 0.0) / machine.default_bandwidth
        memory = (
            read / machine.alternate_read_bandwidth
            + written / machine.alternate_write_bandwidth
            + slow
        )
        seconds = np.maximum(self._compute, memory)
        return seconds, seconds - slow

    def _events(
        self,
        allocations: Sequence[Allocation],
        seconds: list[float],
        idle: list[float],
    ) -> list[Event]:
        problem = self._problem
        starts, dones = _copies(problem, allocations)
        events: list[Event] = []
        for step in range(-1, problem.end):
            if step >= 0:
                events += (
                    Event(ENTER, step, amount=loop.trips)
                    for loop in self._enters.get(step, ())
                )
                opcode = problem.opcodes[step]
                if opcode not in FREE:
                    events.append(Event(RUN, step, seconds[step], idle[step]))
                if step in self._loops:
                    events.append(Event(LEAVE, step))
            events += dones.get(step + 1, ())
            events += starts.get(step, ())
        return events


def bytes_of_places(problem: Problem) -> dict[object, float]:
    """Bytes moved per use and per position, by the instruction there."""
    sizes: dict[object, float] = {}
    fast = [opcode not in _NEVER_FAST for opcode in problem.opcodes]
    for value in problem.values:
        sizes.update(
            (use, size)
            for use, size in zip(value.uses, value.use_bytes, strict=False)
            if size > 0 and fast[use.step]
        )
        sizes.update(
            (place, size)
            for place, size in zip(value.positions, value.position_bytes, strict=False)
            if size > 0 and fast[place.step]
        )
    return sizes


def _copies(
    problem: Problem, allocations: Sequence[Allocation]
) -> tuple[dict[int, list[Event]], dict[int, list[Event]]]:
    """Start and end events per step after and before which they happen."""
    rows: list[tuple[int, int, int, float]] = []
    for allocation in allocations:
        direction = TO_ALTERNATE if allocation.is_alternate else TO_DEFAULT
        if isinstance(allocation, CopyAllocation):
            size = float(problem.values[allocation.value].size)
            rows.append(
                (allocation.done_before, allocation.start_after, direction, size)
            )
        elif isinstance(allocation, SlicedCopyAllocation):
            rows += [
                (allocation.done_before, s.start_after, direction, float(s.chunk.size))
                for s in allocation.slices
            ]
    # Evictions are scheduled before prefetches, each by (end, start).
    rows.sort(key=lambda row: (-row[2], row[0], row[1]))
    starts: dict[int, list[Event]] = {}
    dones: dict[int, list[Event]] = {}
    for number, (done, start, direction, size) in enumerate(rows):
        # Between two steps, ends come before starts; but an end needs its start.
        where = (
            dones.setdefault(done, [])
            if start + 1 == done
            else starts.setdefault(start, [])
        )
        where.append(
            Event(START, max(start, 0), amount=size, copy=number, direction=direction)
        )
        dones.setdefault(done, []).append(
            Event(DONE, done, copy=number, direction=direction)
        )
    return starts, dones
