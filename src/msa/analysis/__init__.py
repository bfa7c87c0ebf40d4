"""Facts of a module: what is live when, what shares storage, what things cost.

Every analysis is a class with `run(module, …)`; its result does not change.
`AnalysisManager` computes each once and forgets them when a pass edits the module.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.analysis.alias import AliasAnalysis as AliasAnalysis
    from msa.analysis.buffer_assignment import BufferAssignment as BufferAssignment
    from msa.analysis.call_graph import CallGraph as CallGraph
    from msa.analysis.copy_insertion import insert_copies as insert_copies
    from msa.analysis.copy_insertion import missing_copies as missing_copies
    from msa.analysis.copy_insertion import prepare as prepare
    from msa.analysis.costs import CostOptions as CostOptions
    from msa.analysis.costs import InstructionCosts as InstructionCosts
    from msa.analysis.dataflow import DataflowAnalysis as DataflowAnalysis
    from msa.analysis.fact_table import facts as facts
    from msa.analysis.flatten import FlattenedSchedule as FlattenedSchedule
    from msa.analysis.in_place import InPlacePairs as InPlacePairs
    from msa.analysis.in_place import in_place_pairs as in_place_pairs
    from msa.analysis.live_ranges import LiveRanges as LiveRanges
    from msa.analysis.live_ranges import TimeBound as TimeBound
    from msa.analysis.manager import AnalysisManager as AnalysisManager
    from msa.analysis.memory_boundedness import CostModel as CostModel
    from msa.analysis.memory_report import analyze as analyze
    from msa.analysis.operand_sharing import OperandSharing as OperandSharing
    from msa.analysis.ordering import DependencyOrdering as DependencyOrdering
    from msa.analysis.ordering import SequentialOrdering as SequentialOrdering
    from msa.analysis.schedulers import schedule as schedule
    from msa.analysis.simulation import Simulation as Simulation
    from msa.analysis.simulation import simulate as simulate
    from msa.analysis.trip_counts import TripCounts as TripCounts
    from msa.analysis.values import HloBuffer as HloBuffer
    from msa.analysis.values import Position as Position
    from msa.analysis.values import Use as Use
    from msa.analysis.values import Value as Value

_HOMES = {
    "AliasAnalysis": "alias",
    "AnalysisManager": "manager",
    "BufferAssignment": "buffer_assignment",
    "CallGraph": "call_graph",
    "CostModel": "memory_boundedness",
    "CostOptions": "costs",
    "DataflowAnalysis": "dataflow",
    "DependencyOrdering": "ordering",
    "FlattenedSchedule": "flatten",
    "HloBuffer": "values",
    "InPlacePairs": "in_place",
    "InstructionCosts": "costs",
    "LiveRanges": "live_ranges",
    "OperandSharing": "operand_sharing",
    "Position": "values",
    "SequentialOrdering": "ordering",
    "Simulation": "simulation",
    "TimeBound": "live_ranges",
    "TripCounts": "trip_counts",
    "Use": "values",
    "Value": "values",
    "analyze": "memory_report",
    "facts": "fact_table",
    "in_place_pairs": "in_place",
    "insert_copies": "copy_insertion",
    "missing_copies": "copy_insertion",
    "prepare": "copy_insertion",
    "schedule": "schedulers",
    "simulate": "simulation",
}

__all__ = [  # the names above, loaded on first use
    *_HOMES
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'msa.analysis' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"msa.analysis.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
