"""Reductions, maps and scans over dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.literal import numpy_dtype
from msa.runtime.evaluator.applied import Applied, applied
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array, fitter
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported

_ROUNDING: Final = frozenset({np.add, np.multiply})
_SUMMED_IN: Final = {"e": np.float64, "f": np.float64, "F": np.complex128}
"""Type in which numbers of a narrower type (by numpy's letter) are summed."""


@kernel("reduce")
def _reduce(instruction: Instruction, context: Context) -> Kernel:
    axes = instruction.attributes["dimensions"]
    count = len(instruction.operands) // 2
    function = applied(instruction.called_computations[0], context)
    ufunc = function.ufunc
    kind = instruction.operands[0].shape.element_type
    if count == 1 and ufunc is not None:
        fit = fitter(kind)
        known = ufunc

        def native(x: Any, init: Any) -> Any:
            folded = known(init, fold(known, np.asarray(x), axes))
            return folded if fit is None else fit(folded)

        return native

    def generic(*operands: Any) -> Any:
        arrays = [np.asarray(x) for x in operands[:count]]
        results = fold_tree(function, arrays, operands[count:], axes)
        return results[0] if count == 1 else results

    return generic


def fold(ufunc: np.ufunc, x: Array, axes: tuple[int, ...]) -> Any:
    """Reduce some axes with a numpy function; the result has the type of `x`.

    The operand is made contiguous first: numpy's order of summation follows strides,
    and equal values must give equal bits wherever they came from. Sums and products
    are taken in a wider type: numpy adds one after the other along all axes but the
    last, and would lose a digit of f32 over some thousand elements.
    """
    if not axes:
        return x
    x = np.asarray(x, order="C")
    if x.size == 0 and ufunc.identity is None:
        return _empty(ufunc, x, axes)
    if x.dtype == np.bool_:
        return ufunc.reduce(x, axis=axes)
    wide = _SUMMED_IN.get(x.dtype.char, x.dtype) if ufunc in _ROUNDING else x.dtype
    return ufunc.reduce(x, axis=axes, dtype=wide).astype(x.dtype, copy=False)


def _empty(ufunc: np.ufunc, x: Array, axes: tuple[int, ...]) -> Array:
    """Nothing to take the maximum or minimum of: the neutral element."""
    shape = [n for d, n in enumerate(x.shape) if d not in axes]
    if x.dtype.kind == "f":
        value = -np.inf if ufunc is np.maximum else np.inf
    else:
        limits = np.iinfo(x.dtype)
        value = limits.min if ufunc is np.maximum else limits.max
    return np.full(shape, value, dtype=x.dtype)


def fold_tree(
    function: Applied,
    arrays: Sequence[Array],
    inits: Sequence[Any],
    axes: tuple[int, ...],
) -> tuple[Array, ...]:
    """Reduce with any associative function, neighbours first; O(log n) passes."""
    rank = arrays[0].ndim
    kept = [d for d in range(rank) if d not in axes]
    dimensions = [arrays[0].shape[d] for d in kept]
    length = math.prod(arrays[0].shape[d] for d in axes)
    rows = [
        np.transpose(x, [*axes, *kept]).reshape((length, *dimensions)) for x in arrays
    ]
    while length > 1:
        even = length & ~1
        pairs = function(*(r[0:even:2] for r in rows), *(r[1:even:2] for r in rows))
        # A computation that ignores an operand may give fewer dimensions.
        pairs = tuple(np.broadcast_to(p, (even // 2, *dimensions)) for p in pairs)
        if even < length:
            pairs = tuple(
                np.concatenate((p, r[even:])) for p, r in zip(pairs, rows, strict=True)
            )
        rows = list(pairs)
        length = even // 2 + (length & 1)
    if length == 0:
        return tuple(
            np.full(dimensions, init, dtype=x.dtype)
            for init, x in zip(inits, arrays, strict=True)
        )
    last = function(*inits, *(r[0] for r in rows))
    return tuple(
        np.array(np.broadcast_to(v, dimensions), dtype=x.dtype)
        for v, x in zip(last, arrays, strict=True)
    )


@kernel("map")
def _map(instruction: Instruction, context: Context) -> Kernel:
    function = applied(instruction.called_computations[0], context)
    dimensions = instruction.shape.dimensions

    def run(*operands: Any) -> Array:
        (result,) = function(*operands)
        return np.broadcast_to(result, dimensions)

    return run


@kernel("scan")
def _scan(instruction: Instruction, context: Context) -> Kernel:
    """Step along one dimension, handing carries on.

    Operands are the inputs, then the initial carries; the computation takes a slice
    of each input and the carries and gives output slices and new carries; the
    result is the outputs, then the final carries.
    """
    from msa.runtime.evaluator.interpreter import run_computation

    axis = instruction.attributes["dimensions"][0]
    carries = instruction.attributes["num_carries"]
    backwards = instruction.attributes.get("is_reverse", False)
    callee = instruction.called_computations[0]
    count = len(instruction.operands) - carries
    if count < 1 or not instruction.shape.is_tuple:
        raise unsupported(instruction, "without inputs or with a single result")
    made = instruction.shape.children[: len(instruction.shape.children) - carries]

    def run(*operands: Any) -> Any:
        inputs = [np.asarray(x) for x in operands[:count]]
        state = list(operands[count:])
        length = inputs[0].shape[axis]
        places = range(length - 1, -1, -1) if backwards else range(length)
        rows: list[tuple[Any, ...]] = []
        for i in places:
            slices = [np.take(x, i, axis) for x in inputs]
            result = run_computation(callee, [*slices, *state], context)
            state = list(result[len(result) - carries :])
            rows.append(result[: len(result) - carries])
        if backwards:
            rows.reverse()
        if not rows:
            return (
                *(np.zeros(s.dimensions, numpy_dtype(s.element_type)) for s in made),
                *state,
            )
        outs = [np.stack(column, axis) for column in zip(*rows, strict=True)]
        return (*outs, *state)

    return run
