"""The greedy plan: decided once, or a second time without a fetch that costs more."""

from __future__ import annotations

from typing import Final

from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.estimate import Estimator
from msa.assignment.options import Options
from msa.assignment.problem import Problem
from msa.assignment.refine import may_refine, refine

_LARGE: Final = 0.25
"""Share of the fast memory from which on an input's place is put in question."""


def plan_greedily(
    problem: Problem, options: Options, before: float
) -> AllocationResult:
    """Decide and refine; where an input fetched ahead crowds others out, twice.

    Inputs that are fetched before the program starts are placed before all else. One
    that takes a large part of the fast memory can cost more than it brings: the plan
    is then made again without such fetches, and the faster of the two is the result.

    Args:
        problem: the problem.
        options: as for `run_greedy`.
        before: seconds with nothing placed.

    Raises:
        CapacityError: what must be in fast memory does not fit.

    At most twice the work of `run_greedy` and `refine`.
    """
    first = refine(problem, run_greedy(problem, options), options, before)
    if not _is_in_question(problem, first, options):
        return first
    plain = options.replace(enable_cross_program_prefetch=False)
    second = refine(problem, run_greedy(problem, plain), plain, before)
    estimator = Estimator(problem)
    if estimator.seconds(first.allocations) < estimator.seconds(second.allocations):
        return first
    return second


def _is_in_question(
    problem: Problem, result: AllocationResult, options: Options
) -> bool:
    """Whether a large input was fetched ahead of which nobody said that it must be."""
    if not may_refine(problem, options):
        return False
    if any(candidate.annotated for candidate in problem.cross_program):
        return False
    large = _LARGE * problem.machine.capacity
    return any(
        problem.values[fetch.value].size >= large
        for fetch in result.cross_program_prefetches
    )
