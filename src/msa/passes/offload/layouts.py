"""How a change of layout is carried through a bitcast or a slice.

Source: `xla/hlo/transforms/host_offload_legalize.cc`.
"""

from __future__ import annotations

from dataclasses import replace

from msa.hlo.instruction import Instruction
from msa.hlo.layout import Layout
from msa.hlo.shape import Shape
from msa.passes.offload.vocabulary import HostOffloadError

Change = tuple[Shape, Shape]
"""An array without and with the change of layout."""


def layout_of(shape: Shape) -> Layout:
    """Layout of an array in memory space 0; row major where none is given."""
    layout = shape.layout or Layout.row_major(shape.rank)
    return layout.with_memory_space(0)


def changes_layout(copy: Instruction) -> bool:
    """Whether an instruction is a copy of an array to another layout."""
    if copy.opcode != "copy" or not copy.shape.is_array:
        return False
    return layout_of(copy.shape) != layout_of(copy.operands[0].shape)


def through_slice(change: Change, piece: Shape) -> Change:
    """The change of layout of a part of an array."""
    before, after = change
    return piece.with_layout(layout_of(before)), piece.with_layout(layout_of(after))


def through_view(change: Change, view: Instruction) -> Change:
    """The change of layout of a bitcast or reshape of an array.

    Args:
        change: of its operand.
        view: the bitcast or reshape.

    Raises:
        HostOffloadError: more than the names of dimensions and a most major
            dimension of 1 changes.
    """
    before, after = change
    shape = view.shape
    a, b = layout_of(after).minor_to_major, layout_of(shape).minor_to_major
    old, new = after.dimensions, shape.dimensions
    first = layout_of(before).minor_to_major
    order: tuple[int, ...] | None = None
    if len(old) == len(new):
        if [old[d] for d in a] == [new[d] for d in b] and (
            view.opcode == "bitcast" or a == b
        ):
            renamed = dict(zip(a, b, strict=True))
            order = tuple(renamed[d] for d in first)
    elif len(old) == len(new) + 1:
        d = a[-1]
        if old[d] == 1 and first[-1] == d and _without(a) == b and _drop(old, d) == new:
            order = _without(first)
    elif len(new) == len(old) + 1:
        d = b[-1]
        if new[d] == 1 and _without(b) == a and _drop(new, d) == old:
            order = (*(m + (m >= d) for m in first), d)
    if order is None:
        raise HostOffloadError(
            f"{view.name} ({view.opcode}) lies behind a change of layout on the host, "
            "which cannot be moved past it",
            where=view.name,
            hint="change the layout before MoveToHost or after MoveToDevice",
        )
    layout = replace(layout_of(before), minor_to_major=order)
    return shape.with_layout(layout), shape.with_layout(layout_of(shape))


def _without(order: tuple[int, ...]) -> tuple[int, ...]:
    """An order of dimensions without the most major one."""
    gone = order[-1]
    return tuple(m - (m > gone) for m in order[:-1])


def _drop(dimensions: tuple[int, ...], d: int) -> tuple[int, ...]:
    return (*dimensions[:d], *dimensions[d + 1 :])
