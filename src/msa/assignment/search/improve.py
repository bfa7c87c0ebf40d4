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
_TRIAL_WORK: Final = 30
"""Cost of one trial besides the boundaries passed, in boundaries."""
_SCAN_WORK: Final = 0.05
"""Cost of looking at one chunk when room is sought, in boundaries."""
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
        stalled = sum(self._draft.timeline.stalls.values()) > least
        for value in self._free.values():
            gain = self._potential(value)
            if gain > least or (stalled and self._is_copied(value)):
                rows.append((-gain, value.value, value))
        rows.sort()
        return [value for _, _, value in rows]

    def _is_copied(self, value: FreeValue) -> bool:
        """Whether it has a copy, for which others may wait in the queue."""
        draft = self._draft
        return any(
            draft.allocations[n].is_copy_like
            for n in draft.of_value.get(value.value, ())
        )

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
        around: tuple[int, int] | None = None,
    ) -> float:
        """Give a value the best sketch that fits; the time then, `now` if none is.

        The change is noted. Sketches without room go to `wishes`, with what their
        accesses gain; sketches that leave room in the steps `around` are tried too.
        """
        draft, timeline = self._draft, self._draft.timeline
        gone = draft.lift(value.value)
        bare = timeline.bookmark()
        best, best_made = now * _LESS, None
        for sketch in self._proposer.sketches(value, around):
            if self.left <= 0:
                break
            made = allocations_of(self._problem, value, sketch)
            self.left -= _TRIAL_WORK + _SCAN_WORK * len(draft.layout)
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
        pushed = self._in_the_way(value, made)
        if pushed is None:
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
        for other, around in pushed.items():
            found = self._replan(self._free[other], found, around=around)
        return found

    def _in_the_way(
        self, value: FreeValue, made: Sequence[Allocation]
    ) -> dict[int, tuple[int, int]] | None:
        """Values that have to go, with the steps in which they do; None: too dear."""
        draft = self._draft
        wanted = self._gain(value, made)
        pushed: dict[int, tuple[int, int]] = {}
        for allocation in made:
            if not allocation.is_alternate:
                continue
            start, end = allocation.start, allocation.end
            self.left -= _TRIAL_WORK + 10 * _SCAN_WORK * len(draft.layout)
            room = draft.layout.make(
                start, end, value.size, lambda n, a=start, b=end: self._price(n, a, b)
            )
            if room is None or room.cost >= wanted:
                return None
            for number in room.taken_by:
                pushed[draft.allocations[number].value] = (start, end)
        return pushed if len(pushed) <= _EVICTED else None

    def _price(self, number: int, start: int, end: int) -> float:
        """Seconds lost at least if an allocation goes from steps [start, end].

        Infinite if it must stay.
        """
        allocation = self._draft.allocations[number]
        value = self._free.get(allocation.value)
        if value is None:
            return math.inf
        timeline, trips = self._draft.timeline, self._trips
        total = 0.0
        inside = {use for use in allocation.uses if start <= use.step <= end}
        if inside:
            for item in value.uses:
                if item.use in inside and item.size:
                    step = item.use.step
                    total -= timeline.gain(step, -item.size, 0.0) * trips[step]
        step = value.step
        if not allocation.is_copy_like and start <= step <= end:
            total -= timeline.gain(step, 0.0, -value.written) * trips[step]
        return total
