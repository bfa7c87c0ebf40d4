"""Dead-code elimination: what nothing reads and nobody notices goes.

Source: `xla/hlo/transforms/simplifiers/hlo_dce.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msa.analysis.manager import AnalysisManager
from msa.hlo.computation import Computation
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
            doomed = _dead(computation)
            if doomed:
                changed = True
                computation.remove(doomed)
                _forget(module, computation, doomed)
        return _drop_uncalled(module) or changed


def _dead(computation: Computation) -> set[Instruction]:
    """Instructions that only dead instructions read."""
    doomed: set[Instruction] = set()
    readers = {x: x.user_count for x in computation.instructions}
    work = [x for x in computation.instructions if not readers[x]]
    while work:
        instruction = work.pop()
        if instruction is computation.root or not _removable(instruction):
            continue
        doomed.add(instruction)
        for operand in dict.fromkeys(instruction.operands):
            readers[operand] -= 1
            if not readers[operand]:
                work.append(operand)
    return doomed


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
