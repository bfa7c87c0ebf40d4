"""Search: greedy plans made with other settings, and local search from the best.

1. The greedy plan, and a few made with other settings, are each improved a little:
   values are decided anew one by one (`improve`), timed incrementally (`timeline`).
2. The best of them is improved until nothing gets better or the effort is used up.

The greedy plan is where the search starts: its result is never slower.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Set
from typing import Final

from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.allocation import Position
from msa.assignment.options import CostAnalysisPicker, Options
from msa.assignment.problem import Problem
from msa.assignment.refine import may_refine, may_retime
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import FreePlace, free_places
from msa.assignment.search.improve import Improver
from msa.assignment.search.record import result_of
from msa.errors import CapacityError, OptionsError

Progress = Callable[[str, int, int], None]

_WORK: Final = 120.0
"""Boundaries passed per step of the program and unit of effort."""

_FIRST_SHARE: Final = 0.1
"""Share of the work that each start is given before the best is chosen."""

_SETTINGS: Final = (
    {"faithful": True},
    {"prefetch_interval_picker": CostAnalysisPicker(1.5, 2.5, 3.0)},
    {"inefficient_use_to_copy_ratio": 0.5},
    {"alternate_memory_benefit_scaling_factor_for_large_buffers": "NO_SCALE"},
    {
        "prefetch_interval_picker": CostAnalysisPicker(0.0, 1.0, 10.0),
        "enable_cross_program_prefetch": False,
    },
)
"""Other settings of the greedy plan that the search starts from; XLA's own is one."""


@dataclasses.dataclass(slots=True)
class _Start:
    """A greedy result, and the draft made of it."""

    result: AllocationResult
    draft: Draft
    improver: Improver
    free: dict[Position, FreePlace]


def run_search(
    problem: Problem,
    options: Options,
    first: AllocationResult,
    *,
    in_place: Set[int] | None = None,
    dead: Set[int] = frozenset(),
    progress: Progress | None = None,
) -> AllocationResult:
    """The best result that is found with `options.effort`.

    Args:
        problem: the problem.
        options: as given to the algorithm; deterministic by `seed`.
        first: the greedy result, where the search starts. With `effort=0`, and if
            the options fix when things are copied, it is the result.
        in_place: steps that write into an operand; None: any may.
        dead: steps that lowering removes because nothing needs them.
        progress: told of each start that is tried.

    The work is proportional to the effort and the number of steps.
    """
    if options.effort <= 0 or not may_refine(problem, options):
        return first
    if not may_retime(options) or options.size_fn is not None or options.slicing:
        return first
    capacity = options.max_size_in_bytes or problem.machine.capacity
    alignment = options.alignment_in_bytes or problem.machine.alignment
    wanted = {c.value for c in problem.cross_program if c.annotated}
    wanted |= {v.id for v in problem.values if dead and v.position.step in dead}
    region_trips = problem.trip_counts
    trips = [region_trips[region] for region in problem.region_of]
    work = _WORK * options.effort * problem.end
    best: _Start | None = None
    spent = 0.0
    for number in range(len(_SETTINGS) + 1):
        if progress is not None:
            progress("searching", number, len(_SETTINGS) + 1)
        result = _greedy(problem, options, number, first)
        if result is None:
            continue
        free = free_places(
            problem, capacity, result.allocations, bound=wanted, in_place=in_place
        )
        draft = Draft(problem, result.allocations, capacity, alignment, dead)
        improver = Improver(problem, draft, free, trips, work * _FIRST_SHARE)
        improver.run()
        spent += work * _FIRST_SHARE - improver.left
        if best is None or improver.seconds < best.improver.seconds:
            best = _Start(result, draft, improver, free)
    assert best is not None
    best.improver.left = work - spent
    best.improver.run()
    return result_of(problem, best.result, best.draft, best.free)


def _greedy(
    problem: Problem, options: Options, number: int, first: AllocationResult
) -> AllocationResult | None:
    if not number:
        return first
    changes = _SETTINGS[number - 1]
    plain = dataclasses.replace(options, strategy="greedy")
    try:
        settings = dataclasses.replace(plain, **changes)
        return None if settings == plain else run_greedy(problem, settings)
    except (CapacityError, OptionsError):
        return None
