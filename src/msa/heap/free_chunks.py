"""The free address ranges of a heap that changes over time.

Reference: `xla/service/heap_simulator/free_chunks_manager.{h,cc}`.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedDict, SortedList

from msa.errors import InternalError, RuntimeMemoryError
from msa.heap.chunk import Chunk, align_up
from msa.heap.whole_number import read_whole

#: The end of the initial free range; leaves room for sentinels, as in XLA.
END_OF_MEMORY = 2**63 - 4


class FreeChunks:
    """Free ranges by offset, and by the room that they have when aligned.

    Every operation costs O(log n) for n free ranges.

    Invariant: free ranges are not empty and do not touch; the index holds each once.

    >>> free = FreeChunks()
    >>> free.allocate(0, 16); free.allocate(16, 64); free.deallocate(0, 16)
    >>> [str(chunk) for chunk in free][0], str(free.find_just_large_enough(8))
    ('[0,16)', '[0,16)')
    """

    __slots__ = ("_alignment", "_by_offset", "_by_room")

    def __init__(self, alignment: int = 1, end: int = END_OF_MEMORY) -> None:
        alignment = read_whole(alignment, "alignment", at_least=1)
        self._alignment = alignment
        self._by_offset: SortedDict = SortedDict()
        self._by_room: SortedList = SortedList()
        if end > 0:
            self._insert(0, end)

    def _room(self, offset: int, end: int) -> int:
        return end - align_up(offset, self._alignment)

    def _insert(self, offset: int, end: int) -> None:
        self._by_offset[offset] = end
        self._by_room.add((self._room(offset, end), offset))

    def _remove(self, offset: int) -> int:
        end: int = self._by_offset.pop(offset)
        self._by_room.remove((self._room(offset, end), offset))
        return end

    def __len__(self) -> int:
        return len(self._by_offset)

    def __iter__(self) -> Iterator[Chunk]:
        """The free ranges by offset."""
        for offset, end in self._by_offset.items():
            yield Chunk.from_end(offset, end)

    def _below(self, address: int) -> int | None:
        """The offset of the last free range that starts at or below the address."""
        index = self._by_offset.bisect_right(address) - 1
        return None if index < 0 else int(self._by_offset.peekitem(index)[0])

    def allocate(self, offset: int, end: int) -> None:
        """Take `[offset, end)`, which must lie in one free range.

        Raises:
            RuntimeMemoryError: it does not.
        """
        if offset >= end:
            return
        found = self._below(offset)
        if found is None or self._by_offset[found] < end:
            raise RuntimeMemoryError(f"[{offset}, {end}) is not free")
        stop = self._remove(found)
        if end < stop:
            self._insert(end, stop)
        if found < offset:
            self._insert(found, offset)

    def deallocate(self, offset: int, end: int) -> None:
        """Give `[offset, end)` back; it joins the free ranges that it touches.

        Raises:
            RuntimeMemoryError: part of it is free already.
        """
        if offset >= end:
            return
        below = self._below(end)
        if below == end:
            end = self._remove(below)
            below = self._below(offset)
        if below is not None:
            stop = self._by_offset[below]
            if stop > offset:
                raise RuntimeMemoryError(f"[{offset}, {end}) is partly free already")
            if stop == offset:
                self._remove(below)
                offset = below
        self._insert(offset, end)

    def find_just_large_enough(self, size: int) -> Chunk | None:
        """The free range with the least room for `size` aligned bytes, or None.

        The lowest wins among equals. The range is returned whole; the caller aligns.
        """
        index = self._by_room.bisect_left((size, -1))
        if index == len(self._by_room):
            return None
        offset = self._by_room[index][1]
        return Chunk.from_end(offset, self._by_offset[offset])

    def check(self) -> None:
        """Raise `InternalError` if the invariant of the class is broken."""
        previous = -1
        for offset, end in self._by_offset.items():
            if not previous < offset < end:
                raise InternalError(f"free range [{offset}, {end}) is out of place")
            previous = end
        expected = sorted((self._room(o, e), o) for o, e in self._by_offset.items())
        if list(self._by_room) != expected:
            raise InternalError("the index by room differs from the free ranges")
