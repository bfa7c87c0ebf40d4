"""Tied buffers that are brought into alternate memory as a whole.

What is defined outside of it is fetched before it is handed on, even if that is waited
for; what has to be in default memory afterwards is evicted. Such a change is kept if
the program gets faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final, NamedTuple

from msa.assignment.allocation import Allocation, Position
from msa.assignment.copy_times import done_at
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Change, Draft
from msa.assignment.search.free import FreePlace
from msa.assignment.search.gains import Gains
from msa.assignment.search.improve import LESS
from msa.assignment.search.proposals import Proposer
from msa.assignment.search.release import movable_buffers
from msa.assignment.search.sketches import Fetch, Sketch, allocations_of
from msa.assignment.search.tied import TiedBuffer, TiedPlace

_LEADS: Final = (1.0, 0.0, None)
"""How much idle bandwidth fetches are given, as a multiple of what they take."""

_MOST: Final = 12
"""Chunks that may have to go for one buffer."""

_TRIAL_WORK: Final = 60
"""Cost of a trial besides the boundaries passed, in boundaries."""


class Brought(NamedTuple):
    """What has become of tied buffers.

    Attributes:
        places: of those that are in alternate memory throughout now.
        left: of the budget.
        crowded: whether some found no room.
    """

    places: dict[Position, FreePlace]
    left: float
    crowded: bool


def bring_in(
    problem: Problem,
    draft: Draft,
    free: Mapping[Position, FreePlace],
    buffers: Iterable[TiedBuffer],
    kept: Iterable[int],
    dead: Set[int],
    budget: float,
    least: float = 1.0 - LESS,
) -> Brought:
    """Bring tied buffers into alternate memory while the program gets faster.

    Args:
        problem: the problem.
        draft: changed.
        free: places that may be pushed out.
        buffers: what may be brought in.
        kept: values that stay where they are.
        dead: steps that lowering removes, unless what they make is copied.
        budget: boundaries that may be passed.
        least: share of the time that a buffer could gain, for which it is tried.
    """
    return _Bringing(problem, draft, free, dead, budget).run(buffers, kept, least)


class _Bringing:
    """One pass over the buffers, those that gain the most first."""

    def __init__(
        self,
        problem: Problem,
        draft: Draft,
        free: Mapping[Position, FreePlace],
        dead: Set[int],
        budget: float,
    ) -> None:
        self._problem = problem
        self._draft = draft
        self._free = dict(free)
        self._dead = dead
        self._proposer = Proposer(problem, draft.timeline)
        self._left = budget
        self._crowded = False
        self._seconds = draft.timeline.commit()

    def run(
        self, buffers: Iterable[TiedBuffer], kept: Iterable[int], least: float
    ) -> Brought:
        """Try all that could gain."""
        places: dict[Position, FreePlace] = {}
        for tied in self._hopeful(buffers, kept, least):
            if self._left <= 0:
                break
            if self._bring(tied):
                for place in (row.place for row in tied.places):
                    places[place.position] = place
                    self._free.pop(place.position, None)
        self._draft.timeline.forget()
        return Brought(places, self._left, self._crowded)

    def _hopeful(
        self, buffers: Iterable[TiedBuffer], kept: Iterable[int], least: float
    ) -> list[TiedBuffer]:
        """Buffers that may move and could gain."""
        draft, values = self._draft, self._problem.values
        allocations = draft.allocations.values()
        movable = movable_buffers(self._problem, allocations, kept)
        fixed = {values[a.value].buffer for a in allocations if a.value >= 0} - movable
        rows = []
        for tied in buffers:
            if tied.size > draft.layout.capacity or tied.buffer in fixed:
                continue
            gain = self._gain(tied)
            if gain > self._seconds * least:
                rows.append((-gain, tied.buffer, tied))
        rows.sort()
        return [tied for _, _, tied in rows]

    def _lift(self, tied: TiedBuffer) -> list[tuple[int, Allocation]]:
        """Take away all allocations of a buffer."""
        draft, problem = self._draft, self._problem
        return [
            lifted
            for value in problem.buffers[tied.buffer]
            for position in problem.values[value].positions
            for lifted in draft.lift(position)
        ]

    def _gain(self, tied: TiedBuffer) -> float:
        """Seconds that it could gain at most: those of steps, and of its copies now."""
        draft, runs = self._draft, self._draft.timeline.runs
        start = draft.timeline.bookmark()
        lifted = self._lift(tied)
        copies = sum(runs[a.position.step] for _, a in lifted if a.is_copy_like)
        more, now = copies * tied.size / draft.timeline.rate, 0.0
        for place in (row.place for row in tied.places):
            gains = Gains(draft.timeline, place)
            now += gains.of_allocations(
                a for _, a in lifted if a.position == place.position
            )
            stay = self._problem.end if place.definable else None
            everywhere = (Fetch(0, 0, self._problem.end),)
            more += gains.of(Sketch(stay, None, everywhere)).seconds
        draft.put_back(lifted)
        draft.timeline.back_to(start)
        return more - now

    def _bring(self, tied: TiedBuffer) -> bool:
        """Bring one buffer in, in the best way; whether it pays."""
        draft, timeline = self._draft, self._draft.timeline
        start = timeline.bookmark()
        lifted = self._lift(tied)
        bare = timeline.bookmark()
        best, best_made = self._seconds * LESS, None
        for made in self._ways(tied):
            if self._left <= 0:
                break
            done = self._put(tied, made)
            if done is None:
                self._crowded = True
                continue
            before = timeline.work
            seconds = timeline.run()
            self._left -= timeline.work - before + _TRIAL_WORK
            draft.undo(done)
            timeline.back_to(bare)
            if seconds < best:
                best, best_made = seconds, made
        if best_made is None:
            draft.put_back(lifted)
            timeline.back_to(start)
            return False
        self._put(tied, best_made)
        before = timeline.work
        self._seconds = timeline.commit()
        self._left -= timeline.work - before
        return True

    def _put(self, tied: TiedBuffer, made: list[Allocation]) -> list[Change] | None:
        """Put allocations at one offset, where what lies there may have to go."""
        draft = self._draft
        fast = [a for a in made if a.is_alternate]
        start, end = min(a.start for a in fast), max(a.end for a in fast)
        offset = draft.layout.find(start, end, tied.size)
        changes: list[Change] = []
        if offset is None:
            room = draft.layout.make(start, end, tied.size, self._price, _MOST)
            if room is None or math.isinf(room.cost):
                return None
            offset = room.offset
            pushed = {draft.allocations[n].position for n in room.taken_by}
            for position in sorted(pushed):
                free = self._free[position]
                gone = draft.lift(position)
                plain = draft.put(allocations_of(free, Sketch()), free.size)
                assert plain is not None
                changes.append(Change(position, gone, plain))
        came = draft.put_together(made, offset, tied.size)
        if came is None:
            draft.undo(changes)
            return None
        changes.append(Change(tied.places[0].place.position, (), came))
        return changes

    def _price(self, number: int) -> float:
        """Seconds that steps lose if an allocation goes, with all of its place."""
        draft = self._draft
        allocation = draft.allocations[number]
        place = self._free.get(allocation.position)
        if place is None or allocation.value < 0:
            return math.inf
        return Gains(draft.timeline, place).of_allocations(
            draft.allocations[n] for n in draft.of_place[place.position]
        )

    # -- ways --------------------------------------------------------------------------

    def _ways(self, tied: TiedBuffer) -> Iterator[list[Allocation]]:
        """Allocations that have the buffer in alternate memory throughout."""
        seen = set()
        for lead in _LEADS:
            for late in (False, True):
                sketches = tuple(self._sketch(row, lead, late) for row in tied.places)
                if None in sketches or sketches in seen:
                    continue
                seen.add(sketches)
                made: list[Allocation] = []
                for row, sketch in zip(tied.places, sketches, strict=True):
                    assert sketch is not None
                    made += _allocations(row, sketch)
                yield made

    def _sketch(self, row: TiedPlace, lead: float | None, late: bool) -> Sketch | None:
        """What becomes of one place; None: it cannot be fetched in time.

        It is fetched for the first use, or (`late`) for the first that hands it on.
        """
        place = row.place
        fast = [item.use.step for item in place.uses if not item.default]
        if place.definable:
            default = [item.use.step for item in place.uses if item.default]
            stay = max(fast, default=place.step)
            if default and place.step in self._dead:
                return None
            return Sketch(stay, min(default, default=None))
        if not fast:
            return Sketch()
        read = [i.use.step for i in place.uses if not i.default and not i.trivial]
        first = min(read, default=fast[0])
        if row.handed is not None and (late or first > row.handed):
            first = row.handed
        boundary = done_at(self._problem, first, place.step)
        start = self._proposer.start(place, boundary, lead, place.step)
        if start is None or place.step in self._dead:
            return None
        return Sketch(fetches=(Fetch(start, first, max(fast)),))


def _allocations(row: TiedPlace, sketch: Sketch) -> list[Allocation]:
    """Allocations of one place, in alternate memory as long as it is looked at there."""
    made = allocations_of(row.place, sketch)
    for allocation in made:
        if allocation.is_alternate:
            allocation.end = max(row.last, sketch.evict or 0)
    return made
