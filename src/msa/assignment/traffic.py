"""What the steps of a finished plan take, and which copies use the time they leave."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msa.analysis.simulation.engine import DONE, RUN, START
from msa.analysis.simulation.machine import Machine
from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    SlicedCopyAllocation,
)
from msa.assignment.estimate import Estimator, Flow
from msa.assignment.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Copy = CopyAllocation | SlicedCopyAllocation


class Mover(NamedTuple):
    """A copy, and the seconds of copy bandwidth that it uses in a span of steps."""

    copy: Copy
    seconds: float


class Traffic:
    """Times of one plan, for questions about spans of steps.

    Steps inside of loops count once for each trip that one run of the span makes.

    Args:
        problem: what was planned.
        allocations: the plan.
        kept: steps that are known to be in the planned module.

    Attributes:
        compute, memory: per step, seconds of arithmetic and of traffic.
        bytes: per use and per position, what the instruction there moves.
        rate: bytes per second of copies.
        copies: the copies of the plan.
    """

    __slots__ = (
        "_at",
        "_idle",
        "_left",
        "_loads",
        "_machine",
        "_moved",
        "_owner",
        "_seconds",
        "_trips",
        "bytes",
        "compute",
        "copies",
        "memory",
        "rate",
    )

    def __init__(
        self,
        problem: Problem,
        allocations: Iterable[Allocation],
        kept: Collection[int] = (),
    ) -> None:
        estimator = Estimator(problem, kept)
        flow = Flow.of(estimator, allocations)
        self._machine = problem.machine
        self.rate = estimator.copy_rate
        self.bytes = estimator.bytes
        self._loads = flow.loads()
        self.compute = self._loads.compute
        slow, self.memory = self._loads.memory(problem.machine)
        alive = np.zeros(problem.end, np.bool_)
        alive[estimator.frame.ran] = True
        alive &= self._loads.total >= 0.0
        self._trips = _trips(problem)
        often = np.where(alive, self._trips, 0.0)
        seconds = np.maximum(self.compute, self.memory)
        idle = np.where(alive, seconds - slow, 0.0)
        self.copies = list(dict.fromkeys(flow.copies))
        numbers = {copy: number for number, copy in enumerate(self.copies)}
        owners = np.array([numbers[copy] for copy in flow.copies], np.int64)
        self._moved, self._at, part = _movements(flow, estimator.copy_rate)
        self._owner = owners[part]
        used = np.bincount(self._at, self._moved, minlength=problem.end)
        self._seconds = _sums(seconds * often)
        self._idle = _sums(idle * often)
        self._left = _sums(np.maximum(idle - used, 0.0) * often)

    def trips(self, step: int) -> float:
        """How often a step runs."""
        return float(self._trips[step])

    def is_removed(self, step: int) -> bool:
        """Whether the step is not in the planned module, as nothing reads its result."""
        return bool(self._loads.total[step] < 0.0)

    def gain(self, step: int, read: float, written: float = 0.0) -> float:
        """Seconds that a run saves if these bytes of a step move to fast memory."""
        if self.is_removed(step):
            return 0.0
        machine = self._machine
        moved = read + written
        slow = moved / machine.default_bandwidth
        fast = read / machine.alternate_read_bandwidth
        fast += written / machine.alternate_write_bandwidth
        now = max(self.compute[step], self.memory[step])
        then = max(self.compute[step], self.memory[step] - slow + fast)
        return max(0.0, float(now - then)) * self.trips(step)

    def seconds(self, start: int, end: int) -> float:
        """Seconds of the steps `start` to `end`, inclusive."""
        return self._between(self._seconds, start, end)

    def idle(self, start: int, end: int) -> float:
        """Of these, in which the instructions leave slow memory alone."""
        return self._between(self._idle, start, end)

    def left(self, start: int, end: int) -> float:
        """Of these, in which no copy of the plan moves either."""
        return self._between(self._left, start, end)

    def latest(self, start: int, end: int, seconds: float) -> int:
        """The latest step from which to `end` so much of `left` remains; or `start`.

        It is the step after `end` if no time is asked for.
        """
        goal = self._left[end + 1] - seconds * max(self._trips[end], 1.0)
        found = int(np.searchsorted(self._left, goal, side="right")) - 1
        return max(start, min(found, end + 1))

    def movers(self, start: int, end: int) -> list[Mover]:
        """Copies that move bytes in a span, those that move the most first."""
        rows = np.flatnonzero((self._at >= start) & (self._at <= end))
        seconds = np.bincount(self._owner[rows], self._moved[rows])
        found = [
            Mover(self.copies[number], float(seconds[number]))
            for number in np.unique(self._owner[rows]).tolist()
        ]
        found.sort(key=lambda m: (-m.seconds, m.copy.start, m.copy.value))
        return found

    def _between(self, sums: Floats, start: int, end: int) -> float:
        if end < start:
            return 0.0
        trips = max(min(self.trips(start), self.trips(end)), 1.0)
        return (float(sums[end + 1]) - float(sums[start])) / trips


def _sums(figures: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(figures)))


def _trips(problem: Problem) -> Floats:
    counts = np.array(problem.trip_counts, np.float64)
    trips: Floats = counts[np.array(problem.region_of, np.int64)]
    return trips


def _movements(flow: Flow, rate: float) -> tuple[Floats, Ints, Ints]:
    """Seconds of copy bandwidth, at which step, of which copy.

    Every step runs once. What is moved while something waits for it uses no time that
    the steps leave, and is not listed. O(events · copies in flight).
    """
    machine = Machine(rate)
    rows: list[tuple[float, int, int]] = []
    for kind, step, seconds, idle, amount, copy, direction in flow.events():
        if kind == RUN and machine.flying and idle > 0.0:
            before = machine.in_flight()
            machine.run(seconds, idle)
            left = dict(pair for queue in machine.in_flight() for pair in queue)
            for queue in before:
                for number, size in queue:
                    moved = size - left.get(number, 0.0)
                    if moved <= 0.0:
                        break  # the rest of the queue waits for it
                    rows.append((moved / rate, step, number))
        elif kind == START:
            machine.start(copy, amount, direction)
        elif kind == DONE and copy in machine.flying:
            machine.wait(copy, direction)
    return (
        np.array([moved for moved, _, _ in rows], np.float64),
        np.array([step for _, step, _ in rows], np.int64),
        np.array([number for _, _, number in rows], np.int64),
    )
