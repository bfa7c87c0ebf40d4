"""Four iterations of alternate memory, of which two and two look alike.

An allocation may last beyond its iteration, so consecutive iterations may need
different offsets: those of even iterations are equal, and those of odd ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from msa.heap.chunk import Chunk
from msa.heap.free_space import best_fit, free_gaps
from msa.heap.interval_tree import BufferIntervalTree


@dataclass(frozen=True, slots=True)
class EvenOdd:
    """Offsets in even and odd iterations."""

    even: int
    odd: int


class LoopHeap:
    """Free space of iterations 0 … 3, by index within the loop.

    An interval `[begin, end]` of indices is inclusive; `begin` may be negative (the
    iteration before) and `end` may exceed the size (the iteration after).
    """

    __slots__ = ("_tree", "alignment", "capacity", "size")

    def __init__(self, size: int, capacity: int, alignment: int) -> None:
        self.size = size
        self.capacity = capacity
        self.alignment = alignment
        self._tree = BufferIntervalTree()

    def _times(self, begin: int, end: int, first: int) -> list[tuple[int, int]]:
        """The interval in iterations `first` and `first + 2`."""
        shift = self.size if begin < 0 else 0
        return [
            (begin + shift + k * self.size, end + shift + k * self.size)
            for k in (first, first + 2)
        ]

    def _find(
        self, times: list[tuple[int, int]], size: int, preferred: int = -1
    ) -> int | None:
        used = [s for t in times for s in self._tree.spans_overlapping(*t)]
        gaps = free_gaps(used, size, self.alignment)
        offset = best_fit(gaps, size, self.alignment, preferred)
        if offset + size > self.capacity or (preferred >= 0 and offset != preferred):
            return None
        return offset

    def _hold(self, times: list[tuple[int, int]], offset: int, size: int) -> None:
        for start, end in times:
            self._tree.add(start, end, Chunk(offset, size))

    def _free(self, times: list[tuple[int, int]], offset: int, size: int) -> None:
        for start, end in times:
            self._tree.remove(start, end, Chunk(offset, size))

    def find(self, begin: int, end: int, size: int) -> EvenOdd | None:
        """Where the interval would go; nothing is kept."""
        found = self.allocate(begin, end, size)
        if found is not None:
            self.release(begin, end, size, found)
        return found

    def allocate(
        self, begin: int, end: int, size: int, preferred: EvenOdd | None = None
    ) -> EvenOdd | None:
        """Take room for the interval in all iterations; None if there is none."""
        if end - begin + 1 > 2 * self.size:
            return None
        even_times, odd_times = self._times(begin, end, 0), self._times(begin, end, 1)
        even = self._find(even_times, size, preferred.even if preferred else -1)
        if even is None:
            return None
        self._hold(even_times, even, size)
        odd = self._find(odd_times, size, preferred.odd if preferred else -1)
        if odd is None:
            self._free(even_times, even, size)
            return None
        self._hold(odd_times, odd, size)
        return EvenOdd(even, odd)

    def release(self, begin: int, end: int, size: int, at: EvenOdd) -> None:
        """Give the room back."""
        self._free(self._times(begin, end, 0), at.even, size)
        self._free(self._times(begin, end, 1), at.odd, size)

    def allocate_same(self, begin: int, end: int, size: int) -> int | None:
        """Room at one offset in all iterations; at most one iteration long."""
        if end - begin + 1 > self.size:
            return None
        times = self._times(begin, end, 0) + self._times(begin, end, 1)
        offset = self._find(times, size)
        if offset is not None:
            self._hold(times, offset, size)
        return offset

    def remaining(self) -> list[int]:
        """Bytes left per index of an iteration in the middle."""
        first = 2 * self.size
        used = self._tree.memory_used_in_interval(first, first + self.size - 1)
        return [self.capacity - x for x in used]

    def height(self) -> int:
        """The highest address used in the last two iterations."""
        return self._tree.heap_size_in_interval(2 * self.size, 4 * self.size - 1)
