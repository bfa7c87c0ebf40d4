"""Constants: their shape and text, decoded to numpy on demand.

numpy types of `Literal.to_numpy`: `pred` is bool; integers keep their width
(sub-byte ones take the 8-bit type of their sign); `f16`, `f32`, `f64`, `c64` and
`c128` are native; `bf16` and every narrower float are float32, which holds all
their values exactly.

Source: `xla/literal.h`, `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from msa.errors import HloError
from msa.hlo.primitive import PrimitiveType
from msa.hlo.shape import Shape

_NATIVE: Final = {
    "pred": "bool",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}

NumpyTree = NDArray[np.generic] | tuple["NumpyTree", ...] | None


def numpy_dtype(kind: PrimitiveType) -> np.dtype[np.generic]:
    """The numpy type that holds elements of a primitive type (see the module).

    >>> from msa.hlo.primitive import PRIMITIVE_TYPES
    >>> str(numpy_dtype(PRIMITIVE_TYPES["bf16"])), str(numpy_dtype(PRIMITIVE_TYPES["s4"]))
    ('float32', 'int8')
    """
    if kind.name in _NATIVE:
        return np.dtype(_NATIVE[kind.name])
    if kind.is_integral:
        sign = "int" if kind.family == "signed" else "uint"
        return np.dtype(f"{sign}{max(8, kind.bits)}")
    if kind.is_floating:
        return np.dtype("float32")
    raise HloError(f"{kind.name} has no elements")


class Literal:
    """An immutable constant.

    Attributes:
        shape: its shape.
        text: as written in HLO text.

    Two literals are equal when their shapes and canonical texts are.

    >>> from msa.hlo import parse_shape
    >>> Literal(parse_shape("s32[3]"), "{1,2,  3}").canonical
    '{1, 2, 3}'
    """

    __slots__ = ("_canonical", "shape", "text")

    def __init__(self, shape: Shape, text: str) -> None:
        self.shape = shape
        self.text = text
        self._canonical: str | None = None

    @property
    def is_elided(self) -> bool:
        """Whether the contents were left out of the text (`{...}`)."""
        return "..." in self.text

    def to_numpy(self) -> NumpyTree:
        """The value as numpy arrays; tuples are tuples, tokens are None.

        Raises:
            HloError: the contents were elided.
        """
        from msa.hlo.literal_text import decode_literal

        return decode_literal(self.shape, self.text)

    @property
    def canonical(self) -> str:
        """Text in one line, printed the one standard way."""
        if self._canonical is None:
            from msa.hlo.literal_print import canonical_text

            self._canonical = canonical_text(self.shape, self.text)
        return self._canonical

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Literal):
            return NotImplemented
        if self.shape != other.shape:
            return False
        return self.text == other.text or self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash((self.shape, self.canonical))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 40 else self.text[:37] + "…"
        return f"<Literal {self.shape} {text}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Literal, (self.shape, self.text)
