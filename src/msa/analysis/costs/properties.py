"""Cost properties of one instruction or computation, in single precision.

Source: `xla/service/hlo_cost_analysis.h`.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_float
from typing import Final

from msa.analysis.values import index_text
from msa.hlo.shape import ShapeIndex

Key = tuple[str, int, ShapeIndex]
"""`("operand" | "out" | "utilization", operand number, index)`; outputs have -1."""

_EXACT: Final = float(1 << 24)

_OPERANDS: Final[tuple[Key, ...]] = tuple(("operand", i, ()) for i in range(256))
_UTILIZATIONS: Final[tuple[Key, ...]] = tuple(
    ("utilization", i, ()) for i in range(256)
)
OUT: Final[Key] = ("out", -1, ())
"""Bytes written, the whole result."""


def single(x: float) -> float:
    """`x` rounded to single precision."""
    return c_float(x).value


def count(x: int) -> float:
    """An integer as a single-precision number."""
    return float(x) if -_EXACT <= x <= _EXACT else c_float(x).value


def operand_key(number: int, index: ShapeIndex = ()) -> Key:
    """Key of the bytes read from a node of an operand."""
    if not index and number < 256:
        return _OPERANDS[number]
    return ("operand", number, index)


def utilization_key(number: int, index: ShapeIndex = ()) -> Key:
    """Key of how often an operand is read, relative to its size."""
    if not index and number < 256:
        return _UTILIZATIONS[number]
    return ("utilization", number, index)


def output_key(index: ShapeIndex = ()) -> Key:
    """Key of the bytes written to a node of the result."""
    return ("out", -1, index) if index else OUT


class Properties:
    """Costs by property; everything that is not stated is 0.

    Attributes:
        flops: floating-point operations; a fused multiply-add counts 2.
        transcendentals: exponentials, sines and the like.
        bytes_accessed: bytes read and written.
        optimal_seconds: time by the slowest resource.
        keyed: bytes and utilization per operand and output node.
    """

    __slots__ = (
        "bytes_accessed",
        "flops",
        "keyed",
        "optimal_seconds",
        "transcendentals",
    )

    def __init__(self) -> None:
        self.flops = 0.0
        self.transcendentals = 0.0
        self.bytes_accessed = 0.0
        self.optimal_seconds = 0.0
        self.keyed: dict[Key, float] = {}

    def __getitem__(self, key: Key) -> float:
        return self.keyed.get(key, 0.0)

    def add(self, other: Properties) -> None:
        """Add every property of another one."""
        self.flops = single(self.flops + other.flops)
        self.transcendentals = single(self.transcendentals + other.transcendentals)
        self.bytes_accessed = single(self.bytes_accessed + other.bytes_accessed)
        self.optimal_seconds = single(self.optimal_seconds + other.optimal_seconds)
        keyed = self.keyed
        for key, value in other.keyed.items():
            old = keyed.get(key)
            keyed[key] = value if old is None else single(old + value)

    def subtract(self, other: Properties) -> None:
        """Take every property of another one away."""
        self.flops = single(self.flops - other.flops)
        self.transcendentals = single(self.transcendentals - other.transcendentals)
        self.bytes_accessed = single(self.bytes_accessed - other.bytes_accessed)
        self.optimal_seconds = single(self.optimal_seconds - other.optimal_seconds)
        for key, value in other.keyed.items():
            self.keyed[key] = single(self[key] - value)

    def take_larger(self, other: Properties) -> None:
        """Keep the larger of each property."""
        self.flops = max(self.flops, other.flops)
        self.transcendentals = max(self.transcendentals, other.transcendentals)
        self.bytes_accessed = max(self.bytes_accessed, other.bytes_accessed)
        self.optimal_seconds = max(self.optimal_seconds, other.optimal_seconds)
        for key, value in other.keyed.items():
            if value > self[key]:
                self.keyed[key] = value

    def copy(self) -> Properties:
        """An independent copy."""
        twin = Properties()
        twin.flops = self.flops
        twin.transcendentals = self.transcendentals
        twin.bytes_accessed = self.bytes_accessed
        twin.optimal_seconds = self.optimal_seconds
        twin.keyed = dict(self.keyed)
        return twin

    def items(self) -> Iterator[tuple[str, float]]:
        """Non-zero properties by their text names (`bytes accessed0{}`, …)."""
        plain = (
            ("flops", self.flops),
            ("transcendentals", self.transcendentals),
            ("bytes accessed", self.bytes_accessed),
            ("optimal_seconds", self.optimal_seconds),
        )
        yield from ((name, value) for name, value in plain if value)
        for (kind, number, index), value in self.keyed.items():
            if value:
                yield _TEXT[kind].format(number, index_text(index)), value

    def __repr__(self) -> str:
        return f"<Properties {dict(self.items())}>"


_TEXT: Final = {
    "operand": "bytes accessed{}{}",
    "out": "bytes accessedout{1}",
    "utilization": "utilization{}{}",
}
