"""What a heap algorithm is: a stream of allocations and frees, then a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msa.heap.chunk import Chunk


@dataclass(frozen=True, slots=True)
class HeapResult:
    """One heap: where each buffer lies, and how high the heap is (bytes).

    >>> from msa.heap import Chunk
    >>> HeapResult({0: Chunk(0, 64)}, 64).heap_size
    64
    """

    chunk_map: Mapping[int, Chunk] = field(default_factory=dict)
    heap_size: int = 0

    def updated_heap_size(self, chunk: Chunk) -> int:
        """The heap size once `chunk` is added."""
        return max(self.heap_size, chunk.end)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a heap algorithm.

    Attributes:
        heaps: one or more heaps; every buffer is in exactly one.
        heap_size: bytes, the sum over the heaps.
        fragmentation_size: bytes above what a perfect packer would need (set by
            the simulator; XLA's own accounting, which can be too small).

    >>> Result(heap_size=128, fragmentation_size=16).heap_size
    128
    """

    heaps: tuple[HeapResult, ...] = ()
    heap_size: int = 0
    fragmentation_size: int = 0

    @classmethod
    def of_heaps(cls, heaps: list[HeapResult]) -> Result:
        """The result whose size is the sum of the heaps' sizes."""
        return cls(tuple(heaps), sum(heap.heap_size for heap in heaps))

    def chunk(self, buffer: int) -> Chunk:
        """The chunk of a buffer in whichever heap holds it.

        Raises:
            KeyError: no heap holds the buffer.
        """
        for heap in self.heaps:
            if buffer in heap.chunk_map:
                return heap.chunk_map[buffer]
        raise KeyError(buffer)


class HeapAlgorithm(Protocol):
    """Receives allocations in schedule order; decides at `finish`.

    Buffers are dense integer ids, sizes are bytes.

    >>> from msa.heap import GlobalDecreasingSizeBestFitHeap
    >>> heap: HeapAlgorithm = GlobalDecreasingSizeBestFitHeap()
    >>> heap.alloc(0, 64); heap.free(0, 64); heap.finish().heap_size
    64
    """

    def alloc(self, buffer: int, size: int) -> None:
        """`buffer` becomes live now."""

    def share_with(self, buffer: int, share_with: int, size: int) -> None:
        """`buffer` becomes live now, at the offset of `share_with`."""

    def free(self, buffer: int, size: int) -> None:
        """`buffer` dies now."""

    def finish(self) -> Result:
        """Place everything that was allocated."""
