"""Greedy plans made with several settings, where searches start from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.options import CostAnalysisPicker, Options
from msa.assignment.problem import Problem
from msa.assignment.refine import refine
from msa.errors import CapacityError, OptionsError

PLAIN: Final = 0
"""Number of the greedy plan as it was asked for."""

FAITHFUL: Final = 1
"""Number of XLA's own."""

_SETTINGS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"faithful": True},
    {"prefetch_interval_picker": CostAnalysisPicker(1.5, 2.5, 3.0)},
    {"inefficient_use_to_copy_ratio": 0.5},
    {"alternate_memory_benefit_scaling_factor_for_large_buffers": "NO_SCALE"},
    {
        "prefetch_interval_picker": CostAnalysisPicker(0.0, 1.0, 10.0),
        "enable_cross_program_prefetch": False,
    },
)

ALL: Final = tuple(range(len(_SETTINGS)))

_OTHERS: Final = (2, 3, 4, 5)
"""Numbers of those that are neither."""

_FEW: Final = (2, 5)
"""Numbers of those that make a difference in very small programs, too."""

_SMALL: Final = 40
"""Steps of such a program: there, most of the time goes into greedy plans."""


def others(steps: int) -> tuple[int, ...]:
    """Numbers of the plans that are worth making beside the plain one and XLA's.

    >>> others(10), others(10_000)
    ((2, 5), (2, 3, 4, 5))
    """
    return _FEW if steps <= _SMALL else _OTHERS


class Starts:
    """Greedy results of one problem at several capacities.

    Args:
        problem: the problem.
        options: as given to the algorithm.
        first: the refined greedy result at `capacity`.
        capacity: bytes.
        before: seconds with nothing placed.
    """

    __slots__ = ("_before", "_capacity", "_first", "_options", "_problem")

    def __init__(
        self,
        problem: Problem,
        options: Options,
        first: AllocationResult,
        capacity: int,
        before: float,
    ) -> None:
        self._problem = problem
        self._options = options
        self._first = first
        self._capacity = capacity
        self._before = before

    def at(
        self, capacity: int, numbers: Iterable[int] = ALL
    ) -> Iterator[tuple[int, AllocationResult]]:
        """The results at a capacity, each with its number; those that there are."""
        seen: list[Options] = []
        for number in dict.fromkeys(numbers):
            try:
                options = dataclasses.replace(
                    self._options,
                    strategy="greedy",
                    max_size_in_bytes=capacity,
                    **_SETTINGS[number],
                )
                if options in seen:
                    continue
                seen.append(options)
                if number == PLAIN and capacity == self._capacity:
                    yield number, self._first
                    continue
                result = run_greedy(self._problem, options)
            except (CapacityError, OptionsError):
                continue
            if number == PLAIN:
                result = refine(self._problem, result, self._options, self._before)
            yield number, result
