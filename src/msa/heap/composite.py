"""Algorithms made of algorithms: the best of several, and a fallback."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msa.errors import CapacityError, OptionsError
from msa.heap.algorithm import HeapAlgorithm, Result
from msa.heap.whole_number import read_whole


class ChooseBestHeap:
    """Forwards every call to several algorithms; the smallest heap wins.

    The first wins among equals; an error of any of them is the error of all.

    >>> from msa.heap import BufferInterval, GlobalDecreasingSizeBestFitHeap, NoFragmentationStatsHeap
    >>> heap = ChooseBestHeap([GlobalDecreasingSizeBestFitHeap(), GlobalDecreasingSizeBestFitHeap()])
    >>> heap.alloc(0, 64); heap.free(0, 64); heap.finish().heap_size
    64
    """

    __slots__ = ("_algorithms",)

    def __init__(self, algorithms: Sequence[HeapAlgorithm]) -> None:
        if not algorithms:
            raise OptionsError("choosing the best needs at least one algorithm")
        self._algorithms = tuple(algorithms)

    def alloc(self, buffer: int, size: int) -> None:
        """Forward to all."""
        for algorithm in self._algorithms:
            algorithm.alloc(buffer, size)

    def share_with(self, buffer: int, share_with: int, size: int) -> None:
        """Forward to all."""
        for algorithm in self._algorithms:
            algorithm.share_with(buffer, share_with, size)

    def free(self, buffer: int, size: int) -> None:
        """Forward to all."""
        for algorithm in self._algorithms:
            algorithm.free(buffer, size)

    def finish(self) -> Result:
        """The result with the smallest heap size."""
        results = [algorithm.finish() for algorithm in self._algorithms]
        return min(results, key=lambda result: result.heap_size)


class HeapWithFallback:
    """Runs a primary algorithm, and another one if that runs out of memory.

    Args:
        primary: run first.
        fallback: makes the other algorithm; called only when it is needed.
        limit: bytes; a primary result above it counts as out of memory (0: no limit).

    `CapacityError` of the primary means out of memory; other errors pass through.

    >>> from msa.heap import GlobalDecreasingSizeBestFitHeap as Heap
    >>> heap = HeapWithFallback(Heap(), Heap, limit=1024)
    >>> heap.alloc(0, 64); heap.free(0, 64); heap.finish().heap_size
    64
    """

    __slots__ = ("_calls", "_fallback", "_limit", "_primary")

    def __init__(
        self,
        primary: HeapAlgorithm,
        fallback: Callable[[], HeapAlgorithm],
        limit: int = 0,
    ) -> None:
        self._primary = primary
        self._fallback = fallback
        self._limit = read_whole(limit, "limit", at_least=0)
        self._calls: list[tuple[str, tuple[int, ...]]] = []

    def alloc(self, buffer: int, size: int) -> None:
        """Record and forward."""
        self._record("alloc", buffer, size)

    def share_with(self, buffer: int, share_with: int, size: int) -> None:
        """Record and forward."""
        self._record("share_with", buffer, share_with, size)

    def free(self, buffer: int, size: int) -> None:
        """Record and forward."""
        self._record("free", buffer, size)

    def _record(self, call: str, *arguments: int) -> None:
        self._calls.append((call, arguments))
        getattr(self._primary, call)(*arguments)

    def finish(self) -> Result:
        """The primary's result, or the fallback's on the same calls."""
        try:
            result = self._primary.finish()
            if not 0 < self._limit < result.heap_size:
                return result
        except CapacityError:
            pass
        fallback = self._fallback()
        for call, arguments in self._calls:
            getattr(fallback, call)(*arguments)
        return fallback.finish()
