"""From a value to what a user knows: the operation and the line of code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msa.hlo.metadata import source_location

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction


class Origin(NamedTuple):
    """Where an instruction comes from; empty strings when nothing is known."""

    op_name: str
    source: str


def origin_of(instruction: Instruction) -> Origin:
    """The operation and source line behind an instruction.

    Copies, tuples and other helpers without metadata stand for what they pass on;
    a fusion without metadata for the root of its body. Bounded work.
    """
    x = instruction
    for _ in range(8):
        metadata = x.metadata
        place = source_location(x)
        if metadata.op_name or place is not None:
            return Origin(metadata.op_name, str(place) if place else "")
        if x.opcode == "fusion":
            x = x.fused_computation.root
        elif x.operands:
            x = x.operands[0]
        else:
            break
    return Origin("", "")
