"""A plan as plain data: one capture, many reporters.

Pages, traces, pictures and diffs all read this, never the plan itself. The schema is
versioned: `PlanCapture["schema"]`. Any scheduled module can be captured, whoever
placed its values; a plan adds offsets, its estimate and its reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msa.analysis.manager import AnalysisManager
from msa.analysis.simulation import Simulation, simulate
from msa.hlo.module import Module
from msa.report.capture_rows import (
    BufferRow,
    CopyRow,
    EffectRow,
    buffer_rows,
    effect_rows,
    module_copies,
)
from msa.report.effects import Effects
from msa.report.reasons import Why
from msa.target import Target

if TYPE_CHECKING:
    from msa.assignment import Assignment

SCHEMA: Final = "msa.plan/1"

Chunks = Mapping[str, tuple[int, int]]


class StepTable(TypedDict):
    """Columns of the captured module's flattened schedule; seconds of one run."""

    names: list[str]
    opcodes: list[str]
    compute: list[float]
    memory: list[float]
    stall: list[float]
    trip: list[float]


class PlanCapture(TypedDict):
    """Everything that the reporters show.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> capture_plan(plan)["schema"]
    'msa.plan/1'
    """

    schema: str
    module: str
    target: dict[str, Any]
    strategy: str
    alternate_memory_bytes: int
    alternate_peak_bytes: int
    estimate: dict[str, float]
    steps: StepTable
    occupancy: list[int]
    buffers: list[BufferRow]
    copies: list[CopyRow]
    wins: list[EffectRow]
    losses: list[EffectRow]


def capture_plan(plan: Assignment) -> PlanCapture:
    """The capture of a plan; nothing is planned or simulated again.

    O(n log n) in the size of the planned module.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> len(capture_plan(plan)["steps"]["names"]) == len(plan.analyses.schedule)
    True
    """
    from msa.report.reasons import PlanReasons

    estimate = plan.estimate
    stalls = [step.stall for step in plan.simulation.steps]
    copies: list[CopyRow] = [
        {
            "kind": copy.kind,
            "source": copy.source,
            "value": copy.value,
            "bytes": copy.bytes,
            "start_step": copy.start_step,
            "done_step": copy.done_step,
            "offset": copy.offset,
            "trip_count": copy.trip_count,
            "stall": stalls[copy.done_step],
            "start": copy.start,
            "done": copy.done,
        }
        for copy in plan.copies
    ]
    capture = _capture(
        plan.simulation,
        plan.analyses,
        plan.chunks,
        copies,
        PlanReasons(plan),
        plan.problem.machine.capacity,
    )
    capture["strategy"] = str(plan.options.strategy)
    capture["alternate_peak_bytes"] = plan.alternate_peak_bytes
    capture["estimate"] = {
        "before_seconds": estimate.before_seconds,
        "after_seconds": estimate.after_seconds,
        "lower_bound_seconds": estimate.lower_bound_seconds,
        "copy_stall_seconds": estimate.copy_stall_seconds,
        "speedup": estimate.speedup,
    }
    return capture


def capture_module(
    module: Module, target: Target, *, chunks: Chunks | None = None
) -> PlanCapture:
    """The capture of any scheduled module: this library's, XLA's, or edited by hand.

    Args:
        module: scheduled; layouts say what is in fast memory (`S(1)`).
        target: the machine that it is timed on.
        chunks: `name{index}` of defining positions → (offset, size) in bytes; a
            buffer without one has offset -1 and is not drawn in the map.

    Raises:
        ScheduleError: the module has no schedule.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[1024,1024]{1,0} parameter(0)
    ...   b = f32[1024,1024]{1,0:S(1)} negate(a)
    ...   ROOT c = f32[1024,1024]{1,0} exponential(b)
    ... }''')
    >>> capture = capture_module(module, msa.Target.preset("tpu_v5e"))
    >>> [(row["name"], row["start"], row["end"]) for row in capture["buffers"]]
    [('b{}', 1, 3)]
    """
    analyses = AnalysisManager(module)
    simulation = simulate(module, target, analyses=analyses)
    copies = module_copies(simulation, analyses, chunks or {})
    capacity = target.alternate_memory_bytes
    return _capture(simulation, analyses, chunks or {}, copies, _nobody_knows, capacity)


def _nobody_knows(name: str) -> Why:
    return Why()


def _capture(
    simulation: Simulation,
    analyses: AnalysisManager,
    chunks: Chunks,
    copies: list[CopyRow],
    reasons: Callable[[str], Why],
    capacity: int,
) -> PlanCapture:
    effects = Effects(simulation, analyses)
    buffers = buffer_rows(analyses, effects, chunks, copies)
    occupancy: list[int] = simulation.alternate_bytes.tolist()
    peak = max((row["offset"] + row["size"] for row in buffers), default=0)
    wins, losses = effect_rows(buffers, copies, effects, reasons, capacity)
    seconds = simulation.elapsed_seconds
    target = simulation.target
    return {
        "schema": SCHEMA,
        "module": simulation.module.name,
        "target": target.to_dict(),
        "strategy": "",
        "alternate_memory_bytes": capacity,
        "alternate_peak_bytes": max([peak, *occupancy]),
        "estimate": {
            "before_seconds": seconds,
            "after_seconds": seconds,
            "lower_bound_seconds": 0.0,
            "copy_stall_seconds": simulation.copy_stall_seconds,
            "speedup": 1.0,
        },
        "steps": _steps(simulation),
        "occupancy": occupancy,
        "buffers": buffers,
        "copies": copies,
        "wins": wins,
        "losses": losses,
    }


def _steps(simulation: Simulation) -> StepTable:
    steps: Sequence[Any] = simulation.steps
    return {
        "names": [step.name for step in steps],
        "opcodes": [step.opcode for step in steps],
        "compute": [step.compute for step in steps],
        "memory": [step.memory for step in steps],
        "stall": [step.stall for step in steps],
        "trip": [step.trip_count for step in steps],
    }
