"""Byte-addressed memories of the simulated machine."""

from __future__ import annotations

from bisect import insort
from typing import Final

import numpy as np

from msa.errors import ExecutionError
from msa.runtime.evaluator.elements import Array

ALTERNATE: Final = 1
"""Memory space whose addresses the plan decides."""

POISON: Final = 0xA5
"""Byte that fills memory whose contents nobody may rely on."""

_ALIGNMENT: Final = 64
_SEGMENT: Final = 1 << 24


class FixedMemory:
    """A memory of known size in which others decide the addresses.

    Attributes:
        space: number of the memory space.
        capacity: bytes.
    """

    __slots__ = ("_bytes", "capacity", "space")

    def __init__(self, space: int, capacity: int) -> None:
        self.space = space
        self.capacity = capacity
        self._bytes: Array = np.full(min(capacity, _SEGMENT), POISON, dtype=np.uint8)

    def view(self, address: int, size: int) -> Array:
        """The bytes `[address, address + size)`, which must lie inside.

        Physical storage grows up to the highest address touched.
        """
        end = address + size
        if end > len(self._bytes):
            grown = np.full(
                min(self.capacity, max(end, 2 * len(self._bytes))), POISON, np.uint8
            )
            grown[: len(self._bytes)] = self._bytes
            self._bytes = grown
        return self._bytes[address:end]

    def contains(self, address: int, size: int) -> bool:
        """Whether the bytes lie inside."""
        return address >= 0 and address + size <= self.capacity


class GrowingMemory:
    """A memory that finds addresses itself: first fit in segments, freed space merged.

    Addresses never repeat between segments; a block lies inside one segment.
    Allocation is O(free ranges of the segments).
    """

    __slots__ = ("_free", "_segments", "limit", "space", "used")

    def __init__(self, space: int, limit: int) -> None:
        self.space = space
        self.limit = limit
        self.used = 0
        self._segments: list[tuple[int, Array]] = []
        self._free: list[list[tuple[int, int]]] = []  # per segment, by address

    def allocate(self, size: int) -> int:
        """The address of `size` new bytes.

        Raises:
            ExecutionError: the limit is reached.
        """
        need = max(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT)
        if self.used + need > self.limit:
            raise ExecutionError(
                f"the simulated memory of {self.limit} bytes is used up",
                hint="run a smaller module, or prove with values instead of arrays",
            )
        self.used += need
        for place, ranges in enumerate(self._free):
            for i, (start, length) in enumerate(ranges):
                if length >= need:
                    if length == need:
                        del ranges[i]
                    else:
                        ranges[i] = (start + need, length - need)
                    return self._segments[place][0] + start
        base = 0
        if self._segments:
            last, data = self._segments[-1]
            base = last + len(data)
        length = max(_SEGMENT, need)
        self._segments.append((base, np.empty(length, dtype=np.uint8)))
        self._free.append([(need, length - need)] if length > need else [])
        return base

    def release(self, address: int, size: int) -> None:
        """Give bytes back."""
        need = max(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT)
        self.used -= need
        place = self._segment_of(address)
        base, data = self._segments[place]
        ranges = self._free[place]
        insort(ranges, (address - base, need))
        i = next(k for k, r in enumerate(ranges) if r[0] == address - base)
        if i + 1 < len(ranges) and ranges[i][0] + ranges[i][1] == ranges[i + 1][0]:
            ranges[i : i + 2] = [(ranges[i][0], ranges[i][1] + ranges[i + 1][1])]
        if i > 0 and ranges[i - 1][0] + ranges[i - 1][1] == ranges[i][0]:
            ranges[i - 1 : i + 1] = [
                (ranges[i - 1][0], ranges[i - 1][1] + ranges[i][1])
            ]
        if len(data) > _SEGMENT and ranges == [(0, len(data))]:
            # A segment made for one large block gives its pages back.
            self._segments[place] = (base, np.empty(len(data), dtype=np.uint8))

    def view(self, address: int, size: int) -> Array:
        """The bytes `[address, address + size)` of an allocated block."""
        base, data = self._segments[self._segment_of(address)]
        return data[address - base : address - base + size]

    def _segment_of(self, address: int) -> int:
        low, high = 0, len(self._segments)
        while high - low > 1:
            middle = (low + high) // 2
            if self._segments[middle][0] <= address:
                low = middle
            else:
                high = middle
        return low


Memory = FixedMemory | GrowingMemory
