"""Dead-code elimination: what nothing reads and nobody notices goes.

Source: `xla/hlo/transforms/simplifiers/hlo_dce.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msa.analysis.manager import AnalysisManager
from msa.hlo.computation import Computation
from msa.hlo.dead_code import dead_instructions
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.opcode import has_side_effect


@dataclass(frozen=True, slots=True)
class EliminateDeadCode:
    """Remove instructions without users or effect, then computations without callers.

    Parameters stay (they are the computation's signature), and so does whatever has
    control dependences. Linear.
    """

    name: ClassVar[str] = "dce"

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`."""
        del analyses
        changed = False
        for computation in module.computations:
            doomed = set(dead_instructions(computation, _removable))
            if doomed:
                changed = True
                computation.remove(doomed)
                _forget(module, computation, doomed)
        return _drop_uncalled(module) or changed


def _removable(instruction: Instruction) -> bool:
    return not (
        instruction.opcode == "parameter"
        or instruction.control_predecessors
        or instruction.control_successors
        or has_side_effect(instruction)
    )


def _forget(module: Module, computation: Computation, doomed: set[Instruction]) -> None:
    schedule = module.schedule
    if schedule is not None and computation in schedule:
        sequence = schedule.sequence(computation)
        schedule.set_sequence(computation, (x for x in sequence if x not in doomed))


def _drop_uncalled(module: Module) -> bool:
    """Remove computations that cannot be reached from the entry."""
    reached = {module.entry}
    work = [module.entry]
    while work:
        for instruction in work.pop().instructions:
            for callee in instruction.called_computations:
                if callee not in reached:
                    reached.add(callee)
                    work.append(callee)
    gone = [c for c in module.computations if c not in reached]
    if gone:
        module.computations = [c for c in module.computations if c in reached]
        if module.schedule is not None:
            for computation in gone:
                module.schedule.remove(computation)
    return bool(gone)
