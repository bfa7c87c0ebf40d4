"""Packing buffers with lifetimes into memory: time × address.

Two faces: `pack` for users who give lifetimes and want offsets (the folder
`packing`), and the heap algorithms of XLA with their exact conventions (inclusive
times, dense ids), which memory space assignment is built on.
"""

from __future__ import annotations

from msa.heap.algorithm import HeapAlgorithm, HeapResult, Result
from msa.heap.allocation_block import AllocationBlock, colocate
from msa.heap.best_fit import GlobalDecreasingSizeBestFitHeap
from msa.heap.buffer_interval import BufferInterval, transitive_colocations
from msa.heap.chunk import INFINITY, Chunk, align_up
from msa.heap.composite import ChooseBestHeap, HeapWithFallback
from msa.heap.constrained import ConstrainedGlobalDecreasingSizeBestFitHeap
from msa.heap.free_chunks import FreeChunks
from msa.heap.interval_tree import BufferIntervalTree, PlacedInterval
from msa.heap.midpoint import BreadthFirstMidpointIterator
from msa.heap.no_fragmentation import NoFragmentationStatsHeap
from msa.heap.packing.buffer import Buffer
from msa.heap.packing.fits import FitReport, fits
from msa.heap.packing.io import (
    buffers_from_json,
    load_buffers,
    load_csv,
    parse_buffers,
    parse_csv,
)
from msa.heap.packing.plan import HeapPlan
from msa.heap.packing.portfolio import pack
from msa.heap.packing.reservation import Reservation
from msa.heap.repacker import BestFitRepacker, Repacker
from msa.heap.search_repacker import SearchRepacker
from msa.heap.simulator import (
    Event,
    EventKind,
    HeapSimulator,
    SimulatedValue,
    minimum_memory,
)
from msa.heap.slice_permutations import AllocatedSlice, SlicePermutations
from msa.heap.sliced_finder import SlicedAllocationFinder
from msa.heap.sliced_interval import SlicedBufferInterval

__all__ = [
    "INFINITY",
    "AllocatedSlice",
    "AllocationBlock",
    "BestFitRepacker",
    "BreadthFirstMidpointIterator",
    "Buffer",
    "BufferInterval",
    "BufferIntervalTree",
    "ChooseBestHeap",
    "Chunk",
    "ConstrainedGlobalDecreasingSizeBestFitHeap",
    "Event",
    "EventKind",
    "FitReport",
    "FreeChunks",
    "GlobalDecreasingSizeBestFitHeap",
    "HeapAlgorithm",
    "HeapPlan",
    "HeapResult",
    "HeapSimulator",
    "HeapWithFallback",
    "NoFragmentationStatsHeap",
    "PlacedInterval",
    "Repacker",
    "Reservation",
    "Result",
    "SearchRepacker",
    "SimulatedValue",
    "SlicePermutations",
    "SlicedAllocationFinder",
    "SlicedBufferInterval",
    "align_up",
    "buffers_from_json",
    "colocate",
    "fits",
    "load_buffers",
    "load_csv",
    "minimum_memory",
    "pack",
    "parse_buffers",
    "parse_csv",
    "transitive_colocations",
]
