"""Counts of multiplications and reductions under sliding windows.

Source: `xla/service/hlo_cost_analysis.cc`.
"""

from __future__ import annotations

import math

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.window import ConvolutionDimensionNumbers, Window, WindowDimension


def valid_positions(window: WindowDimension, inputs: int, kernel: int, out: int) -> int:
    """Pairs of kernel and output elements of one dimension that meet a real input.

    An output element `o` and a kernel element `k` meet at
    `o * stride - pad + k * dilation`; with dilated inputs only every `base_dilation`-th
    place is real. Vectorised over the shorter of kernel and output.
    """
    if min(inputs, kernel, out) <= 0:
        return 0
    # Both are steps along the input: count for each of the fewer ones how many of
    # the others hit a multiple of the base dilation within bounds.
    a, a_count = window.stride, out
    b, b_count = window.window_dilation, kernel
    if a_count < b_count:
        a, a_count, b, b_count = b, b_count, a, a_count
    spread = window.base_dilation
    offset = np.arange(b_count, dtype=np.int64) * b - window.padding_low
    if a == 0:
        hit = (offset % spread == 0) & (offset >= 0) & (offset <= (inputs - 1) * spread)
        return int(np.count_nonzero(hit)) * a_count
    shared = math.gcd(a, spread)
    period = spread // shared
    low = np.maximum(0, -((offset) // a))
    high = np.minimum(a_count - 1, ((inputs - 1) * spread - offset) // a)
    if period == 1:
        counts = high - low + 1
    else:
        inverse = pow(a // shared, -1, period)
        first = (-(offset // shared) % period) * inverse % period
        start = low + (first - low) % period
        counts = (high - start) // period + 1
    counts = np.where(offset % shared == 0, np.maximum(0, counts), 0)
    return int(counts.sum())


def convolution_flops(instruction: Instruction) -> int:
    """Multiplications and additions of a convolution that touch real inputs."""
    lhs, rhs = (x.shape.as_array.dimensions for x in instruction.operands[:2])
    result = instruction.shape.as_array.dimensions
    numbers: ConvolutionDimensionNumbers = instruction.attributes["dim_labels"]
    window: Window = instruction.attributes.get("window", Window())
    groups = max(1, instruction.attributes.get("feature_group_count", 1))
    batch_groups = max(1, instruction.attributes.get("batch_group_count", 1))
    flops: int = 2 * (lhs[numbers.input_feature] // groups)
    flops *= result[numbers.output_feature]
    flops *= lhs[numbers.input_batch] // batch_groups
    for dimension, at_lhs, at_rhs, at_out in zip(
        window.dimensions,
        numbers.input_spatial,
        numbers.kernel_spatial,
        numbers.output_spatial,
        strict=False,
    ):
        flops *= valid_positions(dimension, lhs[at_lhs], rhs[at_rhs], result[at_out])
    return flops


def window_size(window: Window) -> int:
    """Elements under the window."""
    return math.prod(d.size for d in window.dimensions)


def reduce_window_counts(instruction: Instruction) -> tuple[int, int]:
    """Elements under the window and how often the reduction is applied.

    A window that covers everything from everywhere (as wide as twice the dimension)
    is one reduction followed by a broadcast, and counted as such.
    """
    window: Window = instruction.attributes.get("window", Window())
    shape = instruction.shape
    first = shape.children[0] if shape.is_tuple else shape
    size = window_size(window)
    wide = _reduce_broadcast_dimension(instruction, window)
    if wide >= 0:
        size = shape.dimensions[wide]
        return size, first.element_count // max(1, size) + (size - 1)
    return size, (size - 1) * first.element_count


def _reduce_broadcast_dimension(instruction: Instruction, window: Window) -> int:
    if not instruction.shape.is_array:
        return -1
    dimensions = window.dimensions
    if sum(d.size != 1 for d in dimensions) != 1:
        return -1
    if sum(bool(d.padding_low or d.padding_high) for d in dimensions) != 1:
        return -1
    sizes = instruction.shape.as_array.dimensions
    for i, d in enumerate(dimensions):
        if (
            d.size != 1
            and d.padding_low == d.padding_high != 0
            and d.size == 2 * d.padding_low + 1
            and d.padding_low == sizes[i] - 1
        ):
            return i
    return -1
