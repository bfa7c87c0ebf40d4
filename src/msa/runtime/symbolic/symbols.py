"""Symbols: values known by a digest of how they came about, not by their elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msa.hlo.shape import Shape
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.values import from_bytes, to_bytes
from msa.runtime.symbolic.digests import digest, digest_bytes

SMALL: Final = 64
"""Arrays of at most this many elements are computed when their operands are known."""

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
"""Neighbouring cells of a value differ by this, so that a shifted copy shows."""


class Symbol:
    """An array of which only a 64-bit token is known; equal tokens, equal arrays."""

    __slots__ = ("token",)

    def __init__(self, token: int) -> None:
        self.token = token

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)

    def __repr__(self) -> str:
        return f"<Symbol {self.token:016x}>"


class SymbolTable:
    """Tokens of values, and what is known about some tokens.

    Small arrays keep their elements: loops count and indices select as in a real run.
    Slices remember what they are part of, so that pieces can be joined again.
    """

    __slots__ = ("_bytes", "_parts")

    def __init__(self) -> None:
        self._bytes: dict[int, Array] = {}
        self._parts: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {}

    def token_of(self, shape: Shape, value: Any) -> int:
        """The token of a value; a small array's depends on its bytes alone."""
        if isinstance(value, Symbol):
            return value.token
        data = to_bytes(shape.as_array, np.asarray(value))
        token = digest_bytes(data.tobytes())
        self._bytes.setdefault(token, data.copy())
        return token

    def value_of(self, shape: Shape, token: int) -> Any:
        """The value of a token, an array where its elements are known."""
        data = self._bytes.get(token)
        if data is None or len(data) != shape.byte_size():
            return Symbol(token)
        return from_bytes(shape.as_array, data)

    def add_part(
        self, token: int, whole: int, bounds: tuple[tuple[int, int], ...]
    ) -> None:
        """Remember that a token is a slice of another."""
        self._parts[token] = (whole, bounds)

    def join(self, tokens: list[int], sizes: tuple[int, ...]) -> int | None:
        """The token of which the given ones are all slices in order, if there is one."""
        known = [self._parts.get(token) for token in tokens]
        parts = [part for part in known if part is not None]
        if len(parts) < len(known) or len({whole for whole, _ in parts}) != 1:
            return None
        first = parts[0][1]
        cut = [d for d, b in enumerate(first) if b != (0, sizes[d])]
        if len(cut) > 1:
            return None
        axis = cut[0] if cut else 0
        at = 0
        for _, bounds in parts:
            whole = all(b == (0, sizes[d]) for d, b in enumerate(bounds) if d != axis)
            if not whole or bounds[axis][0] != at:
                return None
            at = bounds[axis][1]
        return parts[0][0] if at == sizes[axis] else None


class SymbolCodec:
    """Values as one cell per unit of bytes; cells of one value follow a pattern."""

    dtype = np.dtype(np.uint64)

    def __init__(self, table: SymbolTable, unit: int) -> None:
        self.unit = unit
        self._table = table
        self._pattern: Array = np.zeros(0, dtype=np.uint64)

    def cell_count(self, shape: Shape) -> int:
        """Cells of an array shape."""
        return -(-shape.byte_size() // self.unit)

    def encode(self, shape: Shape, value: Any) -> Array:
        """The cells of a value."""
        token = self._table.token_of(shape, value)
        return self._steps(self.cell_count(shape)) + np.uint64(token)

    def decode(self, shape: Shape, cells: Array) -> Any:
        """The value in some cells; a mixture of values is a value of its own."""
        if not len(cells):
            return self._table.value_of(shape, digest_bytes(b""))
        first = cells[0]
        if len(cells) > 1 and (cells - self._steps(len(cells)) != first).any():
            return Symbol(digest(digest_bytes(cells.tobytes())))
        return self._table.value_of(shape, int(first))

    def _steps(self, count: int) -> Array:
        if count > len(self._pattern):
            size = max(count, 2 * len(self._pattern))
            self._pattern = np.arange(size, dtype=np.uint64) * _STEP
        return self._pattern[:count]
