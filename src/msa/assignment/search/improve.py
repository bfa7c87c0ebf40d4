"""Local search: one value after another is decided anew, given all the others.

For every free value the sketches of `Proposer` are put into the draft and timed; the
best is kept. Where there is no room, what it costs least to move out goes, is decided
anew in its turn, and all of it is kept only if the program gets faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from msa.assignment.allocation import Allocation
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Change, Draft
from msa.assignment.search.free import FreeValue
from msa.assignment.search.proposals import Proposer
from msa.assignment.search.sketches import Sketch, allocations_of

_LESS: Final = 1.0 - 1e-9
_TRIAL_WORK: Final = 12
"""Cost of one trial besides the boundaries passed, in boundaries."""
_EVICTED: Final = 6
"""Values that one move may push out of its room."""
_WISHES: Final = 2
"""Sketches without room for which room is made, per value."""


class Improver:
    """Improves a draft, within a budget.

    Attributes:
        seconds: modelled time of the draft.
        left: what is left of the budget; a trial costs a little, and every boundary
            passed by the simulation.
    """

    def __init__(
        self,
        problem: Problem,
        draft: Draft,
        free: dict[int, FreeValue],
        trips: Sequence[float],
        budget: float,
    ) -> None:
        self._draft = draft
        self._problem = problem
        self._free = free
        self._trips = trips
        self._proposer = Proposer(problem, draft.timeline)
        self._changes: list[Change] = []
        self._marked = 0
        self.seconds = draft.timeline.commit()
        self.left = budget
        self._work = draft.timeline.work

    def run(self) -> None:
        """Go over the values until nothing gets better or the budget is used up."""
        before = math.inf
        while self.left > 0 and self.seconds < before * (1.0 - 1e-4):
            before = self.seconds
            for value in self._order():
                if self.left <= 0:
                    break
                self.decide(value)

    def _order(self) -> list[FreeValue]:
        """Values that could gain, the most first."""
        rows = []
        least = self.seconds * 1e-6
        for value in self._free.values():
            gain = self._potential(value)
            if gain > least:
                rows.append((-gain, value.value, value))
        rows.sort()
        return [value for _, _, value in rows]

    def _potential(self, value: FreeValue) -> float:
        """Seconds that the value could gain at most: slow accesses, and its stalls."""
        timeline, trips = self._draft.timeline, self._trips
        fast: set[object] = set()
        total = 0.0
        for number in self._draft.of_value.get(value.value, ()):
            allocation = self._draft.allocations[number]
            if allocation.is_copy_like:
                total += timeline.stalls.get(allocation.available, 0.0)
            if allocation.is_alternate:
                fast.update(allocation.uses)
                if not allocation.is_copy_like:
                    fast.add(value.step)
        for item in value.uses:
            if item.use not in fast and item.size and not item.default:
                step = item.use.step
                total += timeline.gain(step, item.size, 0.0) * trips[step]
        if value.definable and value.step not in fast:
            total += timeline.gain(value.step, 0.0, value.written) * trips[value.step]
        return total

    # -- one value -------------------------------------------------------------------

    def decide(self, value: FreeValue) -> bool:
        """Decide a value anew; whether anything was changed for the better."""
        timeline = self._draft.timeline
        self._changes = []
        start = timeline.bookmark()
        wishes: list[tuple[float, Sketch]] = []
        found = self._replan(value, self.seconds, wishes)
        if found < self.seconds * _LESS:
            self.seconds = timeline.commit()
            self._pay()
            return True
        wishes.sort(key=lambda wish: -wish[0])
        for _, sketch in wishes[:_WISHES]:
            if self.left <= 0:
                break
            found = self._make_room(value, sketch)
            if found < self.seconds * _LESS:
                self.seconds = timeline.commit()
                self._pay()
                return True
            self._draft.undo(self._changes)
            self._changes = []
            timeline.back_to(start)
        timeline.forget()
        return False

    def _pay(self) -> None:
        work = self._draft.timeline.work
        self.left -= work - self._work
        self._work = work

    def _replan(
        self,
        value: FreeValue,
        now: float,
        wishes: list[tuple[float, Sketch]] | None = None,
    ) -> float:
        """Give a value the best sketch that fits; the time then, `now` if none is.

        The change is noted. Sketches without room go to `wishes`, with what their
        accesses gain.
        """
        draft, timeline = self._draft, self._draft.timeline
        gone = draft.lift(value.value)
        bare = timeline.bookmark()
        best, best_made = now * _LESS, None
        for sketch in self._proposer.sketches(value):
            if self.left <= 0:
                break
            made = allocations_of(self._problem, value, sketch)
            self.left -= _TRIAL_WORK
            came = draft.put(made, value.size)
            if came is None:
                if wishes is not None:
                    wishes.append((self._gain(value, made), sketch))
                continue
            seconds = timeline.run()
            self._pay()
            draft.take_out(came)
            timeline.back_to(bare)
            if seconds < best:
                best, best_made = seconds, made
        if best_made is None:
            draft.put_back(gone)
            return now
        came = draft.put(best_made, value.size)
        assert came is not None
        self._changes.append(Change(value.value, gone, came))
        return best

    def _gain(self, value: FreeValue, made: Iterable[Allocation]) -> float:
        """Seconds that accesses gain, stalls not counted, others as they are."""
        timeline, trips = self._draft.timeline, self._trips
        sizes = {item.use: item.size for item in value.uses}
        total = 0.0
        for allocation in made:
            if not allocation.is_alternate:
                continue
            for use in allocation.uses:
                total += timeline.gain(use.step, sizes[use], 0.0) * trips[use.step]
            if not allocation.is_copy_like:
                step = value.step
                total += timeline.gain(step, 0.0, value.written) * trips[step]
        return total

    # -- making room -----------------------------------------------------------------

    def _make_room(self, value: FreeValue, sketch: Sketch) -> float:
        """Put a sketch where others have to go, and decide those anew; the time."""
        draft, timeline = self._draft, self._draft.timeline
        made = allocations_of(self._problem, value, sketch)
        gone = draft.lift(value.value)
        wanted = self._gain(value, made)
        pushed: dict[int, None] = {}
        for allocation in made:
            if not allocation.is_alternate:
                continue
            room = draft.layout.make(
                allocation.start, allocation.end, value.size, self._price
            )
            if room is None or room.cost >= wanted:
                draft.put_back(gone)
                return math.inf
            for number in room.taken_by:
                pushed[draft.allocations[number].value] = None
        if len(pushed) > _EVICTED:
            draft.put_back(gone)
            return math.inf
        for other in pushed:
            free = self._free[other]
            left = draft.lift(other)
            plain = draft.put(allocations_of(self._problem, free, Sketch()), free.size)
            assert plain is not None
            self._changes.append(Change(other, left, plain))
        came = draft.put(made, value.size)
        if came is None:
            draft.undo(self._changes)
            self._changes = []
            draft.put_back(gone)
            return math.inf
        self._changes.append(Change(value.value, gone, came))
        found = timeline.run()
        self._pay()
        for other in pushed:
            found = self._replan(self._free[other], found)
        return found

    def _price(self, number: int) -> float:
        """Seconds that accesses lose if an allocation goes; infinite if it must stay."""
        allocation = self._draft.allocations[number]
        value = self._free.get(allocation.value)
        if value is None:
            return math.inf
        timeline, trips = self._draft.timeline, self._trips
        sizes = {item.use: item.size for item in value.uses}
        total = 0.0
        for use in allocation.uses:
            total -= timeline.gain(use.step, -sizes[use], 0.0) * trips[use.step]
        if not allocation.is_copy_like:
            step = value.step
            total -= timeline.gain(step, 0.0, -value.written) * trips[step]
        return total
