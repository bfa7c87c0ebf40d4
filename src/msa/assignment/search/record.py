"""The result of a search, with a log of what it decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Set

from msa.assignment.algorithm import AllocationResult, Statistics
from msa.assignment.allocation import Allocation, AllocationSequence, Position, Use
from msa.assignment.outcomes import Decision, Outcome, Served
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import FreePlace


def result_of(
    problem: Problem,
    start: AllocationResult,
    draft: Draft,
    free: Mapping[Position, FreePlace],
) -> AllocationResult:
    """The result that the draft states; decisions of values that it changed are new."""
    sequence = draft.sequence()
    before, now = _by_place(start.allocations), _by_place(sequence)
    places = sorted(place for place in now if now[place] != before.get(place))
    changed = {free[place].value for place in places}
    new = [d for place in places for d in _decisions(draft, free[place])]
    known = {(d.value, d.use) for d in new}
    decisions = [d for d in start.decisions if (d.value, d.use) not in known]
    decisions += new
    return dataclasses.replace(
        start,
        allocations=sequence,
        heap_bytes=max(start.heap_bytes, sequence.peak_bytes()),
        decisions=tuple(decisions),
        buffer_decisions=tuple(
            d for d in start.buffer_decisions if d.value not in changed
        ),
        cross_program_prefetches=tuple(
            fetched
            for fetched in start.cross_program_prefetches
            if fetched.value not in changed
        ),
        statistics=_statistics(start, sequence, len(decisions)),
    )


def _by_place(allocations: Iterable[Allocation]) -> dict[Position, list[object]]:
    """What is said of each place, but for offsets."""
    found: dict[Position, list[object]] = {}
    for a in allocations:
        if a.value >= 0:
            said = (type(a), a.space, a.start, a.end, a.available, tuple(a.uses))
            found.setdefault(a.position, []).append(said)
    return found


def without_buffers(
    problem: Problem,
    start: AllocationResult,
    buffers: Set[int],
    allocations: AllocationSequence,
) -> AllocationResult:
    """The result whose `allocations` say nothing of some buffers any more."""
    gone = {v for b in buffers for v in problem.buffers[b]}
    decisions = tuple(
        d._replace(served=Served.DEFAULT, failures=Outcome.SUCCESS)
        if d.value in gone
        else d
        for d in start.decisions
    )
    return dataclasses.replace(
        start,
        allocations=allocations,
        decisions=decisions,
        buffer_decisions=tuple(
            d for d in start.buffer_decisions if d.value not in gone
        ),
        cross_program_prefetches=tuple(
            fetched
            for fetched in start.cross_program_prefetches
            if fetched.value not in gone
        ),
        statistics=_statistics(start, allocations, len(decisions)),
    )


def _statistics(
    start: AllocationResult, sequence: AllocationSequence, decided: int
) -> Statistics:
    copies = list(sequence.copies())
    prefetches = sum(copy.is_alternate for copy in copies)
    return dataclasses.replace(
        start.statistics,
        segments=decided,
        prefetches=prefetches,
        evictions=len(copies) - prefetches,
    )


def _decisions(draft: Draft, place: FreePlace) -> Iterator[Decision]:
    """One per use: how it is served. Why is found in the finished plan."""
    served_by: dict[Use, Allocation] = {}
    for number in draft.of_place.get(place.position, ()):
        allocation = draft.allocations[number]
        served_by.update((use, allocation) for use in allocation.uses)
    previous = place.step
    for item in place.uses:
        allocation = served_by[item.use]
        served = Served.DEFAULT
        if allocation.is_alternate:
            served = Served.PREFETCH if allocation.is_copy_like else Served.NO_COPY
        yield Decision(
            place.value,
            item.use,
            previous,
            item.use.step,
            served,
            required_default=item.default,
        )
        previous = item.use.step
