"""A plan as plain data: one capture, many reporters.

Pages, traces, tables and files all read this, never the plan itself. The schema is
versioned: `PlanCapture["schema"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from msa.analysis import AliasAnalysis, LiveRanges, simulate
from msa.analysis.manager import AnalysisManager
from msa.hlo import Instruction, Module

if TYPE_CHECKING:
    from msa.assignment import Assignment

SCHEMA: Final = "msa.plan/1"


class StepTable(TypedDict):
    """Columns of the planned module's flattened schedule; times in seconds."""

    names: list[str]
    opcodes: list[str]
    compute: list[float]
    memory: list[float]
    stall: list[float]
    trip: list[int]


class PlanCapture(TypedDict):
    """Everything that the reporters show. Steps are half-open `[start, end)`."""

    schema: str
    module: str
    target: dict[str, Any]
    strategy: str
    alternate_memory_bytes: int
    alternate_peak_bytes: int
    estimate: dict[str, float]
    steps: StepTable
    occupancy: list[int]
    buffers: list[dict[str, Any]]
    copies: list[dict[str, Any]]
    wins: list[dict[str, Any]]
    losses: list[dict[str, Any]]
