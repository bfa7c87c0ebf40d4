"""The orders in which computations and instructions are printed and compared."""

from __future__ import annotations

from collections.abc import Sequence

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module


def is_topological(sequence: Sequence[Instruction]) -> bool:
    """Whether operands and control predecessors come before their users."""
    seen: set[Instruction] = set()
    for instruction in sequence:
        for operand in instruction.operands:
            if operand not in seen:
                return False
        for predecessor in instruction.control_predecessors:
            if predecessor not in seen:
                return False
        seen.add(instruction)
    return True


def printed_order(
    computation: Computation, *, scheduled: bool = True, canonical: bool = False
) -> Sequence[Instruction]:
    """Instructions in the order of the schedule, else of insertion.

    An insertion order that does not put operands first (after a pass) gives way to
    the post order, and so it does in canonical text.
    """
    module = computation.module
    schedule = module.schedule if module is not None else None
    if scheduled and schedule is not None:
        if computation in schedule:
            return schedule.sequence(computation)
    elif canonical:
        return computation.post_order()
    if is_topological(computation.instructions):
        return computation.instructions
    return computation.post_order()


def printed_computations(module: Module) -> list[Computation]:
    """Callees before callers."""
    return module.computation_post_order()
