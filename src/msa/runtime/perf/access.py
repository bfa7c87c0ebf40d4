"""Whether neighbouring threads of an instruction read neighbouring elements."""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape

_KEEPS_ORDER: Final = frozenset({"bitcast", "convert", "copy", "reshape"})


def is_coalesced(instruction: Instruction, number: int) -> bool:
    """Whether operand `number` is read in the order in which it is stored.

    A transposition (as an operation, a copy to another layout, or at the start of a
    fusion) whose fastest dimension is not the operand's jumps through memory.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   p = f32[64,32]{1,0} parameter(0)
    ...   ROOT t = f32[32,64]{1,0} transpose(p), dimensions={1,0}
    ... }''')
    >>> is_coalesced(module.entry.root, 0)
    False
    """
    if instruction.opcode != "fusion":
        return not _jumps(instruction, number)
    parameters = instruction.fused_computation.parameters
    if number >= len(parameters):
        return True
    waiting = [parameters[number]]
    while waiting:
        value = waiting.pop()
        for user in value.users:
            if any(_jumps(user, i) for i in user.operand_indices(value)):
                return False
            if user.opcode in _KEEPS_ORDER and user.opcode != "copy":
                waiting.append(user)
    return True


def _jumps(instruction: Instruction, number: int) -> bool:
    operand = instruction.operands[number].shape
    result = instruction.shape
    if number or not operand.is_array or not result.is_array:
        return False
    if instruction.opcode == "copy":
        return _fastest(operand) != _fastest(result)
    if instruction.opcode == "transpose":
        fastest = _fastest(result)
        if fastest < 0:
            return False
        return int(instruction.attributes["dimensions"][fastest]) != _fastest(operand)
    return False


def _fastest(shape: Shape) -> int:
    """The dimension whose elements are neighbours; those of size 1 do not count."""
    order = shape.layout.minor_to_major if shape.layout else range(shape.rank)[::-1]
    return next((d for d in order if shape.dimensions[d] > 1), -1)
