"""`msa.assign`: from a module and a machine to a plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from msa.analysis.costs import CostOptions
from msa.analysis.manager import AnalysisManager
from msa.analysis.simulation import Simulation, simulate
from msa.analysis.trip_counts import TripCounts
from msa.assignment.algorithm import AllocationResult
from msa.assignment.assignment import Assignment
from msa.assignment.build import build_problem
from msa.assignment.dead_steps import DeadSteps
from msa.assignment.estimate import Estimator
from msa.assignment.greedy_plan import plan_greedily
from msa.assignment.kept_analyses import KeptAnalyses, analyses_of
from msa.assignment.lowering.lower import Lowered, lower
from msa.assignment.options import Options
from msa.assignment.problem import Problem
from msa.assignment.refine import first_half, may_refine
from msa.assignment.required_set import check_required, explain_capacity
from msa.collection import collection_paused
from msa.errors import CapacityError, OptionsError, TargetError
from msa.hlo.module import Module
from msa.target import Target

Progress = Callable[[str, int, int], None]
"""Called with a phase, the phases done and the number of phases."""

_PHASES = ("analysing", "deciding", "lowering", "simulating")
_NO_SLOWER = 1.0 + 1e-12
_SAME = 1e-7
_NOT_SLOWER_THAN = 1.0 - 1e-9


def assign(
    module: Module,
    target: Target,
    options: Options | None = None,
    *,
    progress: Progress | None = None,
    cost_options: CostOptions | None = None,
) -> Assignment:
    """Decide what lives in fast memory, when and where, and insert the copies.

    The module is never changed. One without a schedule, or whose computations are
    shared or lack copies that storage sharing demands, is prepared first (see
    `msa.analysis.prepare`); the plan is then of the prepared module.

    Args:
        module: the program.
        target: the machine.
        options: what to do and how; the defaults are good.
        progress: told which phase begins.
        cost_options: settings of the cost analysis, such as measured costs (see
            `msa.runtime.profile`).

    Raises:
        OptionsError: options do not fit each other or the target.
        CapacityError: what must be in fast memory does not fit.
        HloError: the module is malformed.

    Near linear in the size of the module with the greedy strategy.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   x = f32[256,1024]{1,0} parameter(0)
    ...   w = f32[1024,1024]{1,0} parameter(1)
    ...   h = f32[256,1024]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ...   ROOT y = f32[256,1024]{1,0} tanh(h)
    ... }''')
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> plan.chunks["h{}"], plan.estimate.speedup > 1.2
    ((0, 1048576), True)
    """
    if not isinstance(module, Module):
        raise OptionsError(
            f"assign plans a Module, not {type(module).__name__}",
            hint="msa.parse(text) or msa.load(path) makes one",
        )
    if not isinstance(target, Target):
        raise TargetError(
            f"assign plans for a Target, not {type(target).__name__}",
            hint='msa.Target.preset("tpu_v5e") is one',
        )
    if options is not None and not isinstance(options, Options):
        raise OptionsError(
            f"assign takes Options, not {type(options).__name__}",
            hint='msa.Options(strategy="search") is one',
        )
    with collection_paused(keep=True):
        planner = _Planner(module, target, options or Options(), progress, cost_options)
        return planner.plan()


class _Made(NamedTuple):
    result: AllocationResult
    lowered: Lowered
    simulation: Simulation


class _Planner:
    """The phases of one call."""

    __slots__ = ("_cost_options", "_module", "_options", "_progress", "_target")

    def __init__(
        self,
        module: Module,
        target: Target,
        options: Options,
        progress: Progress | None,
        cost_options: CostOptions | None,
    ) -> None:
        self._cost_options = cost_options
        self._module = module
        self._target = target
        self._options = options
        self._progress = progress

    def plan(self) -> Assignment:
        self._begin(0)
        kept = analyses_of(self._module, self._cost_options)
        problem = build_problem(
            kept.module, self._target, self._options, analyses=kept.analyses
        )
        check_required(problem, self._options)
        before = self._simulate(kept.analyses, kept.trip_counts)
        self._begin(1)
        try:
            result = plan_greedily(problem, self._options, before.elapsed_seconds)
        except CapacityError as error:
            raise explain_capacity(error, problem, self._options) from error
        dead = DeadSteps(problem).without_copies
        found = result
        if self._options.strategy == "search" and problem.machine.capacity > 0:
            found = self._search(kept, problem, result, before, dead)
        found = self._with_ties(problem, result, found, dead)
        self._begin(2)
        made = self._make(kept, problem, found, before)
        # The estimator may differ from the simulation in rare shapes of control flow,
        # and the search's timeline from it where copies keep dead steps; what counts
        # is the simulation.
        if found is not result and not _is_as_estimated(problem, made, result):
            for other in (result, *self._as_xla(problem, result, before)):
                plain = self._make(kept, problem, other, before)
                if plain.simulation.elapsed_seconds < made.simulation.elapsed_seconds:
                    made = plain
        return Assignment(
            original=kept.module,
            target=self._target,
            options=self._options,
            problem=problem,
            result=made.result,
            lowered=made.lowered,
            before=before,
            simulation=made.simulation,
            dead=dead,
        )

    def _make(
        self,
        kept: KeptAnalyses,
        problem: Problem,
        result: AllocationResult,
        before: Simulation,
    ) -> _Made:
        """Lower and simulate a result, or what of it is not slower than nothing."""
        lowered = self._lower(kept, problem, result)
        self._begin(3)
        after = self._simulate(lowered.analyses)
        while after.elapsed_seconds > before.elapsed_seconds * _NO_SLOWER:
            fewer = first_half(problem, result.allocations)
            if len(fewer) == len(result.allocations) or not may_refine(
                problem, self._options
            ):
                break
            result = dataclasses.replace(result, allocations=fewer)
            lowered = self._lower(kept, problem, result)
            after = self._simulate(lowered.analyses)
        return _Made(result, lowered, after)

    def _lower(
        self, kept: KeptAnalyses, problem: Problem, result: AllocationResult
    ) -> Lowered:
        fetched = [
            position
            for fetch in result.cross_program_prefetches
            for position in problem.values[fetch.value].positions
        ]
        return lower(
            kept.module,
            problem.keys,
            result.allocations,
            self._options,
            fetched,
            cost_options=self._cost_options,
        )

    def _with_ties(
        self,
        problem: Problem,
        result: AllocationResult,
        found: AllocationResult,
        dead: frozenset[int],
    ) -> AllocationResult:
        """What was found, or the greedy result with what loops and branches read."""
        if not problem.called or problem.machine.capacity <= 0:
            return found
        from msa.assignment.search import bring_in_once

        brought = bring_in_once(problem, self._options, result, dead)
        if brought is result:
            return found
        estimator = Estimator(problem)
        seconds = estimator.seconds(found.allocations) * _NOT_SLOWER_THAN
        return brought if estimator.seconds(brought.allocations) < seconds else found

    def _search(
        self,
        kept: KeptAnalyses,
        problem: Problem,
        first: AllocationResult,
        before: Simulation,
        dead: frozenset[int],
    ) -> AllocationResult:
        from msa.assignment.search import run_search

        pairs = kept.analyses.in_place
        in_place = {step for step, x in enumerate(problem.keys) if pairs(x)}
        return run_search(
            problem,
            self._options,
            first,
            before=before.elapsed_seconds,
            trips=before.trip_counts,
            in_place=in_place,
            dead=dead,
            progress=self._progress,
        )

    def _as_xla(
        self, problem: Problem, first: AllocationResult, before: Simulation
    ) -> list[AllocationResult]:
        """XLA's own plan, if there is one."""
        from msa.assignment.search.starts import FAITHFUL, Starts

        seconds = before.elapsed_seconds
        capacity = self._options.max_size_in_bytes or problem.machine.capacity
        starts = Starts(problem, self._options, first, capacity, seconds)
        return [result for _, result in starts.at(capacity, (FAITHFUL,))]

    def _simulate(
        self, analyses: AnalysisManager, trip_counts: TripCounts | None = None
    ) -> Simulation:
        return simulate(
            analyses.module,
            self._target,
            alternate_memory_space=self._options.alternate_memory_space,
            while_execution_count=self._options.while_execution_count,
            trip_counts=trip_counts,
            analyses=analyses,
        )

    def _begin(self, phase: int) -> None:
        if self._progress is not None:
            self._progress(_PHASES[phase], phase, len(_PHASES))


def _is_as_estimated(problem: Problem, made: _Made, first: AllocationResult) -> bool:
    """Whether the simulated time is the estimator's, by which it beats the first one."""
    estimator = Estimator(problem)
    seconds = estimator.seconds(made.result.allocations)
    if estimator.seconds(first.allocations) < seconds * _NOT_SLOWER_THAN:
        return False
    return abs(made.simulation.elapsed_seconds - seconds) <= _SAME * seconds
