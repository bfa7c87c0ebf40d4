"""Primitive types: names, widths and numeric families.

Source of names and widths: `xla/xla_data.proto`, `xla/primitive_util.h`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class PrimitiveType:
    """An element type; one object per type, so compare with `is`.

    Attributes:
        name: the text name, such as `bf16`.
        bits: width of one element, 0 for types without elements.
        family: `pred`, `signed`, `unsigned`, `float`, `complex` or `special`.
    """

    name: str
    bits: int
    family: str

    @property
    def byte_width(self) -> int:
        """Bytes of one unpacked element: `ceil(bits / 8)`.

        >>> PRIMITIVE_TYPES["s4"].byte_width
        1
        """
        return (self.bits + 7) // 8

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating-point type (complex is not)."""
        return self.family == "float"

    @property
    def is_integral(self) -> bool:
        """Whether this is a signed or unsigned integer (pred is not)."""
        return self.family in ("signed", "unsigned")

    @property
    def is_complex(self) -> bool:
        """Whether this is `c64` or `c128`."""
        return self.family == "complex"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return _by_name, (self.name,)


def _by_name(name: str) -> PrimitiveType:
    return PRIMITIVE_TYPES[name]


_ROWS: Final = {
    "pred": {"pred": 1},
    "signed": {"s1": 1, "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64},
    "unsigned": {"u1": 1, "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64},
    "float": {
        "f4e2m1fn": 4,
        "f6e3m2fn": 6,
        "f6e2m3fn": 6,
        "f8e5m2": 8,
        "f8e4m3": 8,
        "f8e4m3fn": 8,
        "f8e4m3b11fnuz": 8,
        "f8e3m4": 8,
        "f8e5m2fnuz": 8,
        "f8e4m3fnuz": 8,
        "f8e8m0fnu": 8,
        "f16": 16,
        "bf16": 16,
        "f32": 32,
        "f64": 64,
    },
    "complex": {"c64": 64, "c128": 128},
    "special": {"token": 0, "opaque": 0, "tuple": 0, "buffer": 0},
}

PRIMITIVE_TYPES: Final[dict[str, PrimitiveType]] = {
    name: PrimitiveType(name, bits, family)
    for family, members in _ROWS.items()
    for name, bits in members.items()
}

PRED: Final = PRIMITIVE_TYPES["pred"]
S32: Final = PRIMITIVE_TYPES["s32"]
U32: Final = PRIMITIVE_TYPES["u32"]
F32: Final = PRIMITIVE_TYPES["f32"]
TOKEN: Final = PRIMITIVE_TYPES["token"]
OPAQUE: Final = PRIMITIVE_TYPES["opaque"]
TUPLE: Final = PRIMITIVE_TYPES["tuple"]
BUFFER: Final = PRIMITIVE_TYPES["buffer"]
