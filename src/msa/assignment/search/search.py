"""Search: greedy passes in other orders and with other pickers, judged by time.

Each evaluation is one greedy pass, timed by the estimator. The search starts from the
plain pass and is never worse than it:

1. orders that weigh the benefit by the room that a buffer takes (bytes and time);
2. pickers that copy earlier, later, or keep values for less or more time;
3. orders by the benefit that is left given the best plan so far, with a little
   seeded noise, kept when better.

A plan for a smaller fast memory is a plan for a larger one, so every capacity also
tries the powers of two below it, each with the same number of evaluations: more
capacity never makes the result worse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.costs import CostModel
from msa.assignment.estimate import Estimator
from msa.assignment.intervals import MsaBufferInterval
from msa.assignment.options import CostAnalysisPicker, Options
from msa.assignment.problem import Problem
from msa.assignment.search.access import Access, bytes_of_places
from msa.assignment.search.marginal import (
    Floats,
    durations,
    marginal_seconds,
    spans,
    start_times,
    trip_counts,
)
from msa.errors import CapacityError

Progress = Callable[[str, int, int], None]
Key = Callable[[MsaBufferInterval], Any]

MIN_LEVEL_BYTES: Final = 1 << 20
"""Smallest memory that is tried for the sake of larger ones."""

_PICKERS: Final = (
    CostAnalysisPicker(1.5, 2.5, 3.0),
    CostAnalysisPicker(0.8, 1.5, 30.0),
    CostAnalysisPicker(0.8, 3.0, 10.0),
    CostAnalysisPicker(0.5, 1.0, 10.0),
    CostAnalysisPicker(1.0, 2.0, 20.0),
)
_NOISE: Final = (0.0, 0.1, 0.3, 0.6)
"""Spread of the seeded noise on orders, in turn."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A greedy pass that was tried: its settings, result and time."""

    options: Options
    result: AllocationResult
    seconds: float


def run_search(
    problem: Problem, options: Options, *, progress: Progress | None = None
) -> AllocationResult:
    """The best result that `options.effort` evaluations per capacity find.

    Deterministic by `options.seed`. With `effort=0` it is the greedy plan. Options
    that the caller set (a comparator, a picker) stay where the search starts.
    """
    estimator = Estimator(problem)
    first = _evaluate(problem, estimator, _greedy(options))
    assert first is not None
    best = first
    if options.effort <= 0:
        return best.result
    levels = _levels(problem, options)
    for number, capacity in enumerate(levels):
        if progress is not None:
            progress("searching", number, len(levels))
        start = dataclasses.replace(_greedy(options), max_size_in_bytes=capacity)
        base = first if capacity == levels[-1] else None
        found = _Level(problem, estimator, start, options.effort).run(base)
        if found is not None and found.seconds < best.seconds:
            best = found
    return best.result


def _greedy(options: Options) -> Options:
    return dataclasses.replace(options, strategy="greedy")


def _levels(problem: Problem, options: Options) -> list[int]:
    """The capacity, after the powers of two below it that could hold anything."""
    capacity = options.max_size_in_bytes
    if capacity is None:
        capacity = problem.machine.capacity
    total = sum(
        max((problem.values[i].size for i in members), default=0)
        for members in problem.buffers
    )
    levels = []
    level = MIN_LEVEL_BYTES
    while level < capacity:
        # A memory that holds everything is no other problem than a larger one.
        if level < total:
            levels.append(level)
        level *= 2
    return [*levels, capacity]


def _evaluate(
    problem: Problem, estimator: Estimator, options: Options
) -> Candidate | None:
    """One greedy pass; None when required values do not fit its capacity."""
    try:
        result = run_greedy(problem, options)
    except CapacityError:
        if options.max_size_in_bytes is None:
            raise
        return None
    return Candidate(options, result, estimator.seconds(result.allocations))


class _Level:
    """The search at one capacity."""

    def __init__(
        self, problem: Problem, estimator: Estimator, options: Options, effort: int
    ) -> None:
        self.problem = problem
        self.estimator = estimator
        self.options = options
        self.left = effort
        self.rng = np.random.default_rng(options.seed)
        self.sizes = np.array([max(1, v.size) for v in problem.values], float)
        self.spans = spans(problem)
        self.bytes = bytes_of_places(problem)
        self.trips = trip_counts(problem)
        self.best: Candidate | None = None

    def run(self, first: Candidate | None) -> Candidate | None:
        """The best candidate; `first` is the plain pass, when it is known."""
        best = first or _evaluate(self.problem, self.estimator, self.options)
        if best is None:
            return None
        self.best = best
        for options in self._proposals():
            if self.left <= 0:
                break
            self.left -= 1
            found = _evaluate(self.problem, self.estimator, options)
            if found is not None and found.seconds < self.best.seconds:
                self.best = found
        return self.best

    def _proposals(self) -> Iterator[Options]:
        """Settings to try, each made in view of the best so far.

        First the orders, then pickers and orders by what is left to gain in turn.
        """
        assert self.best is not None
        for weights in self._first_orders():
            yield self._with(buffer_interval_comparator=_by_weight(weights))
        picks = iter(_PICKERS)
        if not isinstance(self.options.prefetch_interval_picker, CostAnalysisPicker):
            picks = iter(())
        number = 0
        while True:
            picker = next(picks, None)
            if picker is not None:
                yield self._with(prefetch_interval_picker=picker)
            weights = self._weights(number)
            noise = _NOISE[number % len(_NOISE)]
            if noise:
                weights = weights * np.exp(
                    noise * self.rng.standard_normal(len(weights))
                )
            yield self._with(buffer_interval_comparator=_by_weight(weights))
            number += 1

    def _with(self, **changes: Any) -> Options:
        """The best settings so far, with changes."""
        assert self.best is not None
        return dataclasses.replace(self.best.options, **changes)

    def _first_orders(self) -> Sequence[Floats]:
        """Benefit per byte and step, and per byte and root of steps."""
        costs = CostModel(self.problem, self.options)
        scale = self.options.alternate_memory_benefit_scaling_factor_for_large_buffers
        gains = np.array(
            [costs.memory_boundedness(v, max(1, v.size)) for v in self.problem.values],
            float,
        )
        if scale != "NO_SCALE":
            gains = gains * np.sqrt(self.sizes)
        return (
            gains / (self.sizes * self.spans),
            gains / (self.sizes * np.sqrt(self.spans)),
        )

    def _weights(self, number: int) -> Floats:
        """Marginal benefit of the best plan, by three measures of room in turn."""
        assert self.best is not None
        access = Access(self.problem, self.bytes, self.best.result.allocations)
        gains = marginal_seconds(self.problem, access, self.trips)
        seconds = np.array(access.step_seconds())
        room = (
            self.sizes * self.spans,
            self.sizes * durations(self.problem, start_times(self.problem, seconds)),
            self.sizes * np.sqrt(self.spans),
        )[number % 3]
        weights: Floats = gains / room
        return weights


def _by_weight(weights: Floats) -> Key:
    """Heaviest first, then the earliest value."""
    rows = weights.tolist()
    return lambda interval: (-rows[interval.value], interval.value)
