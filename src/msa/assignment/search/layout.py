"""Chunks of alternate memory in time: where there is room, and who is in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_PLACES: Final = 64
"""Offsets that are looked at where room is made: those where the fewest chunks go."""


class Room(NamedTuple):
    """An offset, and the chunks that lie there."""

    offset: int
    taken_by: tuple[int, ...]
    cost: float


class Layout:
    """Chunks by number, each in inclusive steps; bytes.

    Questions are O(chunks) on arrays, plus the sorting of the k chunks met; making room
    looks at some of the offsets only, O(k) each.

    Attributes:
        capacity, alignment: bytes.
        passed: chunks that were passed so far in all questions, on arrays.
        priced: chunks whose cost was asked for so far.
    """

    __slots__ = (
        "_free",
        "_rows",
        "_slots",
        "alignment",
        "capacity",
        "passed",
        "priced",
    )

    def __init__(self, capacity: int, alignment: int) -> None:
        self.capacity = capacity
        self.alignment = alignment
        self._rows: NDArray[np.int64] = np.zeros((5, 64), np.int64)
        self._rows[0] = np.iinfo(np.int64).max
        self._rows[1] = -2
        self._slots: dict[int, int] = {}
        self._free = list(range(63, -1, -1))
        self.passed = 0
        self.priced = 0

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
        self.passed += rows.shape[1]
        met = rows[2:, (rows[0] <= end) & (rows[1] >= start)]
        ordered: NDArray[np.int64] = met[:, met[0].argsort(kind="stable")]
        return ordered

    def find(self, start: int, end: int, size: int) -> int | None:
        """Offset of the smallest gap that is free in all those steps; None: no room."""
        # Gaps begin where everything below has ended, and end with the next chunk.
        low, high, _ = self._met(start, end)
        lows, highs = low.tolist(), high.tolist()
        lows.append(self.capacity)
        highs.append(self.capacity)
        alignment = self.alignment
        found, smallest, begin = None, self.capacity + 1, 0
        for bottom, top in zip(lows, highs, strict=True):
            if size <= bottom - begin < smallest:
                found, smallest = begin, bottom - begin
            if top > begin:
                begin = -(-top // alignment) * alignment
        return found

    def has_bytes(self, start: int, end: int, size: int) -> bool:
        """Whether so many bytes are free at each of those steps, in pieces or not."""
        rows = self._rows
        self.passed += rows.shape[1]
        met = rows[:, (rows[0] <= end) & (rows[1] >= start)]
        sizes = met[3] - met[2]
        # Loads are highest where a chunk begins: all that begin up to there, but for
        # those that ended before.
        begins = np.sort(np.maximum(met[0], start))
        if not begins.size:
            return size <= self.capacity
        ended = met[1].argsort(kind="stable")
        begun = np.maximum(met[0], start).argsort(kind="stable")
        more = np.concatenate(([0], np.cumsum(sizes[begun])))
        less = np.concatenate(([0], np.cumsum(sizes[ended])))
        at = np.searchsorted(begins, begins, side="right")
        gone = np.searchsorted(met[1][ended], begins, side="left")
        return int((more[at] - less[gone]).max()) + size <= self.capacity

    def __len__(self) -> int:
        return len(self._slots)

    def make(
        self,
        start: int,
        end: int,
        size: int,
        cost: Callable[[int], float],
        most: int | None = None,
    ) -> Room | None:
        """Where room costs the least, when what lies there goes.

        Args:
            start, end: inclusive steps.
            size: bytes.
            cost: of a chunk that goes; infinite if it has to stay. Asked once per
                chunk, and only of chunks at offsets that may be the answer.
            most: chunks that may have to go; None: any number.
        """
        low, high, numbers = self._met(start, end)
        alignment = self.alignment
        places = np.unique(
            np.concatenate(
                (
                    [0, max(0, self.capacity - size) // alignment * alignment],
                    -(-high // alignment) * alignment,
                    (low - size) // alignment * alignment,
                )
            )
        )
        places = places[(places >= 0) & (places + size <= self.capacity)]
        # Chunks that begin below the end of a place, but for those that end below it.
        counts = np.searchsorted(low, places + size)
        counts -= np.searchsorted(np.sort(high), places, side="right")
        if most is not None:
            places, counts = places[counts <= most], counts[counts <= most]
        # Where the fewest go is looked at first; offsets ascend among equals.
        order = counts.argsort(kind="stable")[:_PLACES]
        costs: dict[int, float] = {}
        best: tuple[float, int] | None = None
        taken_by: tuple[int, ...] = ()
        for place in places[order].tolist():
            taken = numbers[(low < place + size) & (high > place)].tolist()
            self.passed += low.size
            for number in taken:
                if number not in costs:
                    costs[number] = cost(number)
            price = sum(costs[number] for number in taken)
            if best is None or (price, place) < best:
                best, taken_by = (price, place), tuple(taken)
        self.priced += len(costs)
        return None if best is None else Room(best[1], taken_by, best[0])
