"""The multiset of placed buffers: (time, time, chunk) with overlap queries.

Times are **inclusive** on both ends here, as in XLA's heap simulator: an entry
that ends at 5 and one that starts at 5 overlap. Half-open plans are converted
at the door.

Entries are grouped by duration (a class spans a factor of four), each class a
list sorted by start. Within a class an entry that overlaps `[s, e]` starts in
`[s - longest duration of the class, e]`, which two bisections find; the range
holds at most about four times as many entries as overlap. So a query costs
O(classes * log n + hits) and there are few classes: half the bit length of the
longest duration.

Reference: `BufferIntervalTree` of `xla/service/heap_simulator/heap_simulator.h`
(a treap there; the order of hits is unspecified in both).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import merge
from typing import NamedTuple

from msa.errors import InternalError, PackingError
from msa.heap.chunk import Chunk

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
    """Entries of similar duration, sorted; `reach` is the longest duration."""

    __slots__ = ("entries", "reach")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.reach = 0


class BufferIntervalTree:
    """Multiset of `(start, end, chunk)` with inclusive times.

    `add` and `remove` cost O(log n) comparisons plus a list insertion;
    the queries O(classes * log n + hits).

    Invariant: every class is sorted, its entries last at most `reach`, and the
    classes together hold `len(self)` entries.

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
        return len(self._inverted) + sum(len(c.entries) for c in self._live)

    def _entries_for(self, start: int, end: int) -> list[Entry]:
        duration = end - start
        if duration < 0:
            return self._inverted
        level = (duration.bit_length() + 1) >> 1
        found = self._classes.get(level)
        if found is None:
            found = self._classes[level] = _DurationClass()
            self._live.append(found)
        if duration > found.reach:
            found.reach = duration
        return found.entries

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
            entries = group.entries
            high = bisect_left(entries, upper)
            low = bisect_left(entries, (start - group.reach,), 0, high)
            if low < high:
                hits += [entry for entry in entries[low:high] if entry[1] >= start]
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
        groups = [group.entries for group in self._live]
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
            if group.entries != sorted(group.entries):
                raise InternalError(f"duration class {level} is not sorted")
            for start, end, offset, stop in group.entries:
                duration = end - start
                in_class = (duration.bit_length() + 1) >> 1 == level
                if not (0 <= duration <= group.reach and in_class and offset <= stop):
                    raise InternalError(
                        f"entry [{start},{end}] does not belong to class {level}"
                    )
        if any(start <= end for start, end, _, _ in self._inverted):
            raise InternalError("a proper interval is stored as inverted")
        if [id(c) for c in self._classes.values()] != [id(c) for c in self._live]:
            raise InternalError("the list of classes is out of step")
