"""Bytes that each step moves fast, and what it takes with them."""

from __future__ import annotations

from collections.abc import Iterable, Set

from msa.assignment.allocation import Allocation
from msa.assignment.estimate import FREE, bytes_of_places
from msa.assignment.problem import Problem
from msa.assignment.running import Running


class Accesses:
    """Bytes read and written in alternate memory, per step; `dead` steps take no time."""

    __slots__ = (
        "_bytes",
        "_compute",
        "_counts",
        "_rates",
        "_read",
        "_running",
        "_total",
        "_values",
        "_written",
    )

    def __init__(self, problem: Problem, dead: Set[int] = frozenset()) -> None:
        machine = problem.machine
        self._rates = (
            machine.default_bandwidth,
            machine.alternate_read_bandwidth,
            machine.alternate_write_bandwidth,
        )
        compute, total = problem.simulated
        self._compute, self._total = list(compute), list(total)
        self._bytes = bytes_of_places(problem)
        self._read = [0.0] * problem.end
        self._written = [0.0] * problem.end
        inside = problem.runs_asynchronously  # counted with the operation's start
        self._counts = [
            opcode not in FREE and step not in dead and not inside[region]
            for step, (opcode, region) in enumerate(
                zip(problem.opcodes, problem.region_of, strict=True)
            )
        ]
        self._values = problem.values
        self._running = Running(problem, dead)
        self._run_anew(self._running.steps())

    def _run_anew(self, steps: Iterable[int]) -> None:
        for step in steps:
            self._compute[step], self._total[step] = self._running.costs(step)

    def move(self, allocation: Allocation, share: float) -> list[int]:
        """Count an allocation's accesses `share` times more; the steps that change."""
        return self._move_copy(allocation, share) + self._move(allocation, share)

    def _move_copy(self, allocation: Allocation, share: float) -> list[int]:
        if not self._running.matters or not allocation.is_copy_like:
            return []
        size = float(self._values[allocation.value].size)
        steps = self._running.copy(allocation.position.step, size, share)
        self._run_anew(steps)
        return steps

    def _move(self, allocation: Allocation, share: float) -> list[int]:
        if not allocation.is_alternate or allocation.kind in ("scoped", "window"):
            return []
        steps = []
        for use in allocation.uses:
            size = self._bytes.get(use)
            if size:
                self._read[use.step] += share * size
                steps.append(use.step)
        size = self._bytes.get(allocation.position)
        if size and not allocation.is_copy_like:
            self._written[allocation.position.step] += share * size
            steps.append(allocation.position.step)
        return steps

    def cost(
        self, step: int, read: float = 0.0, written: float = 0.0
    ) -> tuple[float, float]:
        """Seconds of one run, and those of them that leave default memory idle.

        `read` and `written` bytes more are fast.
        """
        if not self._counts[step]:
            return 0.0, 0.0
        default, reading, writing = self._rates
        read += self._read[step]
        written += self._written[step]
        slow = self._total[step] - read - written
        slow = slow / default if slow > 0.0 else 0.0
        memory = read / reading + written / writing + slow
        compute = self._compute[step]
        seconds = memory if memory > compute else compute
        return seconds, seconds - slow

    def gain(self, step: int, read: float, written: float) -> float:
        """Seconds that one run of a step gains if so many more bytes are fast."""
        return self.cost(step)[0] - self.cost(step, read, written)[0]
