"""What a greedy plan gains when tied buffers are brought in once, and no more.

One pass puts a buffer that a loop reads on every trip into fast memory only if its fetch
is hidden. Here it is fetched even if that is waited for, where the whole program gets
faster; nothing that is there already has to go.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from msa.assignment.algorithm import AllocationResult
from msa.assignment.options import Options
from msa.assignment.problem import Problem
from msa.assignment.refine import search_hindrance
from msa.assignment.search.draft import Draft
from msa.assignment.search.limits import Limits
from msa.assignment.search.record import result_of
from msa.assignment.search.release import values_to_keep
from msa.assignment.search.throughout import bring_in
from msa.assignment.search.tied import tied_buffers

_WORK: Final = 30.0
"""Boundaries passed per step of the program."""

_WORTH: Final = 0.005
"""Share of the time that a buffer could gain, for which it is tried."""


def bring_in_once(
    problem: Problem,
    options: Options,
    result: AllocationResult,
    dead: Set[int] = frozenset(),
) -> AllocationResult:
    """The result, with tied buffers in alternate memory that make it faster.

    It is the same result if options fix it, or if nothing gets faster. `dead` steps are
    removed by lowering. Near linear.
    """
    if search_hindrance(problem, options.replace(effort=1)):
        return result
    draft = Draft(
        problem,
        result.allocations,
        options.max_size_in_bytes or problem.machine.capacity,
        options.alignment_in_bytes or problem.machine.alignment,
        dead,
        Limits.of(options),
    )
    kept = values_to_keep(problem, dead)
    brought = bring_in(
        problem,
        draft,
        {},
        tied_buffers(problem, kept, dead),
        kept,
        dead,
        _WORK * problem.end,
        _WORTH,
    )
    if not brought.places:
        return result
    return result_of(problem, result, draft, brought.places)
