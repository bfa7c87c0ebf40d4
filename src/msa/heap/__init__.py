"""Packing buffers with lifetimes into memory: time × address."""

from __future__ import annotations

from msa.heap.algorithm import HeapAlgorithm, HeapResult, Result
from msa.heap.best_fit import GlobalDecreasingSizeBestFitHeap
from msa.heap.buffer_interval import BufferInterval, transitive_colocations
from msa.heap.chunk import INFINITY, Chunk, align_up
from msa.heap.interval_tree import BufferIntervalTree, PlacedInterval
from msa.heap.midpoint import BreadthFirstMidpointIterator
from msa.heap.packing.buffer import Buffer
from msa.heap.packing.fits import FitReport, fits
from msa.heap.packing.instance import Reservation
from msa.heap.packing.io import buffers_from_json, load_csv, parse_csv
from msa.heap.packing.plan import HeapPlan
from msa.heap.packing.portfolio import pack

__all__ = [
    "INFINITY",
    "BreadthFirstMidpointIterator",
    "Buffer",
    "BufferInterval",
    "BufferIntervalTree",
    "Chunk",
    "FitReport",
    "GlobalDecreasingSizeBestFitHeap",
    "HeapAlgorithm",
    "HeapPlan",
    "HeapResult",
    "PlacedInterval",
    "Reservation",
    "Result",
    "align_up",
    "buffers_from_json",
    "fits",
    "load_csv",
    "pack",
    "parse_csv",
    "transitive_colocations",
]
