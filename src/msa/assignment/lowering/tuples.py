"""Changing elements of tuples that instructions read.

Reference: `xla/service/tuple_util.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msa.assignment.lowering.tracing import trace
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape, ShapeIndex

if TYPE_CHECKING:
    from msa.assignment.lowering.state import LoweringState


def rebuild_operand(
    state: LoweringState,
    user: Instruction,
    operand: int,
    edits: Mapping[ShapeIndex, Instruction],
) -> None:
    """Make operand `operand` of `user` hold the given elements.

    An index one past the end appends. A `tuple` that only `user` reads is changed in
    place; otherwise a new one is made. Linear in the elements of the tuples on the
    way, however many of them change.
    """
    current = user.operands[operand]
    wanted = {i: p for i, p in edits.items() if not already_holds(current, i, p)}
    if wanted:
        new = _with_elements(state, current, wanted, sole_user=user)
        user.replace_operand(operand, new)


def already_holds(
    holder: Instruction, index: ShapeIndex, producer: Instruction
) -> bool:
    """Whether the node names the same storage already, through tuples and bitcasts."""
    if not holder.shape.has_index(index):
        return False
    return trace(holder, index) == trace(producer, ())


def _with_elements(
    state: LoweringState,
    holder: Instruction,
    edits: Mapping[ShapeIndex, Instruction],
    sole_user: Instruction | None,
) -> Instruction:
    """A tuple like `holder` with the edits; depth is that of the shape's nesting.

    It is `holder` itself, changed, if only `sole_user` reads it.
    """
    nested: dict[int, dict[ShapeIndex, Instruction]] = {}
    for index, producer in edits.items():
        nested.setdefault(index[0], {})[index[1:]] = producer
    in_place = _only_read_by(holder, sole_user)
    elements = elements_of(state, holder)
    for number, inner in sorted(nested.items()):
        if number == len(elements):
            elements.append(inner[()])
        elif () in inner:
            elements[number] = state.as_shape(inner[()], elements[number].shape)
        else:
            elements[number] = _with_elements(
                state, elements[number], inner, holder if in_place else None
            )
    if in_place:
        holder.set_operands(tuple(elements))
        holder.shape = Shape.tuple_of(*(e.shape for e in elements))
        return holder
    return make_tuple(holder, elements)


def _only_read_by(holder: Instruction, reader: Instruction | None) -> bool:
    """Whether `holder` is a tuple that `reader` reads once and nothing else does."""
    return (
        reader is not None
        and holder.opcode == "tuple"
        and holder.users == (reader,)
        and reader.operands.count(holder) == 1
        and not holder.is_root
    )


def elements_of(state: LoweringState, holder: Instruction) -> list[Instruction]:
    """The instructions that a tuple-shaped instruction's elements are."""
    if holder.opcode == "tuple":
        return list(holder.operands)
    return [state.element(holder, i) for i in range(len(holder.shape.children))]


def make_tuple(beside: Instruction, elements: list[Instruction]) -> Instruction:
    """A new tuple in the computation of `beside`."""
    shape = Shape.tuple_of(*(e.shape for e in elements))
    return beside.computation.create("tuple", "tuple", shape, elements)


def keep_prefix(state: LoweringState, wide: Instruction, count: int) -> None:
    """Give readers of the whole of `wide`, which grew, its first `count` elements.

    Readers of single elements are not affected.
    """
    readers = [u for u in wide.users if u.opcode != "get-tuple-element"]
    if not readers and not wide.is_root:
        return
    narrow = make_tuple(wide, [state.element(wide, i) for i in range(count)])
    for reader in readers:
        for number in reader.operand_indices(wide):
            reader.replace_operand(number, narrow)
    if wide.is_root:
        wide.computation.root = narrow


def give_prefix(state: LoweringState, wide: Instruction, count: int) -> None:
    """Give all readers of `wide`, which grew, new names of its first elements.

    As XLA does, where `keep_prefix` leaves readers of single elements alone: what
    copies read is named by the new get-tuple-elements afterwards. Once is enough,
    however often `wide` grows.
    """
    readers = [user for user in wide.users if user not in state.renamed]
    if not readers:
        return
    elements = [state.new_element(wide, number) for number in range(count)]
    state.renamed.update(elements)
    narrow = make_tuple(wide, elements)
    for reader in readers:
        for number in reader.operand_indices(wide):
            reader.replace_operand(number, narrow)
    if wide.is_root:
        wide.computation.root = narrow
