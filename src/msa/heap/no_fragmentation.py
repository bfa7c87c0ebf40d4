"""The memory that a packer without fragmentation would need."""

from __future__ import annotations

from msa.heap.algorithm import HeapResult, Result


class NoFragmentationStatsHeap:
    """Tracks live bytes; its heap size is their maximum, and it places nothing.

    An allocation that shares counts in full, as in XLA: the simulator frees what is
    shared just before, except for aliases of one buffer whose lifetimes touch, which
    are both counted at that moment.

    >>> heap = NoFragmentationStatsHeap()
    >>> heap.alloc(0, 10); heap.alloc(1, 20); heap.free(0, 10); heap.alloc(2, 5)
    >>> heap.finish().heap_size
    30
    """

    __slots__ = ("_current", "_maximum")

    def __init__(self) -> None:
        self._current = 0
        self._maximum = 0

    def alloc(self, buffer: int, size: int) -> None:
        """Count `size` bytes more."""
        self._current += size
        self._maximum = max(self._maximum, self._current)

    def share_with(self, buffer: int, share_with: int, size: int) -> None:
        """The same as `alloc`."""
        self.alloc(buffer, size)

    def free(self, buffer: int, size: int) -> None:
        """Count `size` bytes less."""
        self._current -= size

    def finish(self) -> Result:
        """One heap of the maximum, with no chunks."""
        return Result.of_heaps([HeapResult({}, self._maximum)])
