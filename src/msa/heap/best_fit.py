"""Best fit over whole lifetimes, in a global order (largest first by default).

Reference: `GlobalDecreasingSizeBestFitHeap` of
`xla/service/heap_simulator/heap_simulator.{h,cc}`.
"""

from __future__ import annotations

from msa.errors import InternalError, PackingError
from msa.heap.algorithm import HeapResult, Result
from msa.heap.buffer_interval import BufferInterval, transitive_colocations
from msa.heap.chunk import Chunk, align_up
from msa.heap.free_space import Gap, best_fit, free_gaps
from msa.heap.interval_tree import BufferIntervalTree
from msa.heap.orders import Order, SortKey, sorted_intervals
from msa.heap.slice_permutations import PermutationKind, SlicePermutations
from msa.heap.sliced_finder import SlicedAllocationFinder
from msa.heap.sliced_interval import SlicedBufferInterval
from msa.heap.whole_number import WORD_LIMIT, read_whole


class GlobalDecreasingSizeBestFitHeap:
    """Collects lifetimes, then places buffers one by one by best fit.

    Also the ledger of the memory-space-assignment algorithm, which asks for
    candidates (`find_chunk_candidate`), and adds (`commit`) and takes back
    entries of `interval_tree` itself.

    Args:
        alignment: every offset is a multiple of it (bytes, positive).
        order: `"spatial"`, `"temporal"` or a key function on intervals.

    Attributes:
        intervals: buffer id → interval; entries may be set from outside.
        interval_tree: the committed entries.
        chunk_map: buffer id → chunk, for what was committed.
        heap_size: highest committed end (bytes); may be set from outside.

    The placement is O(n²) in the worst case (all buffers live at once): each
    buffer looks at every placed one that shares time with it.

    >>> heap = GlobalDecreasingSizeBestFitHeap()
    >>> for buffer, size in enumerate([10, 30, 20, 40]):
    ...     heap.alloc(buffer, size)
    >>> for buffer, size in enumerate([10, 30, 20, 40]):
    ...     heap.free(buffer, size)
    >>> result = heap.finish()
    >>> [result.chunk(buffer).offset for buffer in range(4)]
    [90, 40, 70, 0]
    """

    __slots__ = (
        "_clock",
        "_colocations",
        "alignment",
        "chunk_map",
        "heap_size",
        "interval_tree",
        "intervals",
        "order",
    )

    def __init__(self, alignment: int = 1, order: Order | SortKey = "spatial") -> None:
        alignment = read_whole(alignment, "alignment", at_least=1)
        self.alignment = alignment
        self.order: Order | SortKey = order
        self.intervals: dict[int, BufferInterval] = {}
        self.interval_tree = BufferIntervalTree()
        self.chunk_map: dict[int, Chunk] = {}
        self.heap_size = 0
        self._clock = 0
        # Colocations gathered by `share_with`, moved into `intervals` by `seal`.
        self._colocations: dict[int, list[int]] = {}

    # --- The stream of allocations -------------------------------------------

    def alloc(self, buffer: int, size: int) -> None:
        """`buffer` becomes live; an empty buffer gets an empty chunk at 0."""
        self._open(buffer, size, need_allocation=True)

    def share_with(self, buffer: int, share_with: int, size: int) -> None:
        """`buffer` becomes live at the offset that `share_with` will get."""
        if share_with not in self.intervals:
            # The other one is empty and has no place of its own.
            self.alloc(buffer, size)
        elif self._open(buffer, size, need_allocation=False):
            self._colocations.setdefault(share_with, []).append(buffer)

    def _open(self, buffer: int, size: int, *, need_allocation: bool) -> bool:
        buffer = read_whole(buffer, "buffer", below=WORD_LIMIT, error=PackingError)
        size = read_whole(
            size, "size", at_least=0, below=WORD_LIMIT, error=PackingError
        )
        if size == 0:
            self.chunk_map[buffer] = Chunk(0, 0)
            return False
        if buffer in self.intervals:
            raise InternalError(f"buffer {buffer} was allocated twice")
        self.intervals[buffer] = BufferInterval(
            buffer, size, self._clock, -1, (), need_allocation
        )
        self._clock += 1
        return True

    def free(self, buffer: int, size: int) -> None:
        """`buffer` dies; the size must be the allocated one."""
        size = read_whole(size, "size", below=WORD_LIMIT, error=PackingError)
        if size == 0:
            return
        old = self.intervals.get(buffer)
        if old is None or old.size != size or old.end != -1:
            raise InternalError(f"free of buffer {buffer} ({size} B) has no allocation")
        self.intervals[buffer] = BufferInterval(
            buffer, size, old.start, self._clock, old.colocations, old.need_allocation
        )
        self._clock += 1

    def seal(self) -> None:
        """Move the gathered colocations into `intervals`."""
        for buffer, shared in self._colocations.items():
            old = self.intervals[buffer]
            self.intervals[buffer] = BufferInterval(
                buffer,
                old.size,
                old.start,
                old.end,
                old.colocations + tuple(shared),
                old.need_allocation,
            )
        self._colocations.clear()

    def sorted_intervals(self) -> list[BufferInterval]:
        """All intervals, also those that ride along, in placement order."""
        self.seal()
        return sorted_intervals(self.intervals, self.order)

    def finish(self) -> Result:
        """Place every buffer that needs it; one heap."""
        for interval in self.sorted_intervals():
            if interval.need_allocation:
                self.commit(interval, self.find_chunk_candidate(interval))
        return Result.of_heaps([HeapResult(dict(self.chunk_map), self.heap_size)])

    # --- Free space ----------------------------------------------------------

    def transitive_colocations(self, interval: BufferInterval) -> list[BufferInterval]:
        """The intervals that must get the same offset as `interval`."""
        if not interval.colocations:
            return []
        return transitive_colocations(interval, self.intervals)

    def used_spans(self, interval: BufferInterval) -> list[tuple[int, int]]:
        """`(offset, end)` of what overlaps the interval or its colocations."""
        tree = self.interval_tree
        used = tree.spans_overlapping(interval.start, interval.end)
        if interval.colocations:
            for other in self.transitive_colocations(interval):
                used += tree.spans_overlapping(other.start, other.end)
        return used

    def free_gaps(self, interval: BufferInterval) -> list[Gap]:
        """Free `(start, end)` ranges that hold the interval's own size."""
        return free_gaps(self.used_spans(interval), interval.size, self.alignment)

    def max_colocation_size(self, interval: BufferInterval) -> int:
        """The largest size over the interval and its colocations (bytes)."""
        size = interval.size
        for other in self.transitive_colocations(interval):
            size = max(size, other.size)
        return size

    def find_chunk_candidate(
        self, interval: BufferInterval, preferred_offset: int = -1
    ) -> Chunk:
        """Where the interval would go: always succeeds, the heap is unbounded.

        The caller compares the chunk's end with its capacity. The chunk has the
        interval's own size, though room for the largest colocation is ensured.
        O(m log m) for m committed entries that share time with the interval.
        """
        size = interval.size
        if not interval.colocations:
            used = self.interval_tree.spans_overlapping(interval.start, interval.end)
            room = size
        else:
            used = self.used_spans(interval)
            room = self.max_colocation_size(interval)
        gaps = free_gaps(used, size, self.alignment)
        return Chunk(best_fit(gaps, room, self.alignment, preferred_offset), size)

    def find_chunk_candidates(
        self,
        sliced: SlicedBufferInterval,
        preferred_offset: int = -1,
        permutations: PermutationKind = "preferred",
    ) -> list[Chunk]:
        """Where the slices would go, by slice time; always succeeds."""
        full = sliced.full
        finder = SlicedAllocationFinder(
            [self.free_gaps(interval) for interval in sliced.search_intervals()],
            sliced.sizes,
            max_colocation_size=self.max_colocation_size(full),
            preferred_offset=preferred_offset,
            alignment=self.alignment,
            permutations=SlicePermutations.new(permutations, sliced.starts),
        )
        # The last chunk is what the largest colocation needs beyond the slices.
        return finder.find()[:-1]

    def find_latest_end_with_free_chunk_at_preferred_offset(
        self, interval: BufferInterval, preferred_offset: int
    ) -> int:
        """The last time up to which the interval can lie at the offset.

        The earliest start of a committed entry in the way, less one; the interval's
        end if nothing is. Colocations are ignored. May be below the interval's start.
        """
        latest = interval.end
        top = preferred_offset + interval.size
        alignment = self.alignment
        entries = self.interval_tree.entries_overlapping(interval.start, interval.end)
        for start, _, offset, end in entries:
            if start <= latest and (
                offset < preferred_offset < align_up(end, alignment)
                or preferred_offset <= offset < top
            ):
                latest = start - 1
        return latest

    # --- Commit --------------------------------------------------------------

    def commit_chunk_only(self, interval: BufferInterval, chunk: Chunk) -> int:
        """Record the chunk for the interval and its colocations.

        Returns the room taken (the largest size among them). The tree is untouched.
        """
        if chunk.size != interval.size:
            raise InternalError(
                f"chunk {chunk} has {chunk.size} B, buffer {interval.buffer} "
                f"has {interval.size} B"
            )
        room = self.max_colocation_size(interval)
        wide = Chunk(chunk.offset, room)
        self.chunk_map[interval.buffer] = wide
        for other in self.transitive_colocations(interval):
            self.chunk_map[other.buffer] = wide
        self.heap_size = max(self.heap_size, wide.end)
        return room

    def commit(self, interval: BufferInterval, chunk: Chunk) -> None:
        """Record the chunk and add the interval and its colocations to the tree."""
        wide = Chunk(chunk.offset, self.commit_chunk_only(interval, chunk))
        self.interval_tree.add(interval.start, interval.end, wide)
        for other in self.transitive_colocations(interval):
            self.interval_tree.add(other.start, other.end, wide)
