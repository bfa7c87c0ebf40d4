"""Capacities below the one asked for, whose plans count too: a plan that fits half
the room fits all of it, and takes as long.

Where more room hardly helps, chance decides which search ends better. There the search
at a capacity goes on from the plan that the search at half of it found, so it is never
slower. Where a bound on the time of all plans says that half the room costs much, it
begins afresh.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence, Set
from itertools import accumulate
from typing import Final

from msa.assignment.bounds import lower_bound_seconds
from msa.assignment.problem import Problem, Value

_FLAT: Final = 1.06
"""Half the room costs little if the bound is at most so many times as high."""

_GROUP: Final = 3
"""Rungs of a ladder that support each other at most."""

_TINY: Final = 100
"""Steps of a program, up to which greedy plans with more room are cheap."""

SHORT: Final = 250
"""Steps of a program, up to which more is tried."""

_SLACK: Final = 1.25
"""Room that packing may waste, as a multiple of what is live at once."""

_LEAST_SLACK: Final = 1.04
"""The same for a rung, which is taken rather than a capacity right above it."""

EQUAL: Final = 1.0 + 1e-9
"""A time is reached by less than so many times it: sums are rounded."""

NEAR: Final = 1.0 + 1e-3
"""A bound is nearly reached by less than so many times it: it is not worth much work to
come nearer."""

CLEARLY: Final = 1.0 + 1e-8
"""A plan that takes less than so many times the time of another is as good."""


class Ladder:
    """The rungs of one problem: a capacity, and the powers of two below, in bytes.

    What is said of a rung depends on the rung alone, not on where the ladder begins.

    Attributes:
        largest: bytes of the largest value that may be placed.
        top: the highest rung worth a search, given a capacity: that, or what is enough
            for everything at once.
    """

    __slots__ = (
        "_bounds",
        "_capacity",
        "_dead",
        "_highest",
        "_least",
        "_problem",
        "_trips",
        "largest",
        "top",
    )

    def __init__(
        self,
        problem: Problem,
        capacity: int,
        trips: Sequence[float],
        dead: Set[int] = frozenset(),
    ) -> None:
        self._problem = problem
        self._trips = trips
        self._dead = dead
        self._bounds: dict[int, float] = {}
        placeable = [value for value in problem.values if _takes_room(value)]
        self._least = min((value.size for value in placeable), default=capacity + 1)
        self.largest = max((value.size for value in placeable), default=0)
        live = _most_live(problem, placeable)
        enough = max(math.ceil(_SLACK * live), self._least, 1)
        rung = 1 << enough.bit_length() - 1
        if rung >= max(_LEAST_SLACK * live, self._least):
            enough = rung  # one rung less to search
        self._highest = (enough - 1).bit_length() - 1
        self._capacity = capacity
        self.top = min(capacity, enough)

    def bound(self, rung: int) -> float:
        """Seconds that every plan takes that fits a rung. Near linear, asked once."""
        known = self._bounds.get(rung)
        if known is None:
            machine = dataclasses.replace(self._problem.machine, capacity=rung)
            problem = dataclasses.replace(self._problem, machine=machine)
            known = lower_bound_seconds(problem, self._trips, dead=self._dead)
            self._bounds[rung] = known
        return known

    def below(self, rung: int) -> int | None:
        """The next lower rung; None: nothing fits there."""
        doublings = (rung - 1).bit_length()
        below = 1 << doublings - 1 if doublings else 0
        return below if below >= self._least else None

    def support(self, rung: int) -> int | None:
        """The next lower rung, if its plans may be nearly as good; None: they are not.

        Supported rungs are at most so many in a row that the work is bounded.
        """
        below = self.below(rung)
        if below is None:
            return None
        # Counted down from what is enough for everything.
        level = self._highest - below.bit_length() + 1
        if rung == 2 * below and level % _GROUP == _GROUP - 1:
            return None
        if self.bound(below) > self.bound(rung) * _FLAT:
            return None
        return below

    def above(self) -> list[int]:
        """Rungs between the top and the capacity at which greedy plans count, too."""
        if self._problem.end > _TINY:
            return []
        first = 1 << self.top.bit_length()
        return [first] if first < self._capacity else []


def _takes_room(value: Value) -> bool:
    return value.placeable and not value.is_tuple and value.size > 0


def _most_live(problem: Problem, values: Sequence[Value]) -> int:
    """Most bytes live at one step. Linear."""
    more = [0] * (problem.end + 2)
    for value in values:
        more[value.live[0]] += value.size
        more[value.live[1] + 1] -= value.size
    return max(accumulate(more), default=0)
