"""When uses take place, seen from outside of the regions that they start."""

from __future__ import annotations

from msa.assignment.allocation import Position, Use
from msa.assignment.problem import Problem
from msa.errors import PlanError

#: Instructions that run regions of the schedule right before themselves.
CONTROL_FLOW = frozenset({"while", "call", "conditional"})


class UseTimes:
    """Corrected times of uses, per step.

    A loop reads its operand when its body's parameter is bound, a conditional when
    the first branch is entered; both are scheduled after the regions that they run.
    """

    __slots__ = ("_corrected", "_latest_prefetch", "_view_ends", "problem")

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._corrected: dict[int, int] = {}
        self._latest_prefetch: dict[int, int] = {}
        self._view_ends: dict[int, int] = {}
        for step, called in problem.called.items():
            opcode = problem.opcodes[step]
            if opcode not in CONTROL_FLOW:
                continue
            regions = [problem.regions[number] for number in called]
            self._latest_prefetch[step] = min(region.start for region in regions) - 1
            if opcode == "while":
                body = next(r for r in regions if r.kind == "body")
                if body.root + 1 != step:
                    raise PlanError(
                        f"the loop {problem.names[step]!r} is not scheduled right "
                        f"after the root of its body",
                        hint="schedule the root of every loop body last",
                    )
                self._corrected[step] = body.parameters[0]
            elif opcode == "conditional":
                self._corrected[step] = min(r.parameters[0] for r in regions)

    def corrected(self, step: int) -> int:
        """The step at which the instruction reads its operands."""
        return self._corrected.get(step, step)

    def latest_prefetch(self, step: int) -> int:
        """The step before which a prefetch for the instruction has to land."""
        return min(step, self._latest_prefetch.get(step, step))

    def extend_through_views(self) -> None:
        """Let reads by views last until the views themselves are last read.

        A view names storage of its operand 0 without copying it. Linear: views are
        visited from the last to the first.
        """
        problem = self.problem
        for step in sorted(problem.views, reverse=True):
            end = step
            value = problem.value_at.get(Position(step))
            for use in () if value is None else problem.values[value].uses:
                end = max(end, use.step)
                if use.operand == 0:
                    end = max(end, self._view_ends.get(use.step, 0))
            self._view_ends[step] = end

    def extended(self, use: Use) -> int:
        """The last step at which storage read by the use is looked at."""
        if use.operand == 0 and self._view_ends:
            return self._view_ends.get(use.step, use.step)
        return use.step
