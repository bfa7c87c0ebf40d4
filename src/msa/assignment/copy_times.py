"""When copies really start and end: not inside what their own computation runs.

Lowering puts them into the sequence of that computation. Before a loop, a branch or a
call there is before all that it runs, although its own step comes after that.

Reference: `MemorySpaceAssignment::ScheduleAsynchronousCopies` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msa.assignment.problem import Problem

Ints = NDArray[np.int64]


def started_after(problem: Problem, start_after: int, step: int) -> int:
    """The step after which a copy of what is defined at `step` starts.

    A start inside a called computation moves to the first later step of the copy's
    own. O(nesting).
    """
    if start_after < 0:
        return start_after
    later = _own_step(problem, start_after, problem.region_of[step])
    return start_after if later is None else later


def done_at(problem: Problem, done_before: int, step: int) -> int:
    """The boundary where a copy of what is defined at `step` ends. O(nesting)."""
    if done_before >= problem.end:
        return done_before
    reader = _own_step(problem, done_before, problem.region_of[step])
    called = () if reader is None else problem.called.get(reader, ())
    return min([done_before, *(problem.regions[region].start for region in called)])


def _own_step(problem: Problem, step: int, region: int) -> int | None:
    """The first step of a region from a step on that it runs; None: it runs it not."""
    region_of = problem.region_of
    while region_of[step] != region:
        step = problem.regions[region_of[step]].caller
        if step < 0:
            return None
    return step


class CopyTimes:
    """`started_after` and `done_at` for many copies at once.

    Nearly all copies start and end between steps of their own computation: these are
    told apart at once, only the others are looked at one by one.
    """

    __slots__ = ("_calls", "_problem", "_regions")

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._regions: Ints = np.array(problem.region_of, np.int64)
        self._calls = np.zeros(len(self._regions), np.bool_)
        self._calls[list(problem.called)] = True

    def started(self, starts: Ints, steps: Ints) -> Ints:
        """Where copies of what is defined at `steps` start. Linear."""
        problem, regions = self._problem, self._regions
        elsewhere = (starts >= 0) & (regions[starts] != regions[steps])
        result = starts.copy()
        for i in np.flatnonzero(elsewhere).tolist():
            result[i] = started_after(problem, int(starts[i]), int(steps[i]))
        return result

    def landed(self, dones: Ints, steps: Ints) -> Ints:
        """The boundaries where copies of what is defined at `steps` end. Linear."""
        problem, regions = self._problem, self._regions
        inside = np.flatnonzero(dones < problem.end)
        readers = dones[inside]
        elsewhere = (regions[readers] != regions[steps[inside]]) | self._calls[readers]
        result = dones.copy()
        for i in inside[elsewhere].tolist():
            result[i] = done_at(problem, int(dones[i]), int(steps[i]))
        return result
