"""Chunks of alternate memory in time: where there is room, and who is in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LIMIT = 64
"""Places that are weighed when room is to be made."""


class Room(NamedTuple):
    """An offset, and the chunks that lie there."""

    offset: int
    taken_by: tuple[int, ...]
    cost: float


class Layout:
    """Chunks by number, each in inclusive steps; bytes.

    Questions are O(chunks) on arrays, plus the chunks met sorted by offset.
    """

    __slots__ = ("_alignment", "_capacity", "_free", "_rows", "_slots")

    def __init__(self, capacity: int, alignment: int) -> None:
        self._capacity = capacity
        self._alignment = alignment
        self._rows: NDArray[np.int64] = np.zeros((5, 64), np.int64)
        self._rows[0] = np.iinfo(np.int64).max
        self._rows[1] = -2
        self._slots: dict[int, int] = {}
        self._free = list(range(63, -1, -1))

    def add(self, number: int, start: int, end: int, offset: int, size: int) -> None:
        """Take a chunk in steps [start, end]."""
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self._slots[number] = slot
        self._rows[:, slot] = (start, end, offset, offset + size, number)

    def remove(self, number: int) -> None:
        """Give a chunk back."""
        slot = self._slots.pop(number)
        self._rows[0, slot] = np.iinfo(np.int64).max
        self._rows[1, slot] = -2
        self._free.append(slot)

    def _grow(self) -> None:
        count = self._rows.shape[1]
        more = np.zeros((5, count), np.int64)
        more[0] = np.iinfo(np.int64).max
        more[1] = -2
        self._rows = np.concatenate((self._rows, more), axis=1)
        self._free = list(range(2 * count - 1, count - 1, -1))

    def _met(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """(low, high, number) of the chunks in those steps, by offset."""
        rows = self._rows
        met = np.flatnonzero((rows[0] <= end) & (rows[1] >= start))
        found: list[tuple[int, int, int]] = [
            tuple(row) for row in rows[2:, met].T.tolist()
        ]
        found.sort()
        return found

    def _aligned(self, offset: int) -> int:
        return -(-offset // self._alignment) * self._alignment

    def find(self, start: int, end: int, size: int) -> int | None:
        """Offset of the smallest gap that is free in all those steps; None: no room."""
        best, best_gap, low = None, self._capacity + 1, 0
        for bottom, top, _ in self._met(start, end):
            if bottom > low:
                gap = bottom - low
                if size <= gap < best_gap:
                    best, best_gap = low, gap
            low = max(low, self._aligned(top))
        if size <= self._capacity - low < best_gap:
            best = low
        return best

    def free_since(self, number: int, earliest: int) -> int:
        """First step, at least `earliest`, since when a chunk's place is free."""
        rows, slot = self._rows, self._slots[number]
        start, _, low, high, _ = rows[:, slot].tolist()
        met = (rows[2] < high) & (rows[3] > low) & (rows[1] < start) & (rows[1] >= 0)
        last = int(rows[1][met].max(initial=-1))
        return max(earliest, last + 1)

    def make(
        self, start: int, end: int, size: int, cost: Callable[[int], float]
    ) -> Room | None:
        """Where room costs the least, when what lies there goes.

        Args:
            start, end: inclusive steps.
            size: bytes.
            cost: of a chunk that goes; infinite if it has to stay.
        """
        met = self._met(start, end)
        costs = {number: cost(number) for _, _, number in met}
        places = {0, max(0, self._capacity - size) // self._alignment * self._alignment}
        for low, high, _ in met:
            places.add(self._aligned(high))
            if low >= size:
                places.add((low - size) // self._alignment * self._alignment)
        best: Room | None = None
        for offset in sorted(places)[:_LIMIT]:
            if offset + size > self._capacity:
                continue
            taken = [n for low, high, n in met if low < offset + size and high > offset]
            price = sum(costs[n] for n in taken)
            if price < (np.inf if best is None else best.cost):
                best = Room(offset, tuple(taken), price)
        return best
