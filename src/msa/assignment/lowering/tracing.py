"""What an operand names, through instructions that only name storage."""

from __future__ import annotations

from msa.hlo.instruction import Instruction
from msa.hlo.shape import ShapeIndex


def trace(
    instruction: Instruction, index: ShapeIndex
) -> tuple[Instruction, ShapeIndex]:
    """Follow tuples, tuple elements and bitcasts back to what they name."""
    while True:
        opcode = instruction.opcode
        if opcode == "tuple" and index:
            instruction, index = instruction.operands[index[0]], index[1:]
        elif opcode == "get-tuple-element":
            instruction, index = (
                instruction.operands[0],
                (instruction.tuple_index, *index),
            )
        elif opcode == "bitcast":
            instruction = instruction.operands[0]
        else:
            return instruction, index
