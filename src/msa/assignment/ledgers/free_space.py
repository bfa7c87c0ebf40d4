"""Free addresses over time: what lies in alternate memory, and where room is left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msa.assignment.ledgers.peak import PeakUsage
from msa.assignment.ledgers.transaction import Transaction
from msa.errors import InternalError
from msa.heap.chunk import Chunk, align_up
from msa.heap.free_space import best_fit, free_gaps
from msa.heap.interval_tree import BufferIntervalTree
from msa.heap.slice_permutations import PermutationKind, SlicePermutations
from msa.heap.sliced_finder import SlicedAllocationFinder


class FreeSpace:
    """Chunks held in inclusive step intervals, with best fit and peak usage.

    Args:
        length: number of steps, one more than the last one that may be used.
        capacity, alignment: bytes.
        transaction: where changes are recorded.

    Attributes:
        heap_size: highest chunk end committed so far (bytes); kept on rollback, as
            the algorithm uses it only for reports.

    >>> space = FreeSpace(10, 100, 1, Transaction())
    >>> space.commit(0, 4, Chunk(0, 60))
    >>> space.find(3, 6, 50), space.find(5, 6, 50), space.find(3, 6, 40)
    (None, 0, 60)
    """

    __slots__ = ("_transaction", "_tree", "alignment", "capacity", "heap_size", "peak")

    def __init__(
        self, length: int, capacity: int, alignment: int, transaction: Transaction
    ) -> None:
        self._tree = BufferIntervalTree()
        self._transaction = transaction
        self.peak = PeakUsage(length, transaction)
        self.capacity = capacity
        self.alignment = alignment
        self.heap_size = 0

    def find(self, start: int, end: int, size: int) -> int | None:
        """An offset free for all of `[start, end]`, or None if nothing fits.

        The smallest gap that is large enough, the lowest of several. O(m log m) for m
        chunks that share time with the interval, after a quick test against the bytes
        in use.
        """
        # Chunks of one step are disjoint: if their sum leaves too little, no gap
        # can be large enough.
        if self.peak.highest(start, end) > self.capacity - size:
            return None
        used = self._tree.spans_overlapping(start, end)
        gaps = free_gaps(used, size, self.alignment)
        offset = best_fit(gaps, size, self.alignment)
        return offset if offset + size <= self.capacity else None

    def fits_at(self, start: int, end: int, size: int, offset: int) -> bool:
        """Whether `[offset, offset + size)` is aligned and free for all of the time."""
        top = offset + size
        if top > self.capacity or offset % self.alignment:
            return False
        return not any(
            low < top and offset < high
            for low, high in self._tree.spans_overlapping(start, end)
        )

    def find_slices(
        self,
        starts: Sequence[int],
        end: int,
        sizes: Sequence[int],
        kind: PermutationKind,
        preferred: int = -1,
    ) -> list[Chunk]:
        """Chunks by slice time for slices that lie next to each other; or none.

        Args:
            starts: inclusive first step of each slice time, ascending.
            end: inclusive last step of the whole.
            sizes: bytes of the slices by offset.
            kind: which orders of arrival are tried.
            preferred: the only offset to try, if not negative.
        """
        total = sum(sizes)
        if self.peak.highest(starts[-1], end) > self.capacity - total:
            return []
        gaps = [
            free_gaps(
                self._tree.spans_overlapping(start, following - 1),
                min(sizes),
                self.alignment,
            )
            for start, following in pairwise(starts)
        ]
        used = self._tree.spans_overlapping(starts[-1], end)
        gaps.append(free_gaps(used, total, self.alignment))
        finder = SlicedAllocationFinder(
            gaps,
            sizes,
            alignment=self.alignment,
            permutations=SlicePermutations.new(kind, starts),
        )
        found = finder.find_for_offset(preferred) if preferred >= 0 else finder.find()
        chunks = found[: len(sizes)]
        if any(chunk.end > self.capacity for chunk in chunks):
            return []
        return chunks

    def latest_end_at(self, start: int, end: int, size: int, offset: int) -> int:
        """The last step up to which the chunk is free from `start` on, at most `end`.

        Below `start` if it is not free at `start`.
        """
        latest = end
        top = offset + size
        for first, _, low, high in self._tree.entries_overlapping(start, end):
            if first <= latest and (
                low < offset < align_up(high, self.alignment) or offset <= low < top
            ):
                latest = first - 1
        return latest

    def commit(self, start: int, end: int, chunk: Chunk) -> None:
        """Take the chunk in `[start, end]`.

        Raises:
            InternalError: it ends above the capacity.
        """
        if chunk.end > self.capacity:
            raise InternalError(f"chunk {chunk} exceeds {self.capacity} bytes")
        self._tree.add(start, end, chunk)
        self.peak.add(start, end, chunk.size)
        self.heap_size = max(self.heap_size, chunk.end)
        self._transaction.record(self._tree.remove, start, end, chunk)

    def release(self, start: int, end: int, chunk: Chunk) -> None:
        """Give a committed chunk back.

        Raises:
            InternalError: it is not there.
        """
        if not self._tree.remove(start, end, chunk):
            raise InternalError(f"chunk {chunk} in [{start}, {end}] is not held")
        self.peak.remove(start, end, chunk.size)
        self._transaction.record(self._tree.add, start, end, chunk)

    def replace(self, placed: Sequence[tuple[int, int, Chunk]]) -> None:
        """Hold exactly these `(start, end, chunk)` instead (after repacking).

        Bytes in use per step stay: repacking moves chunks only in address.
        """
        self._tree.clear()
        for start, end, chunk in placed:
            self._tree.add(start, end, chunk)
            self.heap_size = max(self.heap_size, chunk.end)

    def overlapping(self, start: int, end: int) -> list[Chunk]:
        """Chunks held at some step of `[start, end]`, unordered."""
        return self._tree.chunks_overlapping(start, end)

    def check(self) -> None:
        """Raise `InternalError` if the tree or the usage is inconsistent."""
        self._tree.check()
        self.peak.check()
