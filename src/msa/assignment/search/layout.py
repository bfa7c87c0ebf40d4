"""Chunks of alternate memory in time: where there is room, and who is in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Room(NamedTuple):
    """An offset, and the chunks that lie there."""

    offset: int
    taken_by: tuple[int, ...]
    cost: float


class Layout:
    """Chunks by number, each in inclusive steps; bytes.

    Questions are O(chunks) on arrays, plus the sorting of the k chunks met; making room
    is O(k²).
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

    def _met(self, start: int, end: int) -> NDArray[np.int64]:
        """Columns (low, high, number) of the chunks in those steps, by offset."""
        rows = self._rows
        met = rows[2:, (rows[0] <= end) & (rows[1] >= start)]
        ordered: NDArray[np.int64] = met[:, met[0].argsort(kind="stable")]
        return ordered

    def _aligned(self, offset: int) -> int:
        return -(-offset // self._alignment) * self._alignment

    def find(self, start: int, end: int, size: int) -> int | None:
        """Offset of the smallest gap that is free in all those steps; None: no room."""
        low, high, _ = self._met(start, end)
        if not low.size:
            return 0 if size <= self._capacity else None
        # Gaps begin where everything below has ended, and end with the next chunk.
        alignment = self._alignment
        tops = np.maximum.accumulate(high)
        begins = np.concatenate(([0], -(-tops // alignment) * alignment))
        gaps = np.concatenate((low, [self._capacity])) - begins
        fits = np.flatnonzero(gaps >= size)
        if not fits.size:
            return None
        return int(begins[fits[np.argmin(gaps[fits])]])

    def __len__(self) -> int:
        return len(self._slots)

    def make(
        self, start: int, end: int, size: int, cost: Callable[[int], float]
    ) -> Room | None:
        """Where room costs the least, when what lies there goes.

        Args:
            start, end: inclusive steps.
            size: bytes.
            cost: of a chunk that goes; infinite if it has to stay.
        """
        low, high, numbers = self._met(start, end)
        costs = np.array([cost(int(number)) for number in numbers])
        alignment = self._alignment
        places = np.unique(
            np.concatenate(
                (
                    [0, max(0, self._capacity - size) // alignment * alignment],
                    -(-high // alignment) * alignment,
                    (low - size) // alignment * alignment,
                )
            )
        )
        places = places[(places >= 0) & (places + size <= self._capacity)]
        if not places.size:
            return None
        taken = (low < places[:, None] + size) & (high > places[:, None])
        prices = np.where(taken, costs, 0.0).sum(axis=1)
        best = int(np.argmin(prices))
        return Room(
            int(places[best]),
            tuple(numbers[taken[best]].tolist()),
            float(prices[best]),
        )
