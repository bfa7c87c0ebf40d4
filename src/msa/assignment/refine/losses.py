"""Dropping what costs more than it brings."""

from __future__ import annotations

from collections.abc import Sequence

from msa.analysis.simulation.engine import Run
from msa.assignment.allocation import (
    Allocation,
    AllocationSequence,
    CopyAllocation,
    Use,
)
from msa.assignment.estimate import Estimator, Flow
from msa.assignment.problem import Problem
from msa.hlo.opcode import RUNNING_OPCODES

_ROUNDS = 4


def drop_losses(
    problem: Problem,
    draft: AllocationSequence,
    flow: Flow,
    run: Run,
    before: float,
) -> AllocationSequence:
    """The draft without prefetches, then buffers, whose loss is more than their gain.

    `flow` and `run` are those of the draft. At the end it is not slower than `before`, the time with
    nothing placed, unless what has to be placed is.
    """
    draft, run = _without_stalling_prefetches(problem, draft, flow, run)
    if run.seconds > before:
        draft = _without_buffers(problem, draft, flow.estimator, before)
    return draft


def _without_stalling_prefetches(
    problem: Problem, draft: AllocationSequence, flow: Flow, run: Run
) -> tuple[AllocationSequence, Run]:
    """Let uses read slow memory whose copies stall the most; thirds while it pays."""
    for _ in range(_ROUNDS):
        stalls = run.stalls
        candidates = [
            copy
            for copy in _droppable(problem, draft)
            if stalls.get(copy.done_before, 0.0) > 0.0
        ]
        candidates.sort(key=lambda copy: -stalls[copy.done_before])
        while candidates:
            trial = flow.without(set(candidates))
            outcome = trial.run()
            if outcome.seconds < run.seconds * (1.0 - 1e-9):
                draft = _dropped(draft, candidates)
                flow, run = trial, outcome
                break
            candidates = candidates[: len(candidates) // 3]
        if not candidates:
            break
    return draft, run


def _droppable(problem: Problem, draft: AllocationSequence) -> list[CopyAllocation]:
    """Prefetches whose uses may just as well read where the bytes come from.

    Nothing else must lie where they do, and nothing is made from them.
    """
    partners: dict[int, int] = {}
    sources: set[Allocation] = set()
    for allocation in draft:
        if allocation.aliased_offset is not None:
            key = id(allocation.aliased_offset)
            partners[key] = partners.get(key, 0) + 1
        source = allocation.depends_on
        if source is not None:
            sources.add(source)
    return [
        copy
        for copy in draft.copies()
        if copy.is_alternate
        and not problem.values[copy.value].pinned
        and copy.replaces is None
        and copy.existing_start is None
        and copy.cross_program_index is None
        and not copy.source.is_alternate
        and copy not in sources
        and copy.aliased_offset is not None
        and partners[id(copy.aliased_offset)] == 1
        and all(_is_plain(problem, use) for use in copy.uses)
    ]


def _is_plain(problem: Problem, use: Use) -> bool:
    """Whether the reader is an instruction of its own, not a loop or a branch."""
    return problem.opcodes[use.step] not in RUNNING_OPCODES and not use.index


def _dropped(
    draft: AllocationSequence, dropped: Sequence[CopyAllocation]
) -> AllocationSequence:
    """A draft without some copies, whose uses read their sources."""
    for copy in dropped:
        copy.source.uses += copy.uses
        copy.source.extend(copy.end)
    gone = set(dropped)
    return AllocationSequence(a for a in draft if a not in gone)


def _without_buffers(
    problem: Problem, draft: AllocationSequence, estimator: Estimator, before: float
) -> AllocationSequence:
    """Only the buffers decided first, as many as are not slower than none."""
    while estimator.seconds(draft) > before:
        fewer = first_half(problem, draft)
        if len(fewer) == len(draft):
            break
        draft = fewer
    return draft


def first_half(problem: Problem, draft: AllocationSequence) -> AllocationSequence:
    """The half of the buffers that was decided first, with all scratch.

    Buffers are independent of each other: every one that is left is whole. Those that
    have to be in alternate memory stay.
    """
    pinned = {value.buffer for value in problem.values if value.pinned}
    order = dict.fromkeys(pinned, -1)
    for allocation in draft:
        if allocation.value >= 0:
            buffer = problem.values[allocation.value].buffer
            order.setdefault(buffer, len(order) - len(pinned))
    kept = (len(order) - len(pinned)) // 2
    return AllocationSequence(
        a for a in draft if a.value < 0 or order[problem.values[a.value].buffer] < kept
    )
