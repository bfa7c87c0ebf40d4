"""Steps that lowering removes because nothing reads them: they take no time.

What a copy reads stays: copies are never removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msa.assignment.allocation import Allocation, CopyAllocation, SlicedCopyAllocation
from msa.assignment.problem import Problem


class DeadSteps:
    """The dead steps of one problem.

    Args:
        problem: what is planned.
        kept: steps that are known to stay, and what they read with them.

    Attributes:
        without_copies: those of a plan that copies nothing.
    """

    __slots__ = ("_kept", "_problem", "without_copies")

    def __init__(self, problem: Problem, kept: Collection[int] = ()) -> None:
        self._problem = problem
        self._kept = kept
        self.without_copies = self._dead(())

    def of(self, allocations: Iterable[Allocation]) -> frozenset[int]:
        """Those of a plan. Linear, if there are any."""
        if not self.without_copies:
            return self.without_copies
        read = {
            a.position.step
            for a in allocations
            if isinstance(a, (CopyAllocation, SlicedCopyAllocation))
        }
        if not any(step in self.without_copies for step in read):
            return self.without_copies
        return self._dead(read)

    def _dead(self, copied: Iterable[int]) -> frozenset[int]:
        problem = self._problem
        modelled = problem.modelled
        if modelled is None:
            return frozenset()
        removable, forwarded = modelled.removable, modelled.forwarded
        # What runs a region with a copy has an effect.
        kept = {*self._kept, *copied}
        for step in copied:
            caller = problem.regions[problem.region_of[step]].caller
            while caller >= 0 and caller not in kept:
                kept.add(caller)
                caller = problem.regions[problem.region_of[caller]].caller
        roots = {region.root for region in problem.regions}
        work = [
            step
            for step in range(problem.end)
            if step not in removable or step in roots or step in kept
        ]
        alive = set(work)
        while work:
            for operand in problem.operands[work.pop()]:
                read = forwarded.get(operand, operand)
                if read >= 0 and read not in alive:
                    alive.add(read)
                    work.append(read)
        dead = {step for step in range(problem.end) if step not in alive}
        # All that a removed loop or branch runs goes with it; outer ones first.
        for region in sorted(problem.regions, key=lambda r: -r.caller):
            if region.caller in dead:
                dead.update(range(region.start, region.end))
        return frozenset(dead)
