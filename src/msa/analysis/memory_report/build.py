"""Building a memory report: `analyze`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from msa.analysis.alias import AliasAnalysis
from msa.analysis.buffer_assignment import (
    BufferAllocation,
    BufferAssignment,
    BufferAssignmentOptions,
    allocation_load,
)
from msa.analysis.copy_insertion import prepare
from msa.analysis.copy_insertion.conflicts import find_conflicts
from msa.analysis.flatten import FlattenedSchedule
from msa.analysis.live_ranges import LiveRanges
from msa.analysis.memory_report.bound import needed_bytes
from msa.analysis.memory_report.describe import origin_of
from msa.analysis.memory_report.donations import find_donations
from msa.analysis.memory_report.hints import find_hints
from msa.analysis.memory_report.model import (
    Breakdown,
    BufferKind,
    LiveRow,
    MemoryReport,
)

if TYPE_CHECKING:
    from msa.analysis.values import Value
    from msa.hlo.module import Module
    from msa.hlo.shape import Shape
    from msa.target import Target

DEFAULT_ALIGNMENT: Final = 64
"""Alignment of temporaries (bytes) when no target says otherwise."""


def analyze(module: Module, *, target: Target | None = None) -> MemoryReport:
    """What takes the module's memory, when, and what could be done about it.

    A module without a schedule gets one, and copies that its storage sharing needs
    are put in; both are noted among the hints. The module itself is not changed.
    Sizes are those of the layouts, padding of tiles included. Near linear.

    Args:
        module: any module.
        target: its alignment is used for temporaries; 64 bytes without one.

    >>> import msa
    >>> report = msa.analyze(msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   x = f32[256] parameter(0)
    ...   y = f32[256] exponential(x)
    ...   z = f32[256] reverse(y), dimensions={0}
    ...   ROOT w = f32[256] reverse(z), dimensions={0}
    ... }'''))
    >>> report.peak_bytes, report.breakdown.temporaries, report.steps[report.peak_step]
    (3072, 1024, 'z')
    """
    live, notes = _live_ranges(module)
    options = BufferAssignmentOptions(
        size=padded_size,
        alignment=DEFAULT_ALIGNMENT if target is None else target.alignment_bytes,
        allocate_constants=True,
    )
    assignment = BufferAssignment.run(live.module, options, live=live)
    return _Builder(assignment, notes).build()


def padded_size(value: Value) -> int:
    """Bytes of a value in memory, padding of tiled layouts included."""
    return _padded(value.shape)


@lru_cache(maxsize=4096)
def _padded(shape: Shape) -> int:
    return shape.padded_byte_size()


def _live_ranges(module: Module) -> tuple[LiveRanges, list[str]]:
    """Live ranges of the module, made ready where needed, and what was done."""
    if module.schedule is not None:
        schedule = FlattenedSchedule.run(module)
        alias = AliasAnalysis.run(module)
        flat = alias.dataflow.call_graph.is_flattened
        if flat and not find_conflicts(alias.dataflow, schedule, alias.pairs):
            return LiveRanges.run(module, alias=alias, schedule=schedule), []
    notes = []
    if module.schedule is None:
        notes.append("the module has no schedule: one of least peak was made")
    ready = prepare(module)
    copies = _copies(ready) - _copies(module)
    if copies > 0:
        notes.append(
            f"{copies} copies are needed where storage cannot be shared; they were "
            "put in for this report"
        )
    return LiveRanges.run(ready), notes


def _copies(module: Module) -> int:
    return sum(x.opcode == "copy" for c in module.computations for x in c.instructions)


class _Builder:
    """Reads one assignment."""

    def __init__(self, assignment: BufferAssignment, notes: list[str]) -> None:
        self._assignment = assignment
        self._live = assignment.live
        self._flow = assignment.alias.dataflow
        self._notes = notes
        self._steps = len(self._live.schedule)
        self._default = [a for a in assignment.allocations if a.color == 0]

    def build(self) -> MemoryReport:
        arguments = sum(a.size for a in self._default if a.is_parameter)
        outputs = sum(a.size for a in self._default if a.maybe_live_out)
        aliased = sum(
            a.size for a in self._default if a.is_parameter and a.maybe_live_out
        )
        temporaries = sum(a.size for a in self._default if a.is_temporary)
        constants = sum(a.size for a in self._default if a.is_constant)
        static = arguments + outputs - aliased
        timeline = np.full(self._steps, static, dtype=np.int64)
        for a in self._default:
            if a.is_temporary:
                load = allocation_load(a, self._live, self._steps + 1)
                timeline += load[: self._steps]
        peak_step = int(timeline.argmax()) if self._steps else 0
        rows = self._rows(peak_step)
        breakdown = Breakdown(
            arguments,
            outputs,
            temporaries,
            constants,
            aliased,
            sum(row.bytes - row.logical_bytes for row in rows),
        )
        timeline.setflags(write=False)
        return MemoryReport(
            module=self._assignment.module.name,
            peak_bytes=breakdown.total,
            peak_step=peak_step,
            breakdown=breakdown,
            at_peak=rows,
            timeline=timeline,
            donations=find_donations(self._assignment),
            lower_bound=needed_bytes(self._assignment, color=0),
            hints=find_hints(self._assignment, breakdown, rows, self._notes),
            steps=tuple(x.name for x in self._live.schedule.instructions),
            other_spaces=self._other_spaces(),
        )

    def _other_spaces(self) -> tuple[tuple[int, int], ...]:
        totals: dict[int, int] = {}
        for a in self._assignment.allocations:
            if a.color and not a.is_thread_local:
                totals[a.color] = totals.get(a.color, 0) + a.size
        return tuple(sorted(totals.items()))

    def _rows(self, step: int) -> tuple[LiveRow, ...]:
        """What takes default memory at a step, largest first."""
        rows: list[LiveRow] = []
        for a in self._default:
            if a.is_thread_local or a.is_constant or not a.size:
                continue
            if a.is_parameter or a.maybe_live_out:
                rows.append(self._static_row(a, step))
            else:
                rows.extend(
                    self._row(value, BufferKind.TEMPORARY, step)
                    for value in self._holders(a, step)
                )
        rows.sort(key=lambda row: (-row.bytes, row.kind, row.buffer))
        return tuple(rows)

    def _holders(self, a: BufferAllocation, step: int) -> list[Value]:
        from msa.analysis.buffer_assignment import values_at

        return [self._flow.value(v) for v in values_at(a, self._live, step)]

    def _static_row(self, a: BufferAllocation, step: int) -> LiveRow:
        """An argument or output: the value in it at the step, or its own."""
        kind = BufferKind.ARGUMENT if a.is_parameter else BufferKind.OUTPUT
        own = [self._flow.value(v) for v in a.assigned]
        full = [v for v in own if padded_size(v) == a.size] or own
        live = [v for v in full if self._is_live(v, step)]
        if a.is_parameter:
            parameter = [v for v in full if v.instruction.opcode == "parameter"]
            chosen = (parameter or full)[0]
            return self._row(chosen, kind, step)
        outputs = [v for v in full if v.live_out] or full
        writing = [v for v in live if v.live_out]
        row = self._row((writing or outputs)[0], kind, step)
        if writing or live:
            return row
        return LiveRow(
            row.buffer,
            row.bytes,
            row.logical_bytes,
            row.padding_factor,
            row.shape,
            row.op_name,
            row.source,
            row.kind,
            row.start,
            row.end,
            waiting=True,
        )

    def _is_live(self, value: Value, step: int) -> bool:
        bound = self._live.range_of(value)
        return bound is not None and bound.start <= step <= bound.end

    def _row(self, value: Value, kind: BufferKind, step: int) -> LiveRow:
        size, logical = padded_size(value), value.byte_size()
        origin = origin_of(value.instruction)
        bound = self._live.range_of(value)
        start, end = (bound.start, bound.end + 1) if bound else (step, step + 1)
        return LiveRow(
            buffer=str(value.position),
            bytes=size,
            logical_bytes=logical,
            padding_factor=size / logical if logical else 1.0,
            shape=str(value.shape),
            op_name=origin.op_name,
            source=origin.source,
            kind=kind,
            start=start,
            end=end,
        )
