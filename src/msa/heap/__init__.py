"""Packing buffers with lifetimes into memory: time × address."""

from __future__ import annotations

from msa.heap.algorithm import HeapAlgorithm, HeapResult, Result
from msa.heap.best_fit import GlobalDecreasingSizeBestFitHeap
from msa.heap.buffer_interval import BufferInterval, transitive_colocations
from msa.heap.chunk import INFINITY, Chunk, align_up
from msa.heap.interval_tree import BufferIntervalTree, PlacedInterval
from msa.heap.midpoint import BreadthFirstMidpointIterator

__all__ = [
    "INFINITY",
    "BreadthFirstMidpointIterator",
    "BufferInterval",
    "BufferIntervalTree",
    "Chunk",
    "GlobalDecreasingSizeBestFitHeap",
    "HeapAlgorithm",
    "HeapResult",
    "PlacedInterval",
    "Result",
    "align_up",
    "transitive_colocations",
]
