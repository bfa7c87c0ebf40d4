"""Buffers that the greedy plan moves at a loss, whole.

Values tied by loops, branches or operations in place are not decided one by one. A
buffer of such values whose copies are waited for may cost more than it brings: it is
tried in default memory altogether. What it holds may be decided anew then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from msa.assignment.algorithm import AllocationResult
from msa.assignment.allocation import (
    Allocation,
    AllocationSequence,
    CopyAllocation,
    MirroredAllocation,
    ParentAllocation,
    PinnedAllocation,
    Position,
    SlicedCopyAllocation,
)
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import FreePlace
from msa.assignment.search.improve import LESS
from msa.assignment.search.record import without_buffers

_KINDS: Final = frozenset(
    {
        PinnedAllocation,
        CopyAllocation,
        SlicedCopyAllocation,
        MirroredAllocation,
        ParentAllocation,
    }
)


def release_losses(
    problem: Problem,
    draft: Draft,
    free: Mapping[Position, FreePlace],
    kept: Iterable[int],
    budget: float,
) -> tuple[set[int], float]:
    """Take tied buffers out of the draft while the program gets faster without them.

    Args:
        problem: the problem.
        draft: changed.
        free: places that are decided by themselves anyway.
        kept: values that stay where they are.
        budget: boundaries that may be passed.

    Returns:
        Buffers that went, and what is left of the budget.
    """
    gone: set[int] = set()
    timeline = draft.timeline
    seconds = timeline.commit()
    for buffer, numbers in _candidates(problem, draft, free, kept):
        if budget <= 0:
            break
        start = timeline.bookmark()
        before = timeline.work
        lifted = [(number, draft.take(number)) for number in numbers]
        found = timeline.run()
        budget -= timeline.work - before + len(numbers)
        if found < seconds * LESS:
            before = timeline.work
            seconds = timeline.commit()
            budget -= timeline.work - before
            gone.add(buffer)
        else:
            draft.put_back(lifted)
            timeline.back_to(start)
    timeline.forget()
    return gone, budget


def _candidates(
    problem: Problem,
    draft: Draft,
    free: Mapping[Position, FreePlace],
    kept: Iterable[int],
) -> list[tuple[int, list[int]]]:
    """Buffers that may go, with their allocations; those waited for the longest first."""
    stalls = draft.timeline.stalls
    if not stalls:
        return []
    waits: dict[int, float] = {}
    for allocation in draft.allocations.values():
        if allocation.is_copy_like and allocation.position not in free:
            buffer = problem.values[allocation.value].buffer
            wait = stalls.get(allocation.available, 0.0)
            waits[buffer] = waits.get(buffer, 0.0) + wait
    movable = movable_buffers(problem, draft.allocations.values(), kept)
    found = [b for b, wait in waits.items() if wait > 0.0 and b in movable]
    found.sort(key=lambda b: (-waits[b], b))
    members: dict[int, list[int]] = {buffer: [] for buffer in found}
    for number, allocation in draft.allocations.items():
        if allocation.value >= 0:
            buffer = problem.values[allocation.value].buffer
            if buffer in members:
                members[buffer].append(number)
    return list(members.items())


def values_to_keep(problem: Problem, dead: Set[int]) -> set[int]:
    """Values that stay where a greedy plan has them: asked for, or made in vain."""
    annotated = {c.value for c in problem.cross_program if c.annotated}
    if not dead:
        return annotated
    return annotated | {v.id for v in problem.values if v.position.step in dead}


def movable_buffers(
    problem: Problem, allocations: Iterable[Allocation], kept: Iterable[int]
) -> set[int]:
    """Buffers that may be in default memory altogether. Linear.

    Not those of the values `kept`, nor those that others depend on.
    """
    fixed: set[int] = {problem.values[value].buffer for value in kept}
    found: set[int] = set()
    for allocation in allocations:
        if allocation.value < 0:
            continue
        buffer = problem.values[allocation.value].buffer
        found.add(buffer)
        if _stays(problem, allocation):
            fixed.add(buffer)
        source = allocation.depends_on
        if source is not None:
            of_source = problem.values[source.value].buffer
            if of_source != buffer:
                fixed |= {buffer, of_source}
    return found - fixed


def released(
    problem: Problem,
    start: AllocationResult,
    allocations: Iterable[Allocation],
    buffers: Set[int],
) -> AllocationResult:
    """The result with what `allocations` say of other buffers than these. Linear."""
    fewer = AllocationSequence(
        a
        for a in allocations
        if a.value < 0 or problem.values[a.value].buffer not in buffers
    )
    return without_buffers(problem, start, buffers, fewer)


def without_dead_copies(
    problem: Problem, start: AllocationResult, dead: Set[int], kept: Iterable[int]
) -> AllocationResult:
    """The result without buffers of which a copy reads what a dead step makes. Linear.

    Such a copy keeps steps that nothing else needs, and what they read. Buffers stay
    where they are that are not movable.
    """
    if not dead:
        return start
    moved = {
        problem.values[a.value].buffer
        for a in start.allocations
        if isinstance(a, CopyAllocation) and a.position.step in dead
    }
    if moved:
        moved &= movable_buffers(problem, start.allocations, kept)
    return released(problem, start, start.allocations, moved) if moved else start


def _stays(problem: Problem, allocation: Allocation) -> bool:
    if type(allocation) not in _KINDS:
        return True
    if isinstance(allocation, CopyAllocation) and (
        allocation.replaces is not None or allocation.existing_start is not None
    ):
        return True
    value = problem.values[allocation.value]
    return value.pinned or value.reserved
