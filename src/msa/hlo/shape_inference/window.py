"""Sizes of windowed operations: reduce-window, convolution, select-and-scatter.

Source: `xla/window_util.cc`, `xla/service/shape_inference.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msa.hlo.shape import UNBOUNDED
from msa.hlo.shape_inference.operation import Operation

if TYPE_CHECKING:
    from msa.hlo.window import WindowDimension


def dilated(size: int, dilation: int) -> int:
    """Extent of `size` points that lie `dilation` apart."""
    return (size - 1) * dilation + 1 if size > 0 else 0


def window_dimensions(op: Operation, rank: int) -> Sequence[WindowDimension]:
    """The window of an operation: one entry for each of `rank` dimensions.

    A missing window counts as one without dimensions.
    """
    window = op.attribute("window", None)
    dimensions = () if window is None else window.dimensions
    if len(dimensions) != rank:
        op.fail(f"the window has {len(dimensions)} dimensions where {rank} are needed")
    for number, d in enumerate(dimensions):
        for what, value in (
            ("size", d.size),
            ("stride", d.stride),
            ("base dilation", d.base_dilation),
            ("window dilation", d.window_dilation),
        ):
            if value < 1:
                op.fail(f"window {what} of dimension {number} is not positive: {value}")
    return tuple(dimensions)


def windowed_sizes(
    op: Operation, sizes: Sequence[int], window: Sequence[WindowDimension]
) -> tuple[int, ...]:
    """Number of window placements along each dimension."""
    out = []
    for number, (size, d) in enumerate(zip(sizes, window, strict=True)):
        if size == UNBOUNDED:
            out.append(UNBOUNDED)
            continue
        padded = d.padding_low + dilated(size, d.base_dilation) + d.padding_high
        if padded < 0:
            op.fail(f"padding makes dimension {number} negative: {padded}")
        extent = dilated(d.size, d.window_dilation)
        fits = padded > 0 and extent <= padded
        out.append((padded - extent) // d.stride + 1 if fits else 0)
    return tuple(out)
