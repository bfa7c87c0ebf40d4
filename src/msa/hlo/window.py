"""Windows of convolutions and reductions, and convolution dimension labels.

Source: `xla/window_util.cc`, `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """The window along one dimension.

    `window_dilation` spreads the window's own elements (`rhs_dilate`),
    `base_dilation` those of the operand (`lhs_dilate`); 1 means none.
    """

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 1
    base_dilation: int = 1
    window_reversal: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """One `WindowDimension` per windowed dimension.

    >>> str(Window((WindowDimension(3, 2, 1, 1), WindowDimension(3, 2))))
    '{size=3x3 stride=2x2 pad=1_1x0_0}'
    """

    dimensions: tuple[WindowDimension, ...] = ()

    def __str__(self) -> str:
        dims = self.dimensions
        if not dims:
            return "{}"

        def row(name: str, text: Callable[[WindowDimension], str]) -> str:
            return f"{name}=" + "x".join(map(text, dims))

        parts = [row("size", lambda d: str(d.size))]
        if any(d.stride != 1 for d in dims):
            parts.append(row("stride", lambda d: str(d.stride)))
        if any(d.padding_low or d.padding_high for d in dims):
            parts.append(row("pad", lambda d: f"{d.padding_low}_{d.padding_high}"))
        if any(d.base_dilation != 1 for d in dims):
            parts.append(row("lhs_dilate", lambda d: str(d.base_dilation)))
        if any(d.window_dilation != 1 for d in dims):
            parts.append(row("rhs_dilate", lambda d: str(d.window_dilation)))
        if any(d.window_reversal for d in dims):
            parts.append(row("rhs_reversal", lambda d: str(int(d.window_reversal))))
        return "{" + " ".join(parts) + "}"


@dataclass(frozen=True, slots=True)
class ConvolutionDimensionNumbers:
    """Which dimension of input, kernel and output plays which part.

    Attributes:
        lhs, rhs, output: labels as in text; `b` batch, `f` feature, `i` kernel
            input feature, `o` kernel output feature, digits spatial dimensions,
            `?` a dimension without a part.

    >>> numbers = ConvolutionDimensionNumbers("b01f", "01io", "b01f")
    >>> numbers.input_batch, numbers.kernel_output_feature, numbers.output_spatial
    (0, 3, (1, 2))
    """

    lhs: str
    rhs: str
    output: str

    @property
    def input_batch(self) -> int:
        """Batch dimension of the input."""
        return self.lhs.index("b")

    @property
    def input_feature(self) -> int:
        """Feature dimension of the input."""
        return self.lhs.index("f")

    @property
    def input_spatial(self) -> tuple[int, ...]:
        """Spatial dimensions of the input, in order of their labels."""
        return _spatial(self.lhs)

    @property
    def kernel_input_feature(self) -> int:
        """Input feature dimension of the kernel."""
        return self.rhs.index("i")

    @property
    def kernel_output_feature(self) -> int:
        """Output feature dimension of the kernel."""
        return self.rhs.index("o")

    @property
    def kernel_spatial(self) -> tuple[int, ...]:
        """Spatial dimensions of the kernel, in order of their labels."""
        return _spatial(self.rhs)

    @property
    def output_batch(self) -> int:
        """Batch dimension of the output."""
        return self.output.index("b")

    @property
    def output_feature(self) -> int:
        """Feature dimension of the output."""
        return self.output.index("f")

    @property
    def output_spatial(self) -> tuple[int, ...]:
        """Spatial dimensions of the output, in order of their labels."""
        return _spatial(self.output)

    def __str__(self) -> str:
        return f"{self.lhs}_{self.rhs}->{self.output}"


def _spatial(labels: str) -> tuple[int, ...]:
    places = {c: i for i, c in enumerate(labels) if c.isdecimal()}
    return tuple(places[c] for c in sorted(places))
