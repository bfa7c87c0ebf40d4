"""Fusions that update an operand in place: what to compute, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.code import Code


@dataclass(frozen=True, slots=True)
class Update:
    """One result that is a dynamic-update-slice of an operand.

    Attributes:
        index: of the result.
        operand, operand_index: what is updated.
        shape: under which the bytes are updated.
        sizes: of the update.
        first, count: where the update and its start indices stand among the values
            that the code computes.
    """

    index: ShapeIndex
    operand: int
    operand_index: ShapeIndex
    shape: Shape
    sizes: tuple[int, ...]
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class FusedUpdates:
    """A fusion split into in-place updates and plain results.

    Attributes:
        code: computes what the updates write and the plain results.
        updates: results that are written into operands.
        plain: `(index of the result, place among the values, index in the value)`.
    """

    code: Code
    updates: tuple[Update, ...]
    plain: tuple[tuple[ShapeIndex, int, ShapeIndex], ...]


def split_fusion(fusion: Instruction) -> FusedUpdates | None:
    """The updates of a fusion, or None if no result is one.

    A result counts if it is, but for tuples and bitcasts, a dynamic-update-slice of
    a parameter of this very fusion.
    """
    body = fusion.fused_computation
    updates: list[Update] = []
    plain: list[tuple[ShapeIndex, int, ShapeIndex]] = []
    wanted: list[Instruction] = []
    for index, leaf in fusion.shape.leaves():
        if not leaf.is_array:
            continue
        source, rest = body.root, index
        while source.opcode == "tuple" and rest:
            source, rest = source.operands[rest[0]], rest[1:]
        update = source
        while update.opcode == "bitcast" and not rest:
            update = update.operands[0]
        target = _updated_parameter(update) if not rest else None
        if target is None:
            plain.append((index, len(wanted), rest))
            wanted.append(source)
            continue
        operands: Sequence[Instruction] = update.operands[1:]
        updates.append(
            Update(
                index,
                *target,
                update.shape,
                operands[0].shape.dimensions,
                len(wanted),
                len(operands),
            )
        )
        wanted.extend(operands)
    if not updates:
        return None
    code = Code(body, inline_fusions=True, results=wanted)
    return FusedUpdates(code, tuple(updates), tuple(plain))


def _updated_parameter(update: Instruction) -> tuple[int, ShapeIndex] | None:
    if update.opcode != "dynamic-update-slice":
        return None
    source = update.operands[0]
    while source.opcode == "bitcast":
        source = source.operands[0]
    index: ShapeIndex = ()
    while source.opcode == "get-tuple-element":
        index = (source.tuple_index, *index)
        source = source.operands[0]
    if source.opcode != "parameter":
        return None
    return source.parameter_number, index
