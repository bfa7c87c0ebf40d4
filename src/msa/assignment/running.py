"""What calls and branches take themselves: what their parts take, as the analysis says.

Lowering changes that: copies inside access bytes too, and what is removed does not.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from msa.assignment.modelled import COPY_ACCESSES
from msa.assignment.problem import Problem
from msa.hlo.opcode import RUNNING_OPCODES

_OUTER: Final = frozenset({"call", "conditional"})


class Costs(NamedTuple):
    """Seconds of arithmetic and bytes accessed."""

    flop_seconds: float
    transcendental_seconds: float
    accessed: float


class Running:
    """Costs of the steps that run regions, while copies inside come and go.

    Attributes:
        matters: whether there are calls or branches at all.
    """

    __slots__ = ("_base", "_bytes", "_inside", "_problem", "_regions", "matters")

    def __init__(self, problem: Problem, dead: Set[int] = frozenset()) -> None:
        self._problem = problem
        modelled = problem.modelled
        opcodes = problem.opcodes
        self.matters = modelled is not None and any(
            opcodes[step] in _OUTER for step in problem.called
        )
        self._inside: list[bool] = []
        if not self.matters or modelled is None:
            return
        self._bytes = modelled.copy_bytes
        # A caller comes after what it runs.
        steps = sorted(
            step for step in problem.called if opcodes[step] in RUNNING_OPCODES
        )
        self._regions = self._totals(steps, frozenset())
        self._base = {step: self._own(step) for step in steps}
        if dead:
            self._regions = self._totals(steps, dead)
        inside = [False] * len(problem.regions)
        for step in reversed(steps):
            for region in problem.called[step]:
                inside[region] = (
                    opcodes[step] in _OUTER or inside[problem.region_of[step]]
                )
        self._inside = inside

    def _totals(self, steps: Sequence[int], dead: Set[int]) -> list[Costs]:
        """Costs of the regions, without copies."""
        problem = self._problem
        modelled = problem.modelled
        assert modelled is not None
        rows = (
            modelled.flop_seconds,
            modelled.transcendental_seconds,
            modelled.accessed,
        )
        sums = [[0.0, 0.0, 0.0] for _ in problem.regions]
        running = set(steps)
        for step, region in enumerate(problem.region_of):
            if step not in dead and step not in running:
                for kind, row in enumerate(rows):
                    sums[region][kind] += row[step]
        self._regions = [Costs(*row) for row in sums]
        for step in steps:
            if step not in dead:
                region = problem.region_of[step]
                self._regions[region] = _plus(self._regions[region], self._own(step))
        return self._regions

    def _own(self, step: int) -> Costs:
        """Costs of a step by those of its regions."""
        problem = self._problem
        parts = [self._regions[region] for region in problem.called[step]]
        if problem.opcodes[step] == "call":
            return parts[0]
        if problem.opcodes[step] == "conditional":
            return Costs(*(max(x) for x in zip(*parts, strict=True)))
        total = parts[0]
        for part in parts[1:]:
            total = _plus(total, part)
        return total

    def costs(self, step: int) -> tuple[float, float]:
        """Seconds of arithmetic and bytes of a call or branch as it is now."""
        modelled = self._problem.modelled
        assert modelled is not None
        more = _less(self._own(step), self._base[step])
        compute = max(
            modelled.flop_seconds[step] + more.flop_seconds,
            modelled.transcendental_seconds[step] + more.transcendental_seconds,
        )
        return max(0.0, compute), max(0.0, modelled.accessed[step] + more.accessed)

    def steps(self) -> list[int]:
        """The calls and branches, by step."""
        if not self.matters:
            return []
        opcodes = self._problem.opcodes
        return [step for step in self._base if opcodes[step] in _OUTER]

    def copy(self, step: int, size: float, share: float) -> list[int]:
        """Count a copy of so many bytes at a step; the calls and branches that change.

        `share` is 1 if it comes and -1 if it goes.
        """
        problem = self._problem
        region = problem.region_of[step]
        if not self.matters or not self._inside[region]:
            return []
        changed: list[int] = []
        more = Costs(0.0, 0.0, share * (COPY_ACCESSES * size + self._bytes))
        while True:
            caller = problem.regions[region].caller
            if caller not in self._base:
                self._regions[region] = _plus(self._regions[region], more)
                return changed
            before = self._own(caller)
            self._regions[region] = _plus(self._regions[region], more)
            more = _less(self._own(caller), before)
            if problem.opcodes[caller] in _OUTER:
                changed.append(caller)
            region = problem.region_of[caller]


def _plus(a: Costs, b: Costs) -> Costs:
    return Costs(a[0] + b[0], a[1] + b[1], a[2] + b[2])


def _less(a: Costs, b: Costs) -> Costs:
    return Costs(a[0] - b[0], a[1] - b[1], a[2] - b[2])
