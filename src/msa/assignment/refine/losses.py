"""Dropping what costs more than it brings."""

from __future__ import annotations

from collections.abc import Sequence

from msa.assignment.allocation import (
    Allocation,
    AllocationSequence,
    CopyAllocation,
    Use,
)
from msa.assignment.estimate import Estimator
from msa.assignment.problem import Problem

_RUNNING = frozenset({"call", "conditional", "while"})


def drop_losses(
    problem: Problem, draft: AllocationSequence, estimator: Estimator, before: float
) -> AllocationSequence:
    """The draft without prefetches, then buffers, whose loss is more than their gain.

    At the end it is not slower than `before`, the time with nothing placed, unless
    what has to be placed is.
    """
    seconds = estimator.seconds(draft)
    draft, seconds = _without_stalling_prefetches(problem, draft, estimator, seconds)
    if seconds > before:
        draft = _without_buffers(problem, draft, estimator, before)
    return draft


def _without_stalling_prefetches(
    problem: Problem, draft: AllocationSequence, estimator: Estimator, seconds: float
) -> tuple[AllocationSequence, float]:
    """Let uses read slow memory whose copies stall the most; halves while it pays."""
    for _ in range(4):
        stalls = estimator.run(draft).stalls
        candidates = [
            copy
            for copy in draft.copies()
            if stalls.get(copy.done_before, 0.0) > 0.0 and _is_droppable(problem, draft, copy)
        ]
        candidates.sort(key=lambda copy: -stalls[copy.done_before])
        improved = False
        while candidates:
            trial = _without_copies(draft, candidates)
            time = estimator.seconds(trial)
            if time < seconds * (1.0 - 1e-9):
                draft, seconds, improved = trial, time, True
                break
            candidates = candidates[: len(candidates) // 2]
        if not improved:
            break
    return draft, seconds


def _is_droppable(
    problem: Problem, draft: AllocationSequence, copy: CopyAllocation
) -> bool:
    """Whether its uses may just as well read its source."""
    return (
        copy.is_alternate
        and copy.replaces is None
        and copy.cross_program_index is None
        and not copy.source.is_alternate
        and copy.aliased_offset is not None
        and all(_is_plain(problem, use) for use in copy.uses)
    )


def _is_plain(problem: Problem, use: Use) -> bool:
    """Whether nothing else must be where this use reads."""
    return problem.opcodes[use.step] not in _RUNNING and not use.index
