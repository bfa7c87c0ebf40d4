"""Collective operations: shapes, group sizes, permutation pairs.

Source: `xla/service/shape_inference.cc`, `xla/service/hlo_verifier.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.errors import MsaError
from msa.hlo.shape import UNBOUNDED, Shape
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    compatible,
    dims_text,
    row_major,
    same_dims,
    same_size,
)
from msa.hlo.shape_inference.reduction import elements_of
from msa.hlo.shape_inference.transfers import element

_EVEN: Final = frozenset(
    {"all-gather", "all-gather-start", "all-to-all", "reduce-scatter"}
)
"""Operations whose result depends on the size of the group."""


def group_size(op: Operation) -> int:
    """Number of participants of each group; 0 when the text leaves it open."""
    groups = op.attribute("replica_groups", None)
    if groups is None:
        return 0
    try:
        members = groups.expand(0)
    except MsaError as error:
        op.fail(f"replica_groups: {error.message}")
    if not members or not all(members):
        return 0
    seen: set[int] = set()
    for group in members:
        for device in group:
            if device < 0 or device in seen:
                what = "repeat" if device in seen else "hold"
                op.fail(f"replica_groups {what} device {device}")
            seen.add(device)
    sizes = {len(group) for group in members}
    if len(sizes) > 1 and op.opcode in _EVEN:
        op.fail(f"replica_groups are of different sizes: {sorted(sizes)}")
    return sizes.pop() if len(sizes) == 1 else 0


def _participants(op: Operation) -> int:
    """Devices that a gather or scatter spans; 0 when the text leaves it open.

    With a channel but without global ids, groups list replicas and every partition
    of them takes part: a number that the instruction does not know.
    """
    count = group_size(op)
    crosses = op.attribute("channel_id", None) is not None
    if crosses and not op.attribute("use_global_device_ids", False):
        return 0
    return count


def _check_ids(op: Operation) -> None:
    if (
        op.attribute("use_global_device_ids", False)
        and op.attribute("channel_id", None) is None
    ):
        op.fail("use_global_device_ids needs a channel_id")


def _whole(op: Operation) -> Shape:
    """The operand, or a tuple of all operands."""
    shapes = op.operands
    return shapes[0] if len(shapes) == 1 else Shape.tuple_of(*shapes)


def _all_reduce(op: Operation) -> Shape:
    group_size(op)
    _check_ids(op)
    reducer = op.signature()
    if len(reducer.parameters) not in (2, 2 * len(op.operands)):
        op.fail(f"the reducer must take 2 parameters: {reducer}")
    whole = _whole(op)
    stated = op.stated
    if stated is not None and stated.is_tuple and len(op.operands) == 1:
        return Shape.tuple_of(whole) if not op.operands[0].is_tuple else whole
    return whole


def _results(op: Operation, stated: Shape) -> tuple[Shape, ...]:
    results = elements_of(stated)
    if len(results) != len(op.operands):
        op.fail(f"{len(op.operands)} operands do not give {dims_text(stated)}")
    return results


def _check_scaled(
    op: Operation, small: Shape, large: Shape, axis: int, count: int
) -> None:
    """`large` is `count` times `small` along `axis` (any multiple if `count` is 0)."""
    a, b = small.dimensions, large.dimensions
    if len(a) != len(b) or not 0 <= axis < len(a):
        op.fail(f"dimension {axis} does not join {dims_text(small)} to {large}")
    if not same_dims((*a[:axis], *a[axis + 1 :]), (*b[:axis], *b[axis + 1 :])):
        op.fail(
            f"{dims_text(small)} and {dims_text(large)} differ in more than "
            f"dimension {axis}"
        )
    if UNBOUNDED in (a[axis], b[axis]):
        return
    if count > 1 and a[axis] * count != b[axis]:
        op.fail(
            f"groups of {count} do not turn {dims_text(small)} into {dims_text(large)}"
        )
    if a[axis] and b[axis] % a[axis]:
        op.fail(f"{dims_text(large)} is not a multiple of {dims_text(small)}")


def _all_gather(op: Operation) -> Shape | None:
    count = _participants(op)
    _check_ids(op)
    axis, stated = op.integer("dimensions"), op.stated
    if stated is None:
        if not count:
            return None
        out = tuple(_scale(op.array(i), axis, count) for i in range(len(op.operands)))
        return out[0] if len(out) == 1 else Shape.tuple_of(*out)
    for operand, result in zip(op.operands, _results(op, stated), strict=True):
        if operand.element_type is not result.element_type:
            op.fail(f"{dims_text(operand)} cannot become {dims_text(result)}")
        _check_scaled(op, operand, result, axis, count)
    return stated


def _scale(shape: Shape, axis: int, count: int) -> Shape:
    sizes = list(shape.dimensions)
    if 0 <= axis < len(sizes) and sizes[axis] != UNBOUNDED:
        sizes[axis] *= count
    return row_major(shape.element_type, sizes, shape.dynamic)


def _all_gather_start(op: Operation) -> Shape | None:
    """`(operand, result)`, or both as tuples when there are several."""
    count, axis, stated = _participants(op), op.integer("dimensions"), op.stated
    if stated is None:
        whole, gathered = _whole(op), _all_gather(op)
        return None if gathered is None else Shape.tuple_of(whole, gathered)
    sources = elements_of(element(op, stated, 0))
    results = elements_of(element(op, stated, 1))
    if len(sources) != len(op.operands) or len(results) != len(op.operands):
        op.fail(f"{len(op.operands)} operands do not give {dims_text(stated)}")
    for operand, source, result in zip(op.operands, sources, results, strict=True):
        if not compatible(operand, source):
            op.fail(f"operand {dims_text(operand)} is listed as {dims_text(source)}")
        _check_scaled(op, operand, result, axis, count)
    return stated


def _reduce_scatter(op: Operation) -> Shape | None:
    count = _participants(op)
    _check_ids(op)
    op.signature()
    axis, stated = op.integer("dimensions"), op.stated
    if stated is None:
        return None
    for operand, result in zip(op.operands, _results(op, stated), strict=True):
        if operand.element_type is not result.element_type:
            op.fail(f"{dims_text(operand)} cannot become {dims_text(result)}")
        _check_scaled(op, result, operand, axis, count)
    return stated


def _all_to_all(op: Operation) -> Shape | None:
    count = group_size(op)
    axis = op.attribute("dimensions", None)
    shapes = op.operands
    if axis is None:
        if count > 1 and len(shapes) != count:
            op.fail(f"groups of {count} need as many operands, got {len(shapes)}")
        for shape in shapes[1:]:
            if not compatible(shape, shapes[0]):
                op.fail(f"operands differ: {dims_text(shapes[0])}, {dims_text(shape)}")
        stated = op.stated
        if len(shapes) == 1 and stated is not None and not stated.is_tuple:
            return shapes[0]
        return Shape.tuple_of(*shapes)
    number, shape = op.integer("dimensions"), op.array(0)
    if len(shapes) != 1:
        op.fail(f"takes one operand when a dimension is split, got {len(shapes)}")
    if not 0 <= number < len(shape.dimensions):
        op.fail(f"dimension {number} is not a dimension of {dims_text(shape)}")
    size = shape.dimensions[number]
    if count and size != UNBOUNDED and size % count:
        op.fail(f"dimension {number} of {dims_text(shape)} cannot be cut into {count}")
    return shape


def _check_pairs(op: Operation) -> None:
    pairs = op.attribute("source_target_pairs", ())
    for side, what in ((0, "source"), (1, "target")):
        seen = set()
        for pair in pairs:
            if len(pair) != 2 or not isinstance(pair[side], int):
                return  # several lists, one for each part of an in-place update
            if pair[side] < 0 or pair[side] in seen:
                op.fail(f"{what} {pair[side]} is in more than one pair")
            seen.add(pair[side])


def _moved(op: Operation) -> Shape:
    """Result of a permutation: the operands, or the buffer updated in place."""
    if op.attribute("slice_sizes", None) is not None:
        if len(op.operands) != 4:
            op.fail(f"slice_sizes need 4 operands, got {len(op.operands)}")
        return op.operands[1]
    if len(op.operands) == 4 and op.stated is not None:
        results = elements_of(op.stated)
        if len(results) != 4:
            return op.operands[1]  # in place, the sizes left out
    _check_pairs(op)
    return _whole(op)


def _collective_permute_start(op: Operation) -> Shape | None:
    moved, stated = _moved(op), op.stated
    if stated is None:
        in_place = op.attribute("slice_sizes", None) is not None
        return Shape.tuple_of(op.operands[0] if in_place else moved, moved)
    result = element(op, stated, 1)
    if not (compatible(result, moved) or compatible(result, Shape.tuple_of(moved))):
        op.fail(f"gives {dims_text(moved)}, not {dims_text(result)}")
    if len(op.operands) == 1 and not compatible(stated.children[0], op.operands[0]):
        op.fail(
            f"operand {dims_text(op.operands[0])} is listed as "
            f"{dims_text(stated.children[0])}"
        )
    return stated


def _result_element(op: Operation) -> Shape:
    return element(op, op.operands[0], 1)


def _all_reduce_done(op: Operation) -> Shape:
    return op.operands[0]


def _collective_broadcast(op: Operation) -> Shape | None:
    group_size(op)
    whole = _whole(op)
    if len(op.operands) == 1 or op.stated is None:
        return whole
    if op.attribute("has_dynamic_root", False):
        return op.stated
    return whole


def _ragged_all_to_all(op: Operation) -> Shape:
    group_size(op)
    data, output = op.array(0), op.array(1)
    if data.element_type is not output.element_type:
        op.fail(f"{dims_text(data)} and {dims_text(output)} differ in type")
    first = op.integral(2, "offsets and sizes")
    for number in range(3, 6):
        shape = op.integral(number, "offsets and sizes")
        if not all(map(same_size, shape.dimensions, first.dimensions)):
            op.fail(f"{dims_text(shape)} differs from {dims_text(first)}")
    return output


RULES: Final[dict[str, Rule]] = {
    "all-gather": _all_gather,
    "all-gather-done": _result_element,
    "all-gather-start": _all_gather_start,
    "all-reduce": _all_reduce,
    "all-reduce-done": _all_reduce_done,
    "all-reduce-start": _all_reduce,
    "all-to-all": _all_to_all,
    "collective-broadcast": _collective_broadcast,
    "collective-permute": lambda op: _moved(op),
    "collective-permute-done": _result_element,
    "collective-permute-start": _collective_permute_start,
    "ragged-all-to-all": _ragged_all_to_all,
    "reduce-scatter": _reduce_scatter,
}
