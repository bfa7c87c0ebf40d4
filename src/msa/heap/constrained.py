"""Best fit into several heaps of limited size.

Reference: `ConstrainedGlobalDecreasingSizeBestFitHeap` of
`xla/service/heap_simulator/heap_simulator.cc`.
"""

from __future__ import annotations

import heapq
from typing import Literal

from msa.errors import InternalError
from msa.heap.algorithm import HeapResult, Result
from msa.heap.best_fit import GlobalDecreasingSizeBestFitHeap
from msa.heap.buffer_interval import BufferInterval
from msa.heap.chunk import Chunk, align_up
from msa.heap.free_chunks import FreeChunks
from msa.heap.interval_tree import BufferIntervalTree
from msa.heap.orders import Order, SortKey, colocated_span, sort_key
from msa.heap.whole_number import read_whole

Strategy = Order | Literal["fast_split"] | SortKey

#: Fast split places this many of the largest buffers without colocations by best fit.
_EXPENSIVE = 500


class ConstrainedGlobalDecreasingSizeBestFitHeap(GlobalDecreasingSizeBestFitHeap):
    """Fills heaps one after another, each up to a soft limit.

    A heap takes a buffer over the limit only as its first. The limit is compared
    with the end of the buffer's own size, not of its largest colocation (XLA's
    quirk). Buffer sizes of a colocation must agree in the fast strategies.

    Args:
        size_limit_per_heap: bytes.
        alignment: of all offsets (bytes).
        strategy: `spatial`, `temporal` or a key for best fit; `fast_merge` sweeps
            over time with a free list, without looking for holes in time;
            `fast_split` places the largest by best fit and sweeps the rest on top.

    >>> heap = ConstrainedGlobalDecreasingSizeBestFitHeap(50)
    >>> for buffer, size in enumerate([10, 30, 20, 40]):
    ...     heap.alloc(buffer, size)
    >>> for buffer, size in enumerate([10, 30, 20, 40]):
    ...     heap.free(buffer, size)
    >>> [sorted(one.chunk_map) for one in heap.finish().heaps]
    [[0, 3], [1, 2]]
    """

    __slots__ = ("size_limit_per_heap", "strategy")

    def __init__(
        self,
        size_limit_per_heap: int,
        alignment: int = 1,
        strategy: Strategy = "spatial",
    ) -> None:
        super().__init__(alignment, "spatial" if strategy == "fast_split" else strategy)
        self.size_limit_per_heap = read_whole(
            size_limit_per_heap, "size_limit_per_heap"
        )
        self.strategy = strategy

    def finish(self) -> Result:
        """One or more heaps; the heap size is their sum."""
        needed = [i for i in self.sorted_intervals() if i.need_allocation]
        expensive: list[BufferInterval] = []
        fast: list[BufferInterval] = []
        if self.strategy == "fast_merge":
            fast = needed
        elif self.strategy == "fast_split":
            expensive, fast = self._split(needed)
        else:
            expensive = needed
        heaps: list[HeapResult] = []
        while expensive or fast or not heaps:
            expensive = self._best_fit_pass(expensive)
            fast = self._sweep_pass(fast)
            heaps.append(HeapResult(self.chunk_map, self.heap_size))
            self.chunk_map = {}
            self.heap_size = 0
            self.interval_tree = BufferIntervalTree()
        return Result.of_heaps(heaps)

    def _split(
        self, intervals: list[BufferInterval]
    ) -> tuple[list[BufferInterval], list[BufferInterval]]:
        """The buffers for best fit, and those for the sweep in its order."""
        expensive, fast = [], []
        alone = 0
        for interval in intervals:
            alone += not interval.colocations
            if interval.colocations or alone <= _EXPENSIVE:
                expensive.append(interval)
            else:
                fast.append(interval)
        return expensive, sorted(fast, key=sort_key("fast_merge", self.intervals))

    def _may_take(self, end: int) -> bool:
        return end <= self.size_limit_per_heap or self.heap_size == 0

    def _best_fit_pass(self, intervals: list[BufferInterval]) -> list[BufferInterval]:
        """Place what fits into the current heap; the rest is returned."""
        skipped = []
        for interval in intervals:
            chunk = self.find_chunk_candidate(interval)
            if self._may_take(chunk.end):
                self.commit(interval, chunk)
            else:
                skipped.append(interval)
        return skipped

    def _sweep_pass(self, intervals: list[BufferInterval]) -> list[BufferInterval]:
        """Sweep over time above what best fit has placed in the current heap.

        O(n log n). The addresses of a buffer stay taken from the first start to the
        last end over its colocations.
        """
        free = FreeChunks(self.alignment)
        free.allocate(0, self.heap_size)
        live: list[tuple[int, int, int]] = []
        skipped = []
        for interval in intervals:
            start, end = colocated_span(interval, self.intervals)
            while live and live[0][0] <= start:
                _, low, high = heapq.heappop(live)
                free.deallocate(low, high)
            room = self.max_colocation_size(interval)
            found = free.find_just_large_enough(room)
            if found is None:
                raise InternalError(f"no room of {room} B in an unlimited heap")
            offset = align_up(found.offset, self.alignment)
            if not self._may_take(offset + room):
                skipped.append(interval)
                continue
            # The gap below an aligned offset is taken along, as in XLA.
            free.allocate(found.offset, offset + room)
            heapq.heappush(live, (end, found.offset, offset + room))
            self.commit_chunk_only(interval, Chunk(offset, room))
        return skipped
