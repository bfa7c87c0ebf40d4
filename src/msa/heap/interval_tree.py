"""The multiset of placed buffers: (time, time, chunk) with overlap queries.

Times are **inclusive** on both ends here, as in XLA's heap simulator: an entry
that ends at 5 and one that starts at 5 overlap. Half-open plans are converted
at the door.

Entries are grouped by duration (a class spans a factor of four), and within a class
by blocks of start times, each block a list sorted by start. An entry of a class that
overlaps `[s, e]` starts in `[s - longest duration of the class, e]`: blocks in between
and, by bisection, parts of two. The range holds at most about four times as many
entries as overlap. There are few classes: half the bit length of the longest duration.

Reference: `BufferIntervalTree` of `xla/service/heap_simulator/heap_simulator.h`
(a treap there; the order of hits is unspecified in both).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final, NamedTuple

from msa.errors import InternalError, PackingError
from msa.heap.chunk import Chunk

_BLOCK_BITS: Final = 12
"""Blocks span at least so many start times (as a power of two)."""

#: `(start, end, offset, chunk end)`: plain tuples, since queries are hot.
Entry = tuple[int, int, int, int]


class PlacedInterval(NamedTuple):
    """One entry of the tree: the inclusive times and the chunk held in them.

    >>> from msa.heap import Chunk
    >>> PlacedInterval(0, 3, Chunk(0, 64)).chunk.end
    64
    """

    start: int
    end: int
    chunk: Chunk


class _DurationClass:
    """Entries of similar duration.

    Attributes:
        blocks: sorted entries by their start divided by `2 ** shift`.
        reach: the longest duration.
    """

    __slots__ = ("blocks", "reach", "shift")

    def __init__(self, level: int) -> None:
        self.blocks: dict[int, list[Entry]] = {}
        self.reach = 0
        self.shift = max(_BLOCK_BITS, 2 * level)

    def in_order(self) -> list[Entry]:
        """All entries, sorted."""
        return [entry for key in sorted(self.blocks) for entry in self.blocks[key]]


class BufferIntervalTree:
    """Multiset of `(start, end, chunk)` with inclusive times.

    `add` and `remove` cost O(log n) comparisons plus an insertion into one block; the
    queries O(classes * (log n + blocks of the interval) + hits).

    Invariant: every block is sorted and holds the starts of its number, its entries
    last at most `reach`, and the classes together hold `len(self)` entries.

    >>> tree = BufferIntervalTree()
    >>> tree.add(15, 25, Chunk(0, 16))
    >>> tree.add(15, 19, Chunk(16, 32))
    >>> tree.num_chunks_overlapping(19, 30), tree.num_chunks_overlapping(20, 30)
    (2, 1)
    >>> tree.remove(15, 25, Chunk(0, 16)), tree.remove(15, 25, Chunk(0, 16))
    (True, False)
    """

    __slots__ = ("_classes", "_inverted", "_live")

    def __init__(self) -> None:
        self._classes: dict[int, _DurationClass] = {}
        self._live: list[_DurationClass] = []
        # Entries with start > end are kept (they can be removed) but never match.
        self._inverted: list[Entry] = []

    def __len__(self) -> int:
        return len(self._inverted) + sum(
            len(entries) for c in self._live for entries in c.blocks.values()
        )

    def _entries_for(self, start: int, end: int) -> list[Entry]:
        duration = end - start
        if duration < 0:
            return self._inverted
        level = (duration.bit_length() + 1) >> 1
        found = self._classes.get(level)
        if found is None:
            found = self._classes[level] = _DurationClass(level)
            self._live.append(found)
        if duration > found.reach:
            found.reach = duration
        key = start >> found.shift
        entries = found.blocks.get(key)
        if entries is None:
            entries = found.blocks[key] = []
        return entries

    def add(self, start: int, end: int, chunk: Chunk) -> None:
        """Add an entry; duplicates are kept apart."""
        entry = (start, end, chunk.offset, chunk.offset + chunk.size)
        insort(self._entries_for(start, end), entry)

    def remove(self, start: int, end: int, chunk: Chunk) -> bool:
        """Remove one entry with these times and this offset; False if none."""
        entries = self._entries_for(start, end)
        index = bisect_left(entries, (start, end, chunk.offset))
        if index < len(entries) and entries[index][:3] == (start, end, chunk.offset):
            del entries[index]
            return True
        return False

    def clear(self) -> None:
        """Remove everything."""
        self._classes.clear()
        self._live.clear()
        self._inverted.clear()

    def entries_overlapping(self, start: int, end: int) -> list[Entry]:
        """`(start, end, offset, chunk end)` of each overlapping entry, unordered.

        An empty query (`start > end`) overlaps nothing.
        """
        hits: list[Entry] = []
        if start > end:
            return hits
        upper = (end + 1,)
        for group in self._live:
            earliest, shift, blocks = start - group.reach, group.shift, group.blocks
            first, last = earliest >> shift, end >> shift
            if first == last:
                entries = blocks.get(first)
                if entries:
                    high = bisect_left(entries, upper)
                    low = bisect_left(entries, (earliest,), 0, high)
                    if low < high:
                        hits += [x for x in entries[low:high] if x[1] >= start]
                continue
            keys: Iterable[int] = range(first, last + 1)
            if last - first >= len(blocks):
                keys = sorted(key for key in blocks if first <= key <= last)
            for key in keys:
                entries = blocks.get(key)
                if entries:
                    low = bisect_left(entries, (earliest,)) if key == first else 0
                    high = bisect_left(entries, upper) if key == last else len(entries)
                    if low < high:
                        hits += [x for x in entries[low:high] if x[1] >= start]
        return hits

    def spans_overlapping(self, start: int, end: int) -> list[tuple[int, int]]:
        """`(offset, chunk end)` of each overlapping entry, unordered."""
        return [entry[2:] for entry in self.entries_overlapping(start, end)]

    def chunks_overlapping(self, start: int, end: int) -> list[Chunk]:
        """The chunk of each entry that overlaps `[start, end]`, unordered."""
        return [Chunk(o, e - o) for _, _, o, e in self.entries_overlapping(start, end)]

    def num_chunks_overlapping(self, start: int, end: int) -> int:
        """How many entries overlap `[start, end]`."""
        return len(self.entries_overlapping(start, end))

    def __iter__(self) -> Iterator[PlacedInterval]:
        """All entries by (start, end, offset)."""
        groups = [group.in_order() for group in self._live]
        for start, end, offset, stop in merge(*groups, self._inverted):
            yield PlacedInterval(start, end, Chunk(offset, stop - offset))

    def memory_used_in_interval(self, start: int, end: int) -> list[int]:
        """Summed chunk sizes at each time of `[start, end]` (bytes).

        >>> tree = BufferIntervalTree()
        >>> tree.add(1, 2, Chunk(0, 8))
        >>> tree.add(2, 9, Chunk(8, 4))
        >>> tree.memory_used_in_interval(0, 3)
        [0, 8, 12, 4]
        """
        if start > end:
            return []
        change = [0] * (end - start + 2)
        for first, last, offset, stop in self.entries_overlapping(start, end):
            change[max(first, start) - start] += stop - offset
            change[min(last, end) - start + 1] -= stop - offset
        used, total = [], 0
        for delta in change[:-1]:
            total += delta
            used.append(total)
        return used

    def heap_size_in_interval(self, start: int, end: int) -> int:
        """The highest chunk end in `[start, end]`; 0 if nothing overlaps.

        Raises:
            PackingError: `start > end`.
        """
        if start > end:
            raise PackingError(f"start {start} is after end {end}")
        return max(
            (e for _, _, _, e in self.entries_overlapping(start, end)), default=0
        )

    def check(self) -> None:
        """Raise `InternalError` if the invariant of the class is broken."""
        for level, group in self._classes.items():
            for key, entries in group.blocks.items():
                if entries != sorted(entries):
                    raise InternalError(f"duration class {level} is not sorted")
                for start, end, offset, stop in entries:
                    duration = end - start
                    in_class = (duration.bit_length() + 1) >> 1 == level
                    in_block = start >> group.shift == key
                    if not (
                        0 <= duration <= group.reach
                        and in_class
                        and in_block
                        and offset <= stop
                    ):
                        raise InternalError(
                            f"entry [{start},{end}] does not belong to class {level}"
                        )
        if any(start <= end for start, end, _, _ in self._inverted):
            raise InternalError("a proper interval is stored as inverted")
        if [id(c) for c in self._classes.values()] != [id(c) for c in self._live]:
            raise InternalError("the list of classes is out of step")
