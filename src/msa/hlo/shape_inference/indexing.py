"""Gather and scatter.

Source: `xla/service/shape_inference.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msa.hlo.shape import UNBOUNDED, Shape
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    dims_text,
    flags,
    row_major,
    same_dims,
    same_size,
)
from msa.hlo.shape_inference.reduction import check_reducer


class _Indices:
    """Start indices: their batch dimensions and the dimension of index vectors."""

    def __init__(self, op: Operation, number: int, what: str) -> None:
        shape = op.integral(number, what)
        vector = op.integer("index_vector_dim")
        rank = len(shape.dimensions)
        if not 0 <= vector <= rank:
            op.fail(f"index_vector_dim {vector} is not a dimension of {what}")
        self.shape = shape
        self.vector = vector
        self.length = shape.dimensions[vector] if vector < rank else 1
        self.batch = [d for d in range(rank) if d != vector]

    @property
    def batch_sizes(self) -> list[int]:
        """Sizes of the batch dimensions, in order."""
        return [self.shape.dimensions[d] for d in self.batch]

    def check_map(self, op: Operation, name: str, rank: int) -> tuple[int, ...]:
        """The list that says which operand dimension each index component means."""
        numbers = op.dimension_numbers(name, rank)
        if not same_size(len(numbers), self.length):
            op.fail(
                f"{name} has {len(numbers)} entries but index vectors have "
                f"{self.length} elements"
            )
        return numbers

    def check_batching(
        self, op: Operation, operand: Shape, of_operand: str, of_indices: str
    ) -> tuple[int, ...]:
        """Operand dimensions that run along with batch dimensions of the indices."""
        rank, index_rank = len(operand.dimensions), len(self.shape.dimensions)
        ours = op.dimension_numbers(of_operand, rank, (), ascending=True)
        theirs = op.dimension_numbers(of_indices, index_rank, ())
        if len(ours) != len(theirs):
            op.fail(f"{of_operand} and {of_indices} differ in length")
        if self.vector in theirs:
            op.fail(f"{of_indices} holds index_vector_dim {self.vector}")
        for i, j in zip(ours, theirs, strict=True):
            if not same_size(operand.dimensions[i], self.shape.dimensions[j]):
                op.fail(
                    f"batching dimension {i} of {dims_text(operand)} does not fit "
                    f"dimension {j} of {dims_text(self.shape)}"
                )
        return ours


def _disjoint(op: Operation, **lists: Sequence[int]) -> set[int]:
    union: set[int] = set()
    for name, numbers in lists.items():
        if union & set(numbers):
            op.fail(f"{' and '.join(lists)} overlap: see {name}")
        union |= set(numbers)
    return union


def _gather(op: Operation) -> Shape:
    operand = op.array(0)
    rank = len(operand.dimensions)
    indices = _Indices(op, 1, "start indices")
    mapped = indices.check_map(op, "start_index_map", rank)
    batching = indices.check_batching(
        op, operand, "operand_batching_dims", "start_indices_batching_dims"
    )
    collapsed = op.dimension_numbers("collapsed_slice_dims", rank, (), ascending=True)
    dropped = _disjoint(
        op, collapsed_slice_dims=collapsed, operand_batching_dims=batching
    )
    _disjoint(op, start_index_map=mapped, operand_batching_dims=batching)
    sizes = op.integers("slice_sizes")
    if len(sizes) != rank:
        op.fail(f"{len(sizes)} slice sizes are given for {dims_text(operand)}")
    for number, (size, bound) in enumerate(zip(sizes, operand.dimensions, strict=True)):
        if size < 0 or (bound != UNBOUNDED and size > bound):
            op.fail(f"slice size {size} does not fit dimension {number} of {operand}")
        if number in dropped and size > 1:
            op.fail(f"collapsed dimension {number} has slice size {size}")
    offsets = op.dimension_numbers(
        "offset_dims", len(indices.batch) + rank - len(dropped), (), ascending=True
    )
    window = [d for d in range(rank) if d not in dropped]
    if len(offsets) != len(window):
        op.fail(f"{len(offsets)} offset_dims are given for {len(window)} slice axes")
    return _interleave(operand, indices, offsets, window, sizes)


def _interleave(
    operand: Shape,
    indices: _Indices,
    offsets: Sequence[int],
    window: Sequence[int],
    sizes: Sequence[int],
) -> Shape:
    batch, slices = iter(indices.batch), iter(window)
    places = set(offsets)
    dims, dynamic = [], []
    for place in range(len(indices.batch) + len(window)):
        if place in places:
            d = next(slices)
            dims.append(sizes[d])
            dynamic.append(flags(operand)[d] and sizes[d] == operand.dimensions[d])
        else:
            d = next(batch)
            dims.append(indices.shape.dimensions[d])
            dynamic.append(flags(indices.shape)[d])
    return row_major(operand.element_type, dims, dynamic)


def _scatter(op: Operation) -> Shape:
    shapes = op.arrays()
    if len(shapes) % 2 == 0 or len(shapes) < 3:
        op.fail(f"takes operands, indices and as many updates, got {len(shapes)}")
    count = len(shapes) // 2
    operands, updates = shapes[:count], shapes[count + 1 :]
    first, rank = operands[0], len(operands[0].dimensions)
    for shape in operands[1:]:
        if not same_dims(shape.dimensions, first.dimensions):
            op.fail(f"operands differ: {dims_text(first)} and {dims_text(shape)}")
    for shape in updates[1:]:
        if not same_dims(shape.dimensions, updates[0].dimensions):
            op.fail(f"updates differ: {dims_text(updates[0])} and {dims_text(shape)}")
    _check_updates(op, first, rank, count, updates[0])
    scalars = tuple(row_major(shape.element_type, ()) for shape in operands)
    check_reducer(op, op.signature(), scalars, updates)
    return first if count == 1 else Shape.tuple_of(*operands)


def _check_updates(
    op: Operation, operand: Shape, rank: int, number: int, update: Shape
) -> None:
    indices = _Indices(op, number, "scatter indices")
    mapped = indices.check_map(op, "scatter_dims_to_operand_dims", rank)
    batching = indices.check_batching(
        op, operand, "input_batching_dims", "scatter_indices_batching_dims"
    )
    inserted = op.dimension_numbers("inserted_window_dims", rank, (), ascending=True)
    dropped = _disjoint(op, inserted_window_dims=inserted, input_batching_dims=batching)
    _disjoint(op, scatter_dims_to_operand_dims=mapped, input_batching_dims=batching)
    update_rank = len(update.dimensions)
    window = op.dimension_numbers("update_window_dims", update_rank, (), ascending=True)
    bounds = [operand.dimensions[d] for d in range(rank) if d not in dropped]
    if len(window) != len(bounds):
        op.fail(f"{len(window)} update_window_dims are given for {len(bounds)} axes")
    for place, bound in zip(window, bounds, strict=True):
        if update.dimensions[place] > bound and bound != UNBOUNDED:
            op.fail(f"update {dims_text(update)} does not fit {dims_text(operand)}")
    batch = [d for i, d in enumerate(update.dimensions) if i not in set(window)]
    if not same_dims(batch, indices.batch_sizes):
        op.fail(
            f"update {dims_text(update)} does not fit scatter indices "
            f"{dims_text(indices.shape)}"
        )


RULES: Final[dict[str, Rule]] = {"gather": _gather, "scatter": _scatter}
