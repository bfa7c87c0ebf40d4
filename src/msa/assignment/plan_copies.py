"""The copies of a plan, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)
from msa.assignment.lowering.lower import Lowered
from msa.assignment.problem import Problem
from msa.hlo.instruction import Instruction

CopyKind = Literal["prefetch", "eviction", "slice", "window", "cross_program"]


@dataclass(frozen=True, slots=True)
class PlanCopy:
    """One copy between the memories.

    Attributes:
        kind: a `cross_program` copy is a prefetch that may start before the program.
        source: instruction whose result is copied.
        value: `name{index}` of the value, as the input module defines it.
        bytes: how many are moved, per run.
        start_step, done_step: where it starts and ends in the planned module's
            flattened schedule.
        offset: where in alternate memory it reads (eviction) or writes.
        trip_count: how often it runs.
        start, done: the two instructions.

    >>> PlanCopy("prefetch", "w", "w{}", 4096, 2, 5, 0, 1.0, "s", "d").bytes
    4096
    """

    kind: CopyKind
    source: str
    value: str
    bytes: int
    start_step: int
    done_step: int
    offset: int
    trip_count: float
    start: str
    done: str


def plan_copies(
    lowered: Lowered,
    problem: Problem,
    times: Mapping[Instruction, int],
    trips: Mapping[int, float],
) -> tuple[PlanCopy, ...]:
    """Rows for all copies in order of start. O(n log n).

    `times` is the flattened schedule of the lowered module, `trips` its trip counts
    per step.
    """
    rows = []
    for allocation, pairs in lowered.copies.items():
        for number, (start, done) in enumerate(pairs):
            if start not in times or done not in times:
                continue
            rows.append(
                PlanCopy(
                    kind=_kind(allocation),
                    source=start.operands[0].name,
                    value=problem.describe(allocation.position),
                    bytes=done.shape.byte_size()
                    if done.shape.is_array
                    else done.shape.children[0].byte_size(),
                    start_step=times[start],
                    done_step=times[done],
                    offset=_offset(allocation, number),
                    trip_count=trips.get(times[start], 1.0),
                    start=start.name,
                    done=done.name,
                )
            )
    rows.sort(key=lambda row: (row.start_step, row.done_step))
    return tuple(rows)


def _kind(allocation: Allocation) -> CopyKind:
    if isinstance(allocation, SlicedCopyAllocation):
        return "slice"
    if isinstance(allocation, WindowPrefetchedAllocation):
        return "window"
    if not allocation.is_alternate:
        return "eviction"
    return "prefetch" if allocation.cross_program_index is None else "cross_program"


def _offset(allocation: Allocation, number: int) -> int:
    if isinstance(allocation, SlicedCopyAllocation):
        return allocation.slices[number].chunk.offset
    chunk = allocation.chunk
    if chunk is None and isinstance(allocation, CopyAllocation):
        chunk = allocation.source.chunk  # an eviction: where the bytes come from
    return -1 if chunk is None else chunk.offset
