"""Operations that move elements without computing with them.

Source: `xla/service/shape_inference.cc`, `xla/service/hlo_verifier.cc`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from msa.hlo.primitive import S32
from msa.hlo.shape import UNBOUNDED, Shape
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    dims_text,
    flags,
    higher_precision,
    is_dynamic,
    resized,
    row_major,
    same_dims,
    same_size,
    same_type,
)


def _operand(op: Operation) -> Shape:
    return op.operands[0]


def _broadcast(op: Operation) -> Shape | None:
    shape, stated = op.array(0), op.stated
    places = op.integers("dimensions", ())
    if stated is None:
        # As XLA's reader has it, the numbers count as sizes of new major dimensions.
        return row_major(shape.element_type, (*places, *shape.dimensions))
    if len(places) != len(shape.dimensions):
        op.fail(f"{len(places)} dimensions are given for {dims_text(shape)}")
    op.dimension_numbers("dimensions", len(stated.dimensions), ())
    for number, place in enumerate(places):
        if not same_size(shape.dimensions[number], stated.dimensions[place]):
            op.fail(
                f"dimension {number} of {dims_text(shape)} does not fit dimension "
                f"{place} of {dims_text(stated)}"
            )
    return row_major(shape.element_type, stated.dimensions)


def _transpose(op: Operation) -> Shape:
    shape = op.array(0)
    order = op.integers("dimensions")
    if sorted(order) != list(range(len(shape.dimensions))):
        op.fail(f"{list(order)} is not a permutation of the axes of {dims_text(shape)}")
    layout = shape.layout
    if layout is not None:
        place = {old: new for new, old in enumerate(order)}
        minor = tuple(place[d] for d in layout.minor_to_major if d in place)
        layout = replace(layout, minor_to_major=minor)
    return Shape(
        shape.element_type,
        tuple(shape.dimensions[i] for i in order),
        tuple(shape.dynamic[i] for i in order) if shape.dynamic else (),
        layout,
    )


def _reshape(op: Operation) -> Shape | None:
    shape, stated = op.array(0), op.stated
    if stated is None:
        return None
    if stated.element_type.family == "special":
        op.fail(f"cannot give {dims_text(stated)}")
    fixed = shape.is_static and stated.is_static
    if fixed and shape.element_count != stated.element_count:
        op.fail(
            f"{dims_text(shape)} has {shape.element_count} elements and "
            f"{dims_text(stated)} {stated.element_count}"
        )
    inferred = op.integer("inferred_dimension", -1)
    if inferred >= len(stated.dimensions):
        op.fail(f"inferred_dimension {inferred} is not a dimension of {stated}")
    return Shape(shape.element_type, stated.dimensions, stated.dynamic, stated.layout)


def _dynamic_reshape(op: Operation) -> Shape | None:
    shape, stated = op.array(0), op.stated
    for number in range(1, len(op.operands)):
        op.integral(number, f"size {number - 1}")
        op.scalar(number)
    if stated is None:
        return None
    if len(op.operands) != len(stated.dimensions) + 1:
        op.fail(f"{len(op.operands) - 1} sizes are given for {dims_text(stated)}")
    return Shape(shape.element_type, stated.dimensions, stated.dynamic, stated.layout)


def _bitcast_convert(op: Operation) -> Shape | None:
    shape, stated = op.array(0), op.stated
    if stated is None:
        return None
    kind, new = shape.element_type, stated.element_type
    if new.family == "special" or kind.is_complex != new.is_complex:
        op.fail(f"cannot turn {dims_text(shape)} into {dims_text(stated)}")
    widths = {(kind.bits, new.bits), (8 * kind.byte_width, 8 * new.byte_width)}
    if not any(_same_bits(shape, stated, *pair) for pair in widths):
        op.fail(f"{dims_text(shape)} and {dims_text(stated)} differ in bits")
    return stated


def _same_bits(shape: Shape, stated: Shape, old: int, new: int) -> bool:
    """Whether a width change is met by one trailing dimension of the ratio."""
    a, b = shape.dimensions, stated.dimensions
    if old == new:
        return same_dims(a, b)
    if old > new:
        return same_dims((*a, old // new), b)
    return same_dims(a, (*b, new // old))


def _reverse(op: Operation) -> Shape:
    shape = op.array(0)
    op.dimension_numbers("dimensions", len(shape.dimensions))
    return shape


def _iota(op: Operation) -> Shape | None:
    stated = op.stated
    if stated is None:
        return None
    if stated.element_type.family in ("special", "pred"):
        op.fail(f"cannot give {dims_text(stated)}")
    dimension = op.integer("iota_dimension")
    if not 0 <= dimension < len(stated.dimensions):
        op.fail(f"iota_dimension {dimension} is not a dimension of {dims_text(stated)}")
    return stated


def _concatenate(op: Operation) -> Shape:
    shapes = op.arrays()
    first = shapes[0]
    axis = op.integer("dimensions")
    if not 0 <= axis < len(first.dimensions):
        op.fail(f"dimension {axis} is not a dimension of {dims_text(first)}")
    kind = first.element_type
    total, dynamic = 0, list(flags(first))
    for shape in shapes:
        if not same_type(kind, shape.element_type):
            op.fail(f"operands differ in type: {dims_text(first)}, {dims_text(shape)}")
        kind = higher_precision(kind, shape.element_type)
        a = first.dimensions[:axis] + first.dimensions[axis + 1 :]
        b = shape.dimensions[:axis] + shape.dimensions[axis + 1 :]
        if len(shape.dimensions) != len(first.dimensions) or not same_dims(a, b):
            op.fail(
                f"{dims_text(first)} and {dims_text(shape)} differ in more than "
                f"dimension {axis}"
            )
        dynamic = [p or q for p, q in zip(dynamic, flags(shape), strict=True)]
        size = shape.dimensions[axis]
        total = UNBOUNDED if UNBOUNDED in (size, total) else total + size
    dims = (*first.dimensions[:axis], total, *first.dimensions[axis + 1 :])
    return row_major(kind, dims, dynamic)


def _pad(op: Operation) -> Shape:
    shape, value = op.array(0), op.scalar(1, "the padding value")
    if not same_type(shape.element_type, value.element_type):
        op.fail(f"padding {dims_text(shape)} with a {dims_text(value)}")
    config = op.attribute("padding")
    if len(config) != len(shape.dimensions):
        op.fail(f"padding has {len(config)} entries for {dims_text(shape)}")
    sizes = []
    for number, (size, (low, high, interior)) in enumerate(
        zip(shape.dimensions, config, strict=True)
    ):
        if interior < 0:
            op.fail(f"interior padding of dimension {number} is negative: {interior}")
        if size != UNBOUNDED:
            size += low + high + max(size - 1, 0) * interior
            if size < 0:
                op.fail(f"padding makes dimension {number} negative: {size}")
        sizes.append(size)
    kind = higher_precision(shape.element_type, value.element_type)
    return row_major(kind, sizes, shape.dynamic)


def _slice(op: Operation) -> Shape:
    shape = op.array(0)
    ranges = op.attribute("slice")
    if len(ranges) != len(shape.dimensions):
        op.fail(f"{len(ranges)} ranges are given for {dims_text(shape)}")
    sizes = []
    for number, (size, (start, limit, stride)) in enumerate(
        zip(shape.dimensions, ranges, strict=True)
    ):
        if start < 0 or limit < start or (size != UNBOUNDED and limit > size):
            op.fail(
                f"range [{start}:{limit}] is not within dimension {number} of "
                f"{dims_text(shape)}"
            )
        if stride < 1:
            op.fail(f"stride {stride} of dimension {number} is not positive")
        sizes.append(-(-(limit - start) // stride))
    dynamic = tuple(
        flag and cut == bound
        for flag, cut, bound in zip(flags(shape), sizes, shape.dimensions, strict=True)
    )
    return row_major(shape.element_type, sizes, dynamic)


def _check_starts(op: Operation, first: int, rank: int) -> None:
    """Start indices: one scalar per dimension, or one array of all of them."""
    given = len(op.operands) - first
    if given == 1 and rank != 1 and op.array(first).dimensions:
        starts = op.integral(first, "start indices")
        if starts.dimensions != (rank,):
            op.fail(f"start indices {dims_text(starts)} do not fit rank {rank}")
        return
    if given == 1 and rank == 1 and op.array(first).dimensions == (1,):
        op.integral(first, "start indices")
        return
    if given != rank:
        op.fail(f"{given} start indices are given for rank {rank}")
    for number in range(first, len(op.operands)):
        op.integral(number, f"start index {number - first}")
        start = op.scalar(number, f"start index {number - first}")
        if start.element_type is not op.operands[first].element_type:
            op.fail("start indices differ in type")


def _dynamic_slice(op: Operation) -> Shape:
    shape = op.array(0)
    _check_starts(op, 1, len(shape.dimensions))
    sizes = op.integers("dynamic_slice_sizes")
    if len(sizes) != len(shape.dimensions):
        op.fail(f"{len(sizes)} slice sizes are given for {dims_text(shape)}")
    for number, (size, bound) in enumerate(zip(sizes, shape.dimensions, strict=True)):
        if size < 0 or (bound != UNBOUNDED and size > bound):
            op.fail(
                f"slice size {size} does not fit dimension {number} of "
                f"{dims_text(shape)}"
            )
    return row_major(shape.element_type, sizes)


def _dynamic_update_slice(op: Operation) -> Shape:
    shape, update = op.array(0), op.array(1)
    _check_starts(op, 2, len(shape.dimensions))
    if not same_type(shape.element_type, update.element_type):
        op.fail(f"update {dims_text(update)} differs in type from {dims_text(shape)}")
    if len(shape.dimensions) != len(update.dimensions):
        op.fail(f"update {dims_text(update)} differs in rank from {dims_text(shape)}")
    for size, bound in zip(update.dimensions, shape.dimensions, strict=True):
        if size > bound and bound != UNBOUNDED:
            op.fail(f"update {dims_text(update)} does not fit into {dims_text(shape)}")
    return shape


def _get_dimension_size(op: Operation) -> Shape:
    _dimension(op)
    return row_major(S32, ())


def _dimension(op: Operation) -> int:
    shape = op.array(0)
    number = op.integer("dimensions")
    if not 0 <= number < len(shape.dimensions):
        op.fail(f"dimension {number} is not a dimension of {dims_text(shape)}")
    return number


def _set_dimension_size(op: Operation) -> Shape:
    shape, number = op.array(0), _dimension(op)
    size = op.scalar(1, "the size")
    if size.element_type is not S32:
        op.fail(f"the size must be an s32 scalar, got {dims_text(size)}")
    if is_dynamic(shape, number):
        return shape
    dynamic = list(flags(shape))
    dynamic[number] = True
    return resized(shape, shape.dimensions, dynamic)


def _bitcast(op: Operation) -> Shape | None:
    shape, stated = op.operands[0], op.stated
    if stated is not None and shape.is_array != stated.is_array:
        op.fail(f"cannot give {dims_text(stated)} for {dims_text(shape)}")
    if stated is not None and not _same_storage(shape, stated):
        op.fail(f"{dims_text(shape)} and {dims_text(stated)} differ in bytes")
    return stated


def _same_storage(shape: Shape, stated: Shape) -> bool:
    """Whether two shapes may lie in one place; tiles and unknown sizes are let be."""
    if not shape.is_array or UNBOUNDED in (*shape.dimensions, *stated.dimensions):
        return True
    if any(s.layout is not None and s.layout.tiles for s in (shape, stated)):
        return True
    if shape.byte_size() == stated.byte_size():
        return True
    bits = [s.element_count * s.element_type.bits for s in (shape, stated)]
    return bits[0] == bits[1]


RULES: Final[dict[str, Rule]] = {
    "copy": _operand,
    "bitcast": _bitcast,
    "bitcast-convert": _bitcast_convert,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "dynamic-reshape": _dynamic_reshape,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "get-dimension-size": _get_dimension_size,
    "iota": _iota,
    "pad": _pad,
    "reshape": _reshape,
    "reverse": _reverse,
    "set-dimension-size": _set_dimension_size,
    "slice": _slice,
    "transpose": _transpose,
}
