"""What single accesses gain in fast memory, given all others."""

from __future__ import annotations

from collections.abc import Iterable

from msa.assignment.allocation import Allocation, Position, Use
from msa.assignment.problem import Problem


def bytes_of_places(problem: Problem) -> dict[object, float]:
    """Bytes that the instruction at each use and position moves."""
    sizes: dict[object, float] = {}
    for value in problem.values:
        sizes.update(zip(value.uses, value.use_bytes, strict=False))
        sizes.update(zip(value.positions, value.position_bytes, strict=False))
    return {place: size for place, size in sizes.items() if size > 0}


class Access:
    """Seconds that single accesses gain in fast memory, given all others."""

    __slots__ = (
        "_bytes",
        "_compute",
        "_fast",
        "_machine",
        "_read",
        "_total",
        "_written",
    )

    def __init__(
        self,
        problem: Problem,
        sizes: dict[object, float],
        allocations: Iterable[Allocation],
    ) -> None:
        self._machine = problem.machine
        self._compute = [float(x) for x in problem.compute_seconds]
        self._total = [max(float(x), 0.0) for x in problem.total_bytes]
        self._bytes = sizes
        self._read = [0.0] * len(self._total)
        self._written = [0.0] * len(self._total)
        self._fast: set[object] = set()
        for allocation in allocations:
            if not allocation.is_alternate or allocation.kind in ("scoped", "window"):
                continue
            for use in allocation.uses:
                if use in sizes and use not in self._fast:
                    self._fast.add(use)
                    self._read[use.step] += sizes[use]
            place = allocation.position
            if (
                not allocation.is_copy_like
                and place in sizes
                and place not in self._fast
            ):
                self._fast.add(place)
                self._written[place.step] += sizes[place]

    def step_seconds(self) -> list[float]:
        """Seconds of one run of each step, waits for copies left out."""
        return [
            self._seconds(step, self._read[step], self._written[step])
            for step in range(len(self._total))
        ]

    def _seconds(self, step: int, read: float, written: float) -> float:
        machine = self._machine
        slow = max(self._total[step] - read - written, 0.0)
        memory = (
            read / machine.alternate_read_bandwidth
            + written / machine.alternate_write_bandwidth
            + slow / machine.default_bandwidth
        )
        return max(self._compute[step], memory)

    def read_gain(self, use: Use) -> float:
        """Seconds that a use saves when it is read from fast memory."""
        size = self._bytes.get(use, 0.0)
        if not size:
            return 0.0
        step = use.step
        read, written = self._read[step], self._written[step]
        low = read - size if use in self._fast else read
        return self._seconds(step, low, written) - self._seconds(
            step, low + size, written
        )

    def write_gain(self, position: Position) -> float:
        """Seconds that a definition saves when it is written to fast memory."""
        size = self._bytes.get(position, 0.0)
        if not size:
            return 0.0
        step = position.step
        read, written = self._read[step], self._written[step]
        low = written - size if position in self._fast else written
        return self._seconds(step, read, low) - self._seconds(step, read, low + size)
