"""Windowed reductions: reduce-window and select-and-scatter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.window import Window, WindowDimension
from msa.runtime.evaluator.applied import Applied, applied
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array, fitter
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported

Arrays = tuple[Array, ...]
Combine = Callable[[Arrays, Arrays], Arrays]


def dilated_length(size: int, dilation: int) -> int:
    """Length of `size` elements with `dilation - 1` holes between neighbours."""
    return (size - 1) * dilation + 1 if size else 0


def padded_base(x: Array, value: Any, window: Window) -> Array:
    """The operand with holes and edges filled by `value`; negative padding cuts."""
    shape, to, out_of = [], [], []
    for size, d in zip(x.shape, window.dimensions, strict=True):
        step = d.base_dilation
        length = dilated_length(size, step)
        total = max(0, length + d.padding_low + d.padding_high)
        shape.append(total)
        first = 0 if d.padding_low >= 0 else -(d.padding_low // step)
        last = min(size - 1, (total - 1 - d.padding_low) // step) if total else -1
        if last < first:
            to.append(slice(0, 0))
            out_of.append(slice(0, 0))
            continue
        start = d.padding_low + first * step
        to.append(slice(start, start + (last - first) * step + 1, step))
        out_of.append(slice(first, last + 1))
    if tuple(shape) == x.shape:
        return x
    out = np.full(shape, value, dtype=x.dtype)
    out[tuple(to)] = x[tuple(out_of)]
    return out


def window_count(length: int, d: WindowDimension) -> int:
    """How many windows fit along a padded dimension."""
    span = dilated_length(d.size, d.window_dilation)
    return 0 if length < span else (length - span) // d.stride + 1


@kernel("reduce-window")
def _reduce_window(instruction: Instruction, context: Context) -> Kernel:
    window: Window = instruction.attributes["window"]
    count = len(instruction.operands) // 2
    function = applied(instruction.called_computations[0], context)
    dimensions = (
        instruction.shape.children[0] if count > 1 else instruction.shape
    ).dimensions
    kinds = [x.shape.element_type for x in instruction.operands[:count]]
    fits = [fitter(kind) for kind in kinds]
    holes = any(
        d.padding_low > 0 or d.padding_high > 0 or d.base_dilation > 1
        for d in window.dimensions
    )

    def run(*operands: Any) -> Any:
        inits = operands[count:]
        arrays: Arrays = tuple(
            padded_base(np.asarray(x), init, window)
            for x, init in zip(operands[:count], inits, strict=True)
        )
        combine = _combiner(function)
        masked = holes and not _is_neutral(function, inits[0])
        if masked:
            there = np.ones(np.shape(operands[0]), dtype=bool)
            arrays = (*arrays, padded_base(there, False, window))
            combine = _masked(combine)
        for axis, d in enumerate(window.dimensions):
            arrays = _slide(combine, arrays, axis, d)
        results = function(*inits, *arrays[:count])
        if masked:
            results = tuple(
                np.where(arrays[count], r, init)
                for r, init in zip(results, inits, strict=True)
            )
        shaped = tuple(
            np.array(np.broadcast_to(r, dimensions))
            if fit is None
            else fit(np.broadcast_to(r, dimensions))
            for r, fit in zip(results, fits, strict=True)
        )
        return shaped[0] if count == 1 else shaped

    return run


def _cut(arrays: Arrays, axis: int, cut: slice) -> Arrays:
    index = (slice(None),) * axis + (cut,)
    return tuple(x[index] for x in arrays)


def _slide(combine: Combine, arrays: Arrays, axis: int, d: WindowDimension) -> Arrays:
    """Combine the windows along one dimension.

    Windows of length 2^k are made from pairs of half of that; a window is composed
    of those by the binary digits of its size, so the cost is O(n log size).
    """
    length = arrays[0].shape[axis]
    count = window_count(length, d)
    span = (count - 1) * d.stride + 1 if count else 0
    if d.size == 1 or count == 0:
        return _cut(arrays, axis, slice(0, span, d.stride))

    def windows(of: Arrays, offset: int) -> Arrays:
        start = offset * d.window_dilation
        return _cut(of, axis, slice(start, start + span, d.stride))

    if d.size <= 4:
        result = windows(arrays, 0)
        for offset in range(1, d.size):
            result = combine(result, windows(arrays, offset))
        return result
    power, offset = arrays, 0
    total: Arrays | None = None
    for bit in range(d.size.bit_length()):
        if d.size >> bit & 1:
            part = windows(power, offset)
            total = part if total is None else combine(total, part)
            offset += 1 << bit
        step = (1 << bit) * d.window_dilation
        if power[0].shape[axis] > step and d.size >> (bit + 1):
            left = _cut(power, axis, slice(0, -step))
            power = combine(left, _cut(power, axis, slice(step, None)))
    assert total is not None
    return total


def _combiner(function: Applied) -> Combine:
    ufunc = function.ufunc
    if ufunc is not None and not function.rounds:
        known = ufunc
        return lambda a, b: (known(a[0], b[0]),)

    def combine(a: Arrays, b: Arrays) -> Arrays:
        shape = a[0].shape
        return tuple(np.broadcast_to(r, shape) for r in function(*a, *b))

    return combine


def _masked(combine: Combine) -> Combine:
    """`combine` that leaves out elements whose last array says they are padding."""

    def masked(a: Arrays, b: Arrays) -> Arrays:
        both = combine(a[:-1], b[:-1])
        either = [
            np.where(a[-1], np.where(b[-1], r, x), y)
            for r, x, y in zip(both, a, b, strict=False)
        ]
        return (*either, a[-1] | b[-1])

    return masked


def _is_neutral(function: Applied, init: Any) -> bool:
    """Whether combining with `init` is known to change nothing."""
    ufunc, value = function.ufunc, np.asarray(init)
    if ufunc in (np.add, np.logical_or):
        return bool(value == 0)
    if ufunc in (np.multiply, np.logical_and):
        return bool(value == 1)
    if ufunc in (np.maximum, np.minimum) and value.dtype.kind in "iuf":
        lowest = ufunc is np.maximum
        if value.dtype.kind == "f":
            return bool(value == (-np.inf if lowest else np.inf))
        limits = np.iinfo(value.dtype)
        return int(value) == (limits.min if lowest else limits.max)
    return False


@kernel("select-and-scatter")
def _select_and_scatter(instruction: Instruction, context: Context) -> Kernel:
    """Per window, the selected element of the operand receives the source's value."""
    window: Window = instruction.attributes["window"]
    select = applied(instruction.called_computations[0], context)
    scatter = applied(instruction.called_computations[1], context)
    operand = instruction.operands[0].shape.dimensions
    source_shape = instruction.operands[1].shape.dimensions
    if any(d.padding_low < 0 or d.padding_high < 0 for d in window.dimensions):
        raise unsupported(instruction, "negative padding")

    def run(x: Any, source: Any, init: Any) -> Array:
        x = np.asarray(x)
        padded = padded_base(x, 0, window)
        valid = padded_base(np.ones(operand, dtype=bool), False, window)
        offsets = list(itertools.product(*(range(d.size) for d in window.dimensions)))
        chosen = _choose(select, padded, valid, offsets, window, source_shape)
        out = np.full(padded.shape, init, dtype=x.dtype)
        for number, offset in enumerate(offsets):
            index = window_index(offset, window, source_shape)
            here = out[index]
            (new,) = scatter(here, source)
            out[index] = np.where(chosen == number, new, here)
        crop = tuple(
            slice(max(0, d.padding_low), max(0, d.padding_low) + n)
            for n, d in zip(operand, window.dimensions, strict=True)
        )
        return out[crop]

    return run


def window_index(
    offset: Sequence[int], window: Window, counts: tuple[int, ...]
) -> tuple[slice, ...]:
    """The elements that lie at `offset` in their windows, `counts` windows a side."""
    return tuple(
        slice(
            o * d.window_dilation,
            o * d.window_dilation + max(0, (n - 1) * d.stride + 1),
            d.stride,
        )
        for o, d, n in zip(offset, window.dimensions, counts, strict=True)
    )


def _choose(
    select: Applied,
    padded: Array,
    valid: Array,
    offsets: Sequence[Sequence[int]],
    window: Window,
    counts: tuple[int, ...],
) -> Array:
    """Number of the selected offset of each window, -1 where none is inside."""
    best = np.zeros(counts, dtype=padded.dtype)
    chosen = np.full(counts, -1, dtype=np.int64)
    for number, offset in enumerate(offsets):
        index = window_index(offset, window, counts)
        here, inside = padded[index], valid[index]
        (keep,) = select(best, here)
        better = inside & ((chosen < 0) | ~np.asarray(keep, dtype=bool))
        best = np.where(better, here, best)
        chosen = np.where(better, number, chosen)
    return chosen
