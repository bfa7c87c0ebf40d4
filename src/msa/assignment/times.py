"""When uses take place, seen from outside of the regions that they start."""

from __future__ import annotations

from msa.assignment.allocation import Use
from msa.assignment.problem import Problem
from msa.errors import PlanError

#: Instructions that run regions of the schedule right before themselves.
CONTROL_FLOW = frozenset({"while", "call", "conditional"})


class UseTimes:
    """Corrected times of uses, per step.

    A loop reads its operand when its body's parameter is bound, a conditional when
    the first branch is entered; both are scheduled after the regions that they run.
    """

    __slots__ = ("_corrected", "_latest_prefetch", "problem")

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._corrected: dict[int, int] = {}
        self._latest_prefetch: dict[int, int] = {}
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

    def extended(self, use: Use) -> int:
        """The last step at which storage read by the use is looked at."""
        return use.step
