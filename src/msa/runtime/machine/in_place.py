"""Results that are written into an operand, stated independently of the planner.

The machine must not share the analyses that it is meant to test, so the rules are
written down here once more.

Source: `xla/hlo/analysis/alias_info.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.shape import ShapeIndex

Pair = tuple[int, ShapeIndex, ShapeIndex]
"""Operand number, index in the operand, index in the result."""

_FIRST: Final = frozenset({"dynamic-update-slice", "set-dimension-size"})
_UPDATING: Final = frozenset({"dynamic-update-slice", "scatter"})


def in_place_pairs(instruction: Instruction) -> list[Pair]:
    """Which parts of the result live in which operands."""
    opcode = instruction.opcode
    operands = instruction.operands
    if opcode in _FIRST:
        return [(0, (), ())]
    if opcode == "scatter":
        count = len(operands) // 2
        return [(0, (), ())] if count == 1 else [(i, (), (i,)) for i in range(count)]
    if opcode == "all-reduce-start":
        if len(operands) == 1:
            return [(0, (), ())]
        return [(i, (), (i,)) for i in range(len(operands))]
    if opcode == "ragged-all-to-all":
        return [(1, (), ())]
    if opcode == "fusion":
        return [*_fusion_pairs(instruction), *_stated(instruction)]
    if opcode in ("custom-call", "async-start"):
        return _stated(instruction)
    return []


def _stated(instruction: Instruction) -> list[Pair]:
    rows = instruction.attributes.get("output_to_operand_aliasing", ())
    return [
        (number, tuple(index), tuple(output))
        for output, number, index in rows
        if instruction.shape.has_index(tuple(output))
    ]


def _fusion_pairs(fusion: Instruction) -> list[Pair]:
    pairs = []
    for output, _ in fusion.shape.leaves():
        found = _written_parameter(fusion, output)
        if found is not None:
            pairs.append((*found, output))
    return pairs


def _written_parameter(
    fusion: Instruction, output: ShapeIndex
) -> tuple[int, ShapeIndex] | None:
    """The operand that an output of a fusion updates, if it does.

    Descends through nested fusions to the operation that makes the output, then
    comes back out through the parameters of each.
    """
    path: list[Instruction] = [fusion]
    source, index = _trace(fusion.fused_computation.root, output)
    while source.opcode == "fusion":
        path.append(source)
        source, index = _trace(source.fused_computation.root, index)
    if source.opcode not in _UPDATING:
        return None
    if source.opcode == "scatter" and index:
        operand, index = _trace(source.operands[index[0]], index[1:])
    elif index:
        return None
    else:
        operand, index = _trace(source.operands[0], ())
    while True:
        if operand.opcode != "parameter":
            return None
        number = operand.parameter_number
        path.pop()
        if not path:
            return number, index
        # `operand` belongs to a nested fusion: go on at what it was given.
        holder = _nested_in(path[-1], operand)
        operand, index = _trace(holder.operands[number], index)


def _nested_in(outer: Instruction, parameter: Instruction) -> Instruction:
    """The fusion inside `outer` whose body has the parameter."""
    for instruction in outer.fused_computation.instructions:
        if parameter.computation in instruction.called_computations:
            return instruction
    raise AssertionError("a parameter of a fusion that nothing calls")


def _trace(
    instruction: Instruction, index: ShapeIndex
) -> tuple[Instruction, ShapeIndex]:
    """Where an element comes from through tuples, their elements and bitcasts."""
    while instruction.opcode == "tuple" and index:
        instruction, index = instruction.operands[index[0]], index[1:]
    while instruction.opcode == "get-tuple-element":
        index = (instruction.tuple_index, *index)
        instruction = instruction.operands[0]
    while not index and instruction.opcode == "bitcast":
        instruction = instruction.operands[0]
    return instruction, index
