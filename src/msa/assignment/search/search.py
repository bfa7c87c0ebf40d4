"""Search: greedy plans made with other settings, and local search from the best.

1. The greedy plan, and a few made with other settings, are timed, and the best are
   improved a little: values are decided anew one by one (`improve`), timed
   incrementally (`timeline`), if it can pay at all (`gains`).
2. The best of them is improved until nothing gets better or the effort is used up.
3. Where less room may do as well, the search starts from what it finds there (`ladder`).

Less is tried where the greedy plan nearly reaches the bound. The result is never slower
than the greedy plan; nor than XLA's, but for long programs that come within a thousandth
of the bound anyway.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from msa.assignment.algorithm import AllocationResult
from msa.assignment.allocation import Allocation, Position
from msa.assignment.estimate import Estimator
from msa.assignment.options import Options
from msa.assignment.problem import Problem
from msa.assignment.refine import search_hindrance
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import FreePlace, free_places
from msa.assignment.search.improve import LESS, Improver
from msa.assignment.search.ladder import CLEARLY, EQUAL, NEAR, SHORT, Ladder
from msa.assignment.search.limits import Limits
from msa.assignment.search.record import result_of, without_buffers
from msa.assignment.search.release import (
    movable_buffers,
    release_losses,
    released,
    values_to_keep,
    without_dead_copies,
)
from msa.assignment.search.repack import repack
from msa.assignment.search.shake import shake
from msa.assignment.search.starts import ALL, FAITHFUL, PLAIN, Starts, others
from msa.assignment.search.throughout import bring_in
from msa.assignment.search.tied import TiedBuffer, tied_buffers

Progress = Callable[[str, int, int], None]

_WORK: Final = 64.0
"""Boundaries passed per step of the program and unit of effort."""

_STEADY: Final = 600
"""Steps of a program, above which the work grows as the square root of the steps."""

_LONG: Final = 1000
"""Steps of a program, above which XLA's own plan is not made where the bound is near."""

_FIRST_SHARE: Final = 0.13
"""Share of the work that each of the best starts is given before one is chosen."""

_FAR: Final = 1.05
"""A greedy plan with half the room does not get as good if it takes so much longer."""

_FAIR: Final = 1.35
"""What is found twice is good enough if it takes no more than so many times the bound."""

_SAME: Final = 1e-9
"""Plans whose times differ by no more, as a share, are taken to be the same."""

_IMPROVED: Final = 2
"""Starts that are improved."""

_RELEASE_SHARE: Final = 0.1
"""Share of what an attempt is given that finding losses of tied values may take."""

_TIED_SHARE: Final = 0.3
"""The same for bringing tied values in."""

_FIRST: Final = 0.01
"""Share of the time that a tied buffer could gain, if it comes before all others."""

_REST_SHARE: Final = 0.5
"""What is left for the others then."""

_PACK_SHARE: Final = 0.3
"""Share of the work on a rung that packing anew may take at least."""

_SHAKE_SHARE: Final = 0.15
"""Share of the work that shaking may take."""

_BARE: Final = "bare"
"""Name of the attempt that starts from nothing placed; there, tied values come first."""

_MORE_SHARE: Final = 0.2
"""Share of the work on a rung that starts from the plan of the one below."""


class _Found(NamedTuple):
    """A plan: the greedy result that it comes from, and what has become of it.

    A complete one does not get better with more room for the values that fit. Places in
    `tied` were decided, too, but together.
    """

    result: AllocationResult
    allocations: Sequence[Allocation]
    free: dict[Position, FreePlace]
    seconds: float
    complete: bool = False
    tied: Mapping[Position, FreePlace] = MappingProxyType({})


class _Attempt:
    """A plan that is being improved with some room.

    Attributes:
        start: the plan as it was.
        begun: seconds of it.
        seconds: of the plan as it is now.
    """

    __slots__ = (
        "_capacity",
        "_draft",
        "_free",
        "_improver",
        "_name",
        "_search",
        "_tied",
        "_tied_crowded",
        "begun",
        "seconds",
        "start",
    )

    def __init__(
        self, search: _Search, start: _Found, capacity: int, name: str
    ) -> None:
        self._search = search
        self.start = start
        self._capacity = capacity
        self._name = name
        self._free: dict[Position, FreePlace] | None = None
        self._improver: Improver | None = None
        self._tied = dict(start.tied)
        self._tied_crowded = False
        self._draft = search.draft(start.allocations, capacity)
        self.seconds = self.begun = self._draft.timeline.seconds

    def improve(self, budget: float, goal: float) -> float:
        """Improve it, down to `goal` seconds; what is left of the budget."""
        if self.seconds <= goal or budget <= 0:
            return budget
        if self._improver is None:
            budget = self._release(budget)
            if self._name == _BARE:
                budget = self._bring_in(budget, _FIRST)
            self._improver = self._begin(self._draft)
            if self._search.tied:
                rest = budget * _REST_SHARE
                rest += self._improver.run(budget - rest, goal)
                self.seconds = self._improver.seconds
                budget = self._bring_in(rest)
        if self._improver.settled:
            return budget
        left = self._improver.run(budget, goal)
        self.seconds = self._improver.seconds
        return left

    def _begin(self, draft: Draft) -> Improver:
        search = self._search
        assert self._free is not None
        rng = None
        if search.seed:
            rng = random.Random(f"{search.seed} {self._capacity} {self._name}")
        sparing = self._name == _BARE
        return Improver(search.problem, draft, self._free, rng=rng, sparing=sparing)

    def repack(self, budget: float, goal: float) -> None:
        """Pack anew with what finds no room in one piece, while it gets faster."""
        search = self._search
        steps = search.problem.end + 1
        while budget > 0 and self._improver is not None and self.seconds > goal:
            if self._improver.is_complete():
                return
            wishes = self._improver.scattered(budget)
            budget = self._improver.left
            repacked = repack(self._draft, wishes, steps, budget)
            if repacked is None:
                return
            draft = search.draft(repacked.allocations, self._capacity)
            budget -= repacked.cost + draft.timeline.work
            if not draft.keeps_limits:
                return
            improver = self._begin(draft)
            budget = improver.run(budget, goal, repacked.places)
            if improver.seconds > self.seconds * LESS:
                return
            self._draft, self._improver = draft, improver
            self.seconds = improver.seconds

    def shake(self, budget: float, goal: float) -> None:
        """Take values out together and decide them anew, while the budget lasts."""
        if self._improver is None or not self._improver.settled:
            return
        rng = random.Random(f"{self._search.seed} {self._capacity} shaken")
        shake(self._improver, rng, budget, goal)
        self.seconds = self._improver.seconds

    def _free_in(self, allocations: Iterable[Allocation]) -> dict[Position, FreePlace]:
        """What may be decided by itself, given where the plan has the rest."""
        found = self._search.free(allocations, self._capacity)
        places = {**self.start.free, **found}
        return {at: place for at, place in places.items() if at not in self._tied}

    def _release(self, budget: float) -> float:
        """Take out what is moved at a loss, and find what may be decided anew."""
        search, start = self._search, self.start
        self._free = self._free_in(start.allocations)
        share = budget * _RELEASE_SHARE
        gone, left = release_losses(
            search.problem, self._draft, self._free, search.wanted, share
        )
        if gone:
            fewer = self._draft.sequence()
            result = without_buffers(search.problem, start.result, gone, fewer)
            buffer_of = [value.buffer for value in search.problem.values]
            self._tied = {
                at: place
                for at, place in self._tied.items()
                if buffer_of[place.value] not in gone
            }
            self._free = self._free_in(fewer)
            seconds = self.seconds = self._draft.timeline.seconds
            self.start = start._replace(
                result=result,
                allocations=tuple(fewer),
                seconds=seconds,
                complete=False,
                tied=dict(self._tied),
            )
        return budget - share + left

    def _bring_in(self, budget: float, least: float = 1.0 - LESS) -> float:
        """Bring in tied values that may not be decided one by one; begin anew then."""
        search = self._search
        assert self._free is not None
        share = budget * _TIED_SHARE
        brought = bring_in(
            search.problem,
            self._draft,
            self._free,
            search.tied,
            search.wanted,
            search.dead,
            share,
            least,
        )
        self._tied.update(brought.places)
        self._tied_crowded = brought.crowded
        if brought.places:
            self._free = self._free_in(self._draft.sequence())
            self._improver = self._begin(self._draft)
            self.seconds = self._improver.seconds
        return budget - share + brought.left

    def found(self) -> _Found:
        """What it is now; as it was, if it is not clearly faster."""
        start = self.start
        if self._improver is None or self._free is None:
            return start._replace(seconds=min(start.seconds, self.seconds))
        complete = self._improver.is_complete() and not self._tied_crowded
        if start.seconds < self.seconds * CLEARLY:
            return start._replace(complete=complete)
        allocations = tuple(self._draft.sequence())
        return _Found(
            start.result, allocations, self._free, self.seconds, complete, self._tied
        )


class _Search:
    """Searches of one problem at several capacities."""

    def __init__(
        self,
        problem: Problem,
        options: Options,
        starts: Starts,
        ladder: Ladder,
        in_place: Set[int] | None,
        dead: Set[int],
        progress: Progress | None,
    ) -> None:
        self.problem = problem
        self.seed = options.seed
        self._options = options
        self._alignment = options.alignment_in_bytes or problem.machine.alignment
        shrunk = math.sqrt(min(1.0, _STEADY / max(problem.end, 1)))
        self._work = _WORK * options.effort * problem.end * shrunk
        self.starts = starts
        self._ladder = ladder
        self._in_place = in_place
        self.dead = dead
        self._progress = progress
        self._annotated = {c.value for c in problem.cross_program if c.annotated}
        self.wanted = values_to_keep(problem, dead)

    @cached_property
    def tied(self) -> list[TiedBuffer]:
        """The buffers that may be moved as a whole only."""
        return tied_buffers(self.problem, self.wanted, self.dead)

    def draft(self, allocations: Iterable[Allocation], capacity: int) -> Draft:
        """A draft of a plan with some room."""
        return Draft(
            self.problem,
            allocations,
            capacity,
            self._alignment,
            self.dead,
            Limits.of(self._options),
        )

    def free(
        self, allocations: Iterable[Allocation], capacity: int
    ) -> dict[Position, FreePlace]:
        """What may be decided anew in a plan with some room."""
        return free_places(
            self.problem,
            capacity,
            allocations,
            bound=self.wanted,
            in_place=self._in_place,
        )

    def attempts(
        self, capacity: int, numbers: Iterable[int], room: int = 0
    ) -> list[_Attempt]:
        """The greedy results with some settings, none of them improved yet.

        They may be improved in more `room` than they were made for.
        """
        room = max(room, capacity)
        found = []
        for number, result in self.starts.at(capacity, numbers):
            if self._progress is not None:
                self._progress("searching", number, len(ALL))
            result = without_dead_copies(
                self.problem, result, self.dead, self._annotated
            )
            start = _Found(result, tuple(result.allocations), {}, float("inf"))
            found.append(_Attempt(self, start, room, str(number)))
        return found

    def _bare(self, attempt: _Attempt, rung: int) -> _Attempt:
        """The same with nothing placed that need not be."""
        start = attempt.start
        buffers = movable_buffers(self.problem, start.allocations, self.wanted)
        result = released(self.problem, start.result, start.allocations, buffers)
        bare = _Found(result, tuple(result.allocations), {}, float("inf"))
        return _Attempt(self, bare, rung, _BARE)

    def on(self, rung: int, limit: float = math.inf) -> _Found | None:
        """The best plan that is found with the room of a rung; None: there is none.

        It depends on the rung alone, not on what is asked for above it; but there is
        none, either, if the greedy plan improved a little takes longer than `limit`.
        """
        bound = self._ladder.bound(rung)
        goal, near = bound * EQUAL, bound * NEAR
        tried = self.attempts(rung, (PLAIN,))
        left = work = self._work
        short = self.problem.end <= SHORT
        share = work * _FIRST_SHARE
        fastest = math.inf
        enough = False
        if tried:
            if short:
                left -= share - tried[0].improve(share, goal)
            fastest = tried[0].seconds
            if fastest <= goal:
                return tried[0].found()
            if fastest > limit:
                return None
        support = self._ladder.support(rung)
        if support is not None and self._ladder.bound(support) > fastest:
            support = None  # nothing that fits there is as good
        below = None if support is None else self._below(support, fastest * _FAR)
        if below is not None:
            left = work = work * _MORE_SHARE
            if below.complete and below.seconds <= fastest:
                return below
            if _is_same(below.seconds, fastest):
                return below  # found twice: it is not worth more
            tried.append(_Attempt(self, below, rung, "below"))
        elif fastest > near:
            if tried and short:
                tried.append(self._bare(tried[0], rung))
                left -= share - tried[-1].improve(share, near)
            fair = fastest <= bound * _FAIR
            twice = len(_different(tried)) < len(tried)
            enough = fair and twice
            if not enough:
                tried += self._others(rung, tried)
            if short and support is None and not fair and not twice:
                tried += self._of_less(rung, fastest)
            for attempt in _different(tried)[:_IMPROVED]:
                share = min(left, share)
                left -= share - attempt.improve(share, near)
        if not tried:
            return None
        best = min(tried, key=_seconds)
        left = best.improve(left, near)
        best.repack(max(left, work * _PACK_SHARE), near)
        if not enough:
            best.shake(work * _SHAKE_SHARE, near)
        found = best.found()
        if below is not None and below.seconds < found.seconds * CLEARLY:
            return below
        return found

    def _of_less(self, rung: int, fastest: float) -> list[_Attempt]:
        """The greedy plan with half the room, if it may be faster."""
        below = self._ladder.below(rung)
        if below is None or self._ladder.bound(below) > fastest:
            return []
        return self.attempts(below, (PLAIN,), rung)

    def _others(self, rung: int, known: Sequence[_Attempt]) -> list[_Attempt]:
        """Plans with other settings, until one makes no difference any more."""
        found: list[_Attempt] = []
        for number in others(self.problem.end):
            for attempt in self.attempts(rung, (number,)):
                if any(_is_same(attempt.begun, a.begun) for a in (*known, *found)):
                    return found
                found.append(attempt)
        return found

    def _below(self, rung: int, limit: float) -> _Found | None:
        """What is found on a rung, for one above it."""
        found = self.on(rung, limit)
        if found is not None and self._ladder.largest > rung:
            return found._replace(complete=False)  # there is more that fits above
        return found


def _different(attempts: Iterable[_Attempt]) -> list[_Attempt]:
    """By time; the first of those that take the same: they are the same as a rule."""
    found: list[_Attempt] = []
    for attempt in sorted(attempts, key=_seconds):
        if not found or not _is_same(attempt.seconds, found[-1].seconds):
            found.append(attempt)
    return found


def _is_same(a: float, b: float) -> bool:
    return abs(a - b) <= a * _SAME


def _seconds(attempt: _Attempt) -> float:
    return attempt.seconds


def run_search(
    problem: Problem,
    options: Options,
    first: AllocationResult,
    *,
    before: float | None = None,
    trips: Sequence[float] | None = None,
    in_place: Set[int] | None = None,
    dead: Set[int] = frozenset(),
    progress: Progress | None = None,
) -> AllocationResult:
    """The best result that is found with `options.effort`.

    More capacity does not make it slower (see `ladder`).

    Args:
        problem: the problem.
        options: as given to the algorithm; deterministic by `seed`.
        first: the greedy result, where the search starts. With `effort=0`, and if
            the options fix when things are copied, it is the result.
        before: seconds with nothing placed; None: as estimated.
        trips: per step, how often it runs; None: as its region does.
        in_place: steps that write into an operand; None: any may.
        dead: steps that lowering removes because nothing needs them.
        progress: told of each start that is tried.

    The work is proportional to the effort and the number of steps; to the root of it
    in long programs.
    """
    if search_hindrance(problem, options):
        return first
    capacity = options.max_size_in_bytes or problem.machine.capacity
    if before is None:
        before = Estimator(problem).seconds(())
    if trips is None:
        trips = [problem.trip_counts[region] for region in problem.region_of]
    starts = Starts(problem, options, first, capacity, before)
    ladder = Ladder(problem, capacity, trips, dead)
    search = _Search(problem, options, starts, ladder, in_place, dead, progress)
    best = search.on(ladder.top)
    # What the algorithm makes with more room than needed may still be different.
    more: list[_Attempt] = []
    if best is None or ladder.top != capacity:
        more += search.attempts(capacity, (PLAIN,))
        for rung in ladder.above():
            more += search.attempts(rung, (PLAIN,))
    enough = ladder.bound(ladder.top) * (EQUAL if problem.end <= _LONG else NEAR)
    if best is None or best.seconds > enough:
        more += search.attempts(capacity, (FAITHFUL,))
    if more:
        fastest = min(more, key=_seconds)
        if best is None or fastest.seconds * CLEARLY < best.seconds:
            best = fastest.found()
    assert best is not None
    draft = search.draft(best.allocations, capacity)
    return result_of(problem, best.result, draft, {**best.free, **best.tied})
