"""Operations that apply a called computation to elements or windows.

Source: `xla/service/shape_inference.cc`, `xla/service/hlo_verifier.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.hlo.primitive import PRED, S32
from msa.hlo.shape import Shape
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    Signature,
    dims_text,
    flags,
    row_major,
    same_but_precision,
    same_dims,
    same_type,
)
from msa.hlo.shape_inference.window import window_dimensions, windowed_sizes


def elements_of(result: Shape) -> tuple[Shape, ...]:
    """Elements of a tuple, or the shape itself."""
    return result.children if result.is_tuple else (result,)


def check_reducer(
    op: Operation,
    reducer: Signature,
    inits: tuple[Shape, ...],
    inputs: tuple[Shape, ...],
) -> tuple[Shape, ...]:
    """Accumulator shapes of a reducer `(accumulators…, values…) -> accumulators`."""
    count = len(inits)
    if len(reducer.parameters) != 2 * count:
        op.fail(f"the reducer must take {2 * count} parameters: {reducer}")
    results = elements_of(reducer.result)
    if len(results) != count or (count > 1 and not reducer.result.is_tuple):
        op.fail(f"the reducer must give {count} results: {reducer}")
    for i, (result, init, value) in enumerate(zip(results, inits, inputs, strict=True)):
        if result.element_type.family == "special":
            op.fail(f"result {i} of the reducer must be an array: {reducer}")
        if not same_but_precision(reducer.parameters[i], result):
            op.fail(f"accumulator {i} of the reducer differs from its result {reducer}")
        if not same_but_precision(init, result):
            op.fail(
                f"initial value {dims_text(init)} does not fit the accumulator "
                f"{dims_text(result)}"
            )
        element = reducer.parameters[count + i]
        if not same_type(element.element_type, value.element_type):
            op.fail(f"the reducer {reducer} does not take elements of {value}")
        if not same_dims(element.dimensions, result.dimensions):
            op.fail(f"parameter {count + i} of the reducer differs from its result")
    return results


def _inputs_and_inits(op: Operation) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    shapes = op.arrays()
    if not shapes or len(shapes) % 2:
        op.fail(f"takes inputs and as many initial values, got {len(shapes)} operands")
    half = len(shapes) // 2
    inputs, inits = shapes[:half], shapes[half:]
    for shape in inputs[1:]:
        if not same_dims(shape.dimensions, inputs[0].dimensions):
            op.fail(f"inputs differ: {dims_text(inputs[0])} and {dims_text(shape)}")
    return inputs, inits


def _reduce(op: Operation) -> Shape:
    inputs, inits = _inputs_and_inits(op)
    first = inputs[0]
    axes = set(op.dimension_numbers("dimensions", len(first.dimensions)))
    accumulators = check_reducer(op, op.signature(), inits, inputs)
    kept = [d for d in range(len(first.dimensions)) if d not in axes]
    sizes = [first.dimensions[d] for d in kept]
    dynamic = [flags(first)[d] for d in kept]
    out = tuple(row_major(a.element_type, sizes, dynamic) for a in accumulators)
    return out[0] if len(out) == 1 else Shape.tuple_of(*out)


def _reduce_window(op: Operation) -> Shape:
    inputs, inits = _inputs_and_inits(op)
    first = inputs[0]
    window = window_dimensions(op, len(first.dimensions))
    accumulators = check_reducer(op, op.signature(), inits, inputs)
    sizes = windowed_sizes(op, first.dimensions, window)
    out = tuple(row_major(a.element_type, sizes, first.dynamic) for a in accumulators)
    return out[0] if len(out) == 1 else Shape.tuple_of(*out)


def _select_and_scatter(op: Operation) -> Shape:
    operand, source, init = op.arrays()
    select, scatter = op.signature(0), op.signature(1)
    if len(select.parameters) != 2 or select.result.element_type is not PRED:
        op.fail(f"the selection must take two elements and give a pred: {select}")
    for parameter in select.parameters:
        if parameter.dimensions or not same_type(
            parameter.element_type, operand.element_type
        ):
            op.fail(f"the selection {select} does not take elements of {operand}")
    check_reducer(op, scatter, (init,), (source,))
    window = window_dimensions(op, len(operand.dimensions))
    sizes = windowed_sizes(op, operand.dimensions, window)
    if not same_dims(sizes, source.dimensions):
        op.fail(
            f"source {dims_text(source)} does not fit windows "
            f"{list(sizes)} of {dims_text(operand)}"
        )
    return operand


def _map(op: Operation) -> Shape:
    shapes = op.arrays()
    if not shapes:
        op.fail("takes at least one operand")
    first, mapper = shapes[0], op.signature()
    for shape in shapes[1:]:
        if not same_dims(shape.dimensions, first.dimensions):
            op.fail(f"operands differ: {dims_text(first)} and {dims_text(shape)}")
    axes = op.integers("dimensions", ())
    if axes and axes != tuple(range(len(first.dimensions))):
        op.fail(f"dimensions {list(axes)} are not all those of {dims_text(first)}")
    if len(mapper.parameters) != len(shapes):
        op.fail(f"the mapped computation takes {len(shapes)} parameters: {mapper}")
    for parameter, shape in zip(mapper.parameters, shapes, strict=True):
        if parameter.dimensions or not same_type(
            parameter.element_type, shape.element_type
        ):
            op.fail(f"the mapped computation {mapper} does not take {dims_text(shape)}")
    result = mapper.result
    if result.element_type.family == "special" or result.dimensions:
        op.fail(f"the mapped computation must give a scalar: {mapper}")
    return row_major(result.element_type, first.dimensions, first.dynamic)


def _sort(op: Operation) -> Shape:
    shapes = op.arrays()
    if not shapes:
        op.fail("takes at least one operand")
    first = shapes[0]
    axis = op.integer("dimensions")
    if not 0 <= axis < max(1, len(first.dimensions)):
        op.fail(f"dimension {axis} is not a dimension of {dims_text(first)}")
    for shape in shapes[1:]:
        if not same_dims(shape.dimensions, first.dimensions):
            op.fail(f"operands differ: {dims_text(first)} and {dims_text(shape)}")
    _check_comparator(op, shapes)
    return first if len(shapes) == 1 else Shape.tuple_of(*shapes)


def _check_comparator(op: Operation, shapes: tuple[Shape, ...]) -> None:
    comparator = op.signature()
    if len(comparator.parameters) != 2 * len(shapes):
        op.fail(f"the comparator takes {2 * len(shapes)} parameters: {comparator}")
    for number, parameter in enumerate(comparator.parameters):
        shape = shapes[number // 2]
        if parameter.dimensions or not same_type(
            parameter.element_type, shape.element_type
        ):
            op.fail(f"comparator {comparator} does not take elements of {shape}")
    result = comparator.result
    if result.element_type is not PRED or result.dimensions:
        op.fail(f"the comparator must give a pred: {comparator}")


def _topk(op: Operation) -> Shape:
    shape, k = op.array(0), op.integer("k")
    if not shape.dimensions or not 0 <= k <= shape.dimensions[-1]:
        op.fail(f"k = {k} does not fit the last dimension of {dims_text(shape)}")
    sizes = (*shape.dimensions[:-1], k)
    dynamic = (*flags(shape)[:-1], False)
    return Shape.tuple_of(
        row_major(shape.element_type, sizes, dynamic), row_major(S32, sizes, dynamic)
    )


def _scan(op: Operation) -> Shape | None:
    """Inputs then carries in, outputs then carries out; outputs gain the axis."""
    axis, carries = op.integer("dimensions"), op.integer("num_carries")
    body = op.signature()
    inputs = len(op.operands) - carries
    if carries < 0 or inputs < 0:
        op.fail(f"{carries} carries are more than the operands")
    if len(body.parameters) != len(op.operands):
        op.fail(f"the scanned computation takes {len(op.operands)} parameters: {body}")
    length = -1
    for number in range(inputs):
        shape = op.array(number)
        if not 0 <= axis < len(shape.dimensions):
            op.fail(f"dimension {axis} is not a dimension of {dims_text(shape)}")
        length = shape.dimensions[axis]
    if length < 0:
        return None
    results = elements_of(body.result)
    outputs = len(results) - carries
    if outputs < 0:
        op.fail(f"the scanned computation gives fewer than {carries} results: {body}")
    out = []
    for number, shape in enumerate(results):
        if number < outputs:
            dims = shape.dimensions
            if axis > len(dims):
                op.fail(f"output {dims_text(shape)} cannot gain dimension {axis}")
            shape = row_major(shape.element_type, (*dims[:axis], length, *dims[axis:]))
        out.append(shape)
    return Shape.tuple_of(*out) if body.result.is_tuple else out[0]


def _batch_norm_training(op: Operation) -> Shape:
    operand, statistics = _batch_norm_operands(op, (1, 2))
    return Shape.tuple_of(operand, statistics, statistics)


def _batch_norm_inference(op: Operation) -> Shape:
    return _batch_norm_operands(op, (1, 2, 3, 4))[0]


def _batch_norm_grad(op: Operation) -> Shape:
    operand, statistics = _batch_norm_operands(op, (1, 2, 3))
    gradient = op.array(4)
    if not same_but_precision(operand, gradient):
        op.fail(f"gradient {dims_text(gradient)} differs from {dims_text(operand)}")
    return Shape.tuple_of(operand, statistics, statistics)


def _batch_norm_operands(
    op: Operation, per_feature: tuple[int, ...]
) -> tuple[Shape, Shape]:
    operand = op.array(0)
    feature = op.integer("feature_index")
    if not operand.element_type.is_floating:
        op.fail(f"takes floating elements, got {dims_text(operand)}")
    if not 0 <= feature < len(operand.dimensions):
        op.fail(f"feature_index {feature} is not a dimension of {dims_text(operand)}")
    size = operand.dimensions[feature]
    for number in per_feature:
        shape = op.array(number)
        if not same_dims(shape.dimensions, (size,)) or not same_type(
            shape.element_type, operand.element_type
        ):
            op.fail(
                f"operand {number} must have {size} features, got {dims_text(shape)}"
            )
    statistics = row_major(operand.element_type, (size,), (flags(operand)[feature],))
    return operand, statistics


RULES: Final[dict[str, Rule]] = {
    "batch-norm-grad": _batch_norm_grad,
    "batch-norm-inference": _batch_norm_inference,
    "batch-norm-training": _batch_norm_training,
    "map": _map,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "scan": _scan,
    "select-and-scatter": _select_and_scatter,
    "sort": _sort,
    "topk": _topk,
}
