"""Convolutions with all dimension numbers, dilations, reversals and groups."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.window import ConvolutionDimensionNumbers, Window
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.contraction import finisher, multiply_matrices
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported
from msa.runtime.evaluator.windows import padded_base, window_index


@kernel("convolution")
def _convolution(instruction: Instruction, context: Context) -> Kernel:
    """Input `[batch, feature, space…]`, kernel `[out, in, space…]`, regrouped.

    A batch group is turned into a feature group of an input whose batch is smaller,
    so that one case remains: `groups` independent convolutions.
    """
    del context
    a = instruction.attributes
    numbers: ConvolutionDimensionNumbers = a["dim_labels"]
    rank = len(numbers.input_spatial)
    window: Window = a.get("window", Window(()))
    if len(window.dimensions) != rank:
        raise unsupported(instruction, "the window does not fit the dimension labels")
    groups = a.get("feature_group_count", 1)
    batch_groups = a.get("batch_group_count", 1)
    count = max(groups, batch_groups)
    finish = finisher(instruction)
    spatial = tuple(finish.dimensions[d] for d in numbers.output_spatial)
    lhs_order = (numbers.input_batch, numbers.input_feature, *numbers.input_spatial)
    rhs_order = (
        numbers.kernel_output_feature,
        numbers.kernel_input_feature,
        *numbers.kernel_spatial,
    )
    out_order = (numbers.output_batch, numbers.output_feature, *numbers.output_spatial)
    back = tuple(int(i) for i in np.argsort(out_order))
    flips = tuple(2 + i for i, d in enumerate(window.dimensions) if d.window_reversal)

    def run(lhs: Any, rhs: Any) -> Array:
        x = np.asarray(lhs).transpose(lhs_order)
        w = np.flip(np.asarray(rhs).transpose(rhs_order), flips)
        x = _padded(x, window)
        # [groups, batch, feature, space…] and [groups, out, in, space…]
        if batch_groups > 1:
            batch = len(x) // batch_groups
            x = x.reshape((batch_groups, batch, *x.shape[1:]))
        else:
            features = x.shape[1] // groups
            x = x.reshape((len(x), groups, features, *x.shape[2:])).swapaxes(0, 1)
        w = w.reshape((count, len(w) // count, *w.shape[1:]))
        product = _convolve(x, w, window, spatial)
        # [groups, batch, space…, out] -> [batch, groups * out, space…]
        moved = np.moveaxis(product, -1, 2).swapaxes(0, 1)
        batch, _, outs = moved.shape[:3]
        merged = moved.reshape((batch, count * outs, *spatial))
        return finish(merged.transpose(back))

    return run


def _padded(x: Array, window: Window) -> Array:
    plain = (
        Window(
            (
                type(window.dimensions[0])(1),
                type(window.dimensions[0])(1),
                *window.dimensions,
            )
        )
        if window.dimensions
        else Window(())
    )
    return padded_base(x, 0, plain) if window.dimensions else x


def _convolve(x: Array, w: Array, window: Window, spatial: tuple[int, ...]) -> Array:
    """`[g, n, c, space…] * [g, o, c, kernel…] -> [g, n, space…, o]`.

    Either one matrix product per kernel place, summed, or one per output place:
    whichever are fewer (a gradient by the kernel has few outputs and a huge kernel).
    """
    groups, batch, features = x.shape[:3]
    outs = w.shape[1]
    kernel_sizes = w.shape[3:]
    channels_last = np.ascontiguousarray(np.moveaxis(x, 2, -1))
    if math.prod(spatial) < math.prod(kernel_sizes):
        return _per_output(channels_last, w, window, spatial)
    # Weights as [kernel places, groups, c, o].
    taps = np.moveaxis(w, (0, 1, 2), (-3, -1, -2))
    count = math.prod(kernel_sizes)
    taps = np.ascontiguousarray(taps).reshape((count, groups, features, outs))
    total: Array | None = None
    places = itertools.product(*(range(n) for n in kernel_sizes))
    rows = batch * math.prod(spatial)
    for tap, place in zip(taps, places, strict=True):
        index = window_index(place, window, spatial)
        part = channels_last[(slice(None), slice(None), *index)]
        part = np.ascontiguousarray(part).reshape((groups, rows, features))
        product = multiply_matrices(part, tap)
        total = product if total is None else np.add(total, product, out=total)
    if total is None:
        total = np.zeros((groups, rows, outs), dtype=x.dtype)
    return total.reshape((groups, batch, *spatial, outs))


def _per_output(
    channels_last: Array, w: Array, window: Window, spatial: tuple[int, ...]
) -> Array:
    groups, batch = channels_last.shape[:2]
    outs, length = w.shape[1], math.prod(w.shape[2:])
    weights = np.ascontiguousarray(np.moveaxis(np.moveaxis(w, 2, -1), 1, -1))
    weights = weights.reshape((groups, length, outs))
    columns = []
    for place in itertools.product(*(range(n) for n in spatial)):
        index = tuple(
            slice(
                p * d.stride,
                p * d.stride + (d.size - 1) * d.window_dilation + 1,
                d.window_dilation,
            )
            for p, d in zip(place, window.dimensions, strict=True)
        )
        part = channels_last[(slice(None), slice(None), *index)]
        rows = np.ascontiguousarray(part).reshape((groups, batch, length))
        columns.append(multiply_matrices(rows, weights))
    stacked = (
        np.stack(columns, axis=2) if columns else np.zeros((groups, batch, 0, outs))
    )
    return stacked.reshape((groups, batch, *spatial, outs))
