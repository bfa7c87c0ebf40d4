"""The memories of the simulated machine: addresses in bytes, contents in cells.

A cell is one byte when arrays are really computed; when values stand for arrays, a
cell stands for a whole unit of bytes (see `Codec`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any, Final, Protocol

import numpy as np

from msa.errors import ExecutionError
from msa.hlo.shape import Shape
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.values import from_bytes, to_bytes

ALTERNATE: Final = 1
"""Memory space whose addresses the plan decides, unless stated otherwise."""

POISON: Final = 0xA5
"""Cell contents that nobody may rely on."""

ALIGNMENT: Final = 64
"""Bytes that addresses are multiples of where no plan states them."""

_SEGMENT_CELLS: Final = 1 << 24


class Codec(Protocol):
    """How values lie in cells.

    Attributes:
        unit: bytes per cell.
        dtype: type of a cell.
    """

    unit: int
    dtype: np.dtype[Any]

    def encode(self, shape: Shape, value: Any) -> Array:
        """Cells of a value of an array shape."""

    def decode(self, shape: Shape, cells: Array) -> Any:
        """The value in some cells."""

    def cell_count(self, shape: Shape) -> int:
        """Cells of an array shape."""


class ByteCodec:
    """Arrays as their bytes."""

    unit = 1
    dtype = np.dtype(np.uint8)

    def encode(self, shape: Shape, value: Any) -> Array:
        """The bytes of an array, in layout order."""
        return to_bytes(shape.as_array, np.asarray(value))

    def decode(self, shape: Shape, cells: Array) -> Any:
        """The array in some bytes: a view of them where its type allows."""
        return from_bytes(shape.as_array, cells)

    def cell_count(self, shape: Shape) -> int:
        """Bytes of an array."""
        return shape.byte_size()


class FixedMemory:
    """A memory of known size in which others decide the addresses.

    Attributes:
        space: number of the memory space.
        capacity: bytes.
    """

    __slots__ = ("_cells", "_unit", "capacity", "space")

    def __init__(self, space: int, capacity: int, codec: Codec) -> None:
        self.space = space
        self.capacity = capacity
        self._unit = codec.unit
        self._cells: Array = np.full(0, POISON, dtype=codec.dtype)

    def view(self, address: int, size: int) -> Array:
        """The cells of the bytes `[address, address + size)`, which must lie inside.

        Physical storage grows up to the highest address touched.
        """
        start, end = address // self._unit, -(-(address + size) // self._unit)
        cells = self._cells
        if end > len(cells):
            grown = np.full(max(end, 2 * len(cells)), POISON, dtype=cells.dtype)
            grown[: len(cells)] = cells
            self._cells = cells = grown
        return cells[start:end]

    def apart(self, size: int) -> Array:
        """New cells for `size` bytes without addresses, full of poison."""
        return np.full(-(-size // self._unit), POISON, dtype=self._cells.dtype)

    def contains(self, address: int, size: int) -> bool:
        """Whether the bytes lie inside."""
        return address >= 0 and address + size <= self.capacity


class AllocatedMemory:
    """A memory of allocations side by side in which others decide the addresses.

    Attributes:
        space: number of the memory space.
    """

    __slots__ = ("_allocations", "_cells", "_dtype", "_unit", "space")

    def __init__(
        self, space: int, allocations: list[tuple[int, int]], codec: Codec
    ) -> None:
        self.space = space
        self._allocations = allocations  # (address, bytes), sorted
        self._cells: list[Array | None] = [None] * len(allocations)
        self._unit = codec.unit
        self._dtype = codec.dtype

    def view(self, address: int, size: int) -> Array:
        """The cells of the bytes `[address, address + size)` inside an allocation.

        An allocation comes into being, full of poison, when it is first touched.
        """
        place = bisect_right(self._allocations, address, key=_base) - 1
        base, length = self._allocations[place]
        cells = self._cells[place]
        if cells is None:
            count = -(-length // self._unit)
            cells = self._cells[place] = np.full(count, POISON, dtype=self._dtype)
        start = (address - base) // self._unit
        return cells[start : -(-(address - base + size) // self._unit)]


class GrowingMemory:
    """A memory that finds addresses itself: first fit in segments, freed space merged.

    Invariant: a block lies inside one segment; free ranges of a segment are sorted,
    apart, and not empty. Allocation is O(free ranges).
    """

    __slots__ = (
        "_alignment",
        "_dtype",
        "_free",
        "_segments",
        "_start",
        "_unit",
        "limit",
        "space",
    )

    def __init__(self, space: int, limit: int, codec: Codec, start: int = 0) -> None:
        self.space = space
        self.limit = limit
        self._start = start
        self._unit = codec.unit
        self._dtype = codec.dtype
        self._alignment = math.lcm(ALIGNMENT, codec.unit)
        self._segments: list[tuple[int, Array]] = []
        self._free: list[list[tuple[int, int]]] = []  # (start, length) in the segment

    def allocate(self, size: int) -> int:
        """The address of `size` new bytes.

        Raises:
            ExecutionError: the limit is reached.
        """
        need = self._rounded(size)
        for place, ranges in enumerate(self._free):
            for i, (start, length) in enumerate(ranges):
                if length >= need:
                    ranges[i : i + 1] = (
                        [(start + need, length - need)] if length > need else []
                    )
                    return self._segments[place][0] + start
        base = self._start
        if self._segments:
            last, cells = self._segments[-1]
            base = last + len(cells) * self._unit
        length = max(_SEGMENT_CELLS * self._unit, need)
        if base + length > self.limit:
            raise used_up(self.limit)
        self._segments.append((base, np.empty(length // self._unit, self._dtype)))
        self._free.append([(need, length - need)] if length > need else [])
        return base

    def release(self, address: int, size: int) -> None:
        """Give bytes back."""
        need = self._rounded(size)
        place = self._segment_of(address)
        base, cells = self._segments[place]
        ranges = self._free[place]
        start, end = address - base, address - base + need
        i = bisect_left(ranges, (start, 0))
        if i < len(ranges) and ranges[i][0] == end:
            end += ranges.pop(i)[1]
        if i > 0 and sum(ranges[i - 1]) == start:
            i -= 1
            start = ranges.pop(i)[0]
        ranges.insert(i, (start, end - start))
        if len(cells) > _SEGMENT_CELLS and end - start == len(cells) * self._unit:
            # A segment made for one large block gives its pages back.
            self._segments[place] = (base, np.empty(len(cells), dtype=self._dtype))

    def view(self, address: int, size: int) -> Array:
        """The cells of the bytes `[address, address + size)` of an allocated block."""
        base, cells = self._segments[self._segment_of(address)]
        start = (address - base) // self._unit
        return cells[start : -(-(address - base + size) // self._unit)]

    def _rounded(self, size: int) -> int:
        step = self._alignment
        return max(step, -(-size // step) * step)

    def _segment_of(self, address: int) -> int:
        return bisect_right(self._segments, address, key=_base) - 1


def _base(segment: tuple[int, Any]) -> int:
    return segment[0]


def used_up(limit: int) -> ExecutionError:
    """What to raise when a memory would be larger than may be simulated."""
    return ExecutionError(
        f"the simulated memory of {limit} bytes is used up",
        hint="raise the limit, or let values stand for arrays",
    )


Memory = FixedMemory | AllocatedMemory | GrowingMemory
