"""How far a chunk's time can be stretched before it meets another chunk."""

from __future__ import annotations

from collections.abc import Iterable

from msa.assignment.allocation import Allocation
from msa.heap.interval_tree import BufferIntervalTree


class Room:
    """Chunks in alternate memory in their inclusive steps.

    Questions cost the chunks met on the way: windows double until one is in the way.
    """

    __slots__ = ("_tree",)

    def __init__(self, allocations: Iterable[Allocation]) -> None:
        self._tree = BufferIntervalTree()
        for allocation in allocations:
            self.add(allocation)

    def add(self, allocation: Allocation) -> None:
        """Take its chunk in its steps."""
        if allocation.is_alternate and allocation.chunk is not None:
            self._tree.add(allocation.start, allocation.end, allocation.chunk)

    def remove(self, allocation: Allocation) -> None:
        """Give its chunk back."""
        if allocation.is_alternate and allocation.chunk is not None:
            self._tree.remove(allocation.start, allocation.end, allocation.chunk)

    def free_since(self, allocation: Allocation, earliest: int) -> int:
        """First step from which its chunk is free up to its start, >= `earliest`."""
        assert allocation.chunk is not None
        low, high = allocation.chunk.offset, allocation.chunk.end
        last, width = allocation.start - 1, 1
        while last >= earliest:
            first = max(earliest, last - width + 1)
            taken = [
                end
                for _, end, bottom, top in self._tree.entries_overlapping(first, last)
                if bottom < high and low < top
            ]
            if taken:
                # One that lasts beyond the start leaves no room at all.
                return min(allocation.start, max(taken) + 1)
            last, width = first - 1, width * 2
        return min(allocation.start, earliest)

    def free_until(self, allocation: Allocation, latest: int) -> int:
        """Last step up to which its chunk stays free after its end, <= `latest`."""
        assert allocation.chunk is not None
        low, high = allocation.chunk.offset, allocation.chunk.end
        first, width = allocation.end + 1, 1
        while first <= latest:
            last = min(latest, first + width - 1)
            taken = [
                start
                for start, _, bottom, top in self._tree.entries_overlapping(first, last)
                if bottom < high and low < top
            ]
            if taken:
                return max(allocation.end, min(taken) - 1)
            first, width = last + 1, width * 2
        return max(allocation.end, latest)
