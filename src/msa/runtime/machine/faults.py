"""Faults of places that are seen before anything runs."""

from __future__ import annotations

from msa.errors import SanitizerError
from msa.hlo.instruction import Instruction


def misplaced(
    instruction: Instruction,
    message: str,
    *,
    kind: str,
    space: int,
    parties: tuple[str, str],
    address: int = 0,
    size: int = 0,
) -> SanitizerError:
    """What to raise for a place that the result of an instruction cannot have.

    The step is the instruction's place in the schedule of its computation.
    """
    home = instruction.computation
    schedule = home.module.schedule
    order = home.instructions if schedule is None else schedule.sequence(home)
    return SanitizerError(
        message,
        kind=kind,
        step=list(order).index(instruction),
        instruction=instruction.name,
        space=space,
        address=address,
        size=size,
        parties=parties,
    )


def memory_text(space: int) -> str:
    """How a memory is called where it is one of two parties."""
    return f"memory {space}"
