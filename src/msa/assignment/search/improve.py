"""Local search: one value after another is decided anew, given all the others.

For every free value the sketches of `Proposer` are put into the draft and timed; the
best is kept. Where there is no room, what it costs least to move out goes, is decided
anew in its turn, and all of it is kept only if the program gets faster.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from msa.assignment.allocation import Allocation, Position
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Change, Draft
from msa.assignment.search.free import FreePlace
from msa.assignment.search.gains import Gains
from msa.assignment.search.layout import Layout
from msa.assignment.search.proposals import Proposer
from msa.assignment.search.sketches import Sketch, Wish, allocations_of

LESS: Final = 1.0 - 1e-9
_ROUND: Final = 1.0 - 1e-3
"""What is left of the time after a round that is worth another."""
_SHUFFLE: Final = 0.5
"""Deviation of the logarithm of the gains by which values are put in order."""
_SKETCH_WORK: Final = 8
_TRIAL_WORK: Final = 60
"""Costs of a sketch, and of its trial besides the boundaries passed, in boundaries."""
_FIND_WORK: Final = 20
_MAKE_WORK: Final = 40
"""Costs of looking for room, and of making some, besides those per chunk."""
_PASS_WORK: Final = 0.015
_PRICE_WORK: Final = 2.0
"""Costs per chunk passed where room is looked for, and per chunk priced."""
_EVICTED: Final = 6
_MOST: Final = 12
"""Values that one move may push out of its room, and chunks of them in one place."""
_WISHES: Final = 2
"""Sketches without room for which room is made, per value."""


class Kept(NamedTuple):
    """A draft as it was, with what is known of its values."""

    allocations: dict[int, Allocation]
    seconds: float
    accepted: int
    in_vain: dict[Position, int]
    crowded: set[Position]

    @property
    def size(self) -> int:
        """Number of allocations."""
        return len(self.allocations)


class Improver:
    """Improves a draft, within budgets.

    A value that was decided anew in vain is left alone until something changes.

    Attributes:
        seconds: modelled time of the draft.
        left: what is left of the budget; a trial costs a little, and every boundary
            passed by the simulation.
        settled: whether the last run found nothing more, or hardly.
    """

    def __init__(
        self,
        problem: Problem,
        draft: Draft,
        free: dict[Position, FreePlace],
        *,
        rng: random.Random | None = None,
        sparing: bool = False,
    ) -> None:
        self._draft = draft
        self._free = free
        self._proposer = Proposer(problem, draft.timeline)
        self._changes: list[Change] = []
        self.seconds = draft.timeline.commit()
        self.left = 0.0
        self.settled = False
        self._rng = rng
        self._sparing = sparing
        self._work = self._done()
        self._accepted = self._turn = 0
        self._in_vain: dict[Position, int] = {}
        self._crowded: set[Position] = set()

    def run(
        self, budget: float, goal: float = 0.0, first: Iterable[FreePlace] = ()
    ) -> float:
        """Go over the values until nothing gets better or the budget is used up.

        At `goal` seconds it is good enough. Some are decided `first`, whether they
        look as if they could gain or not. Returns what is left of the budget.
        """
        self.decide_all(budget, first)
        before = math.inf
        while self.left > 0 and self.seconds < before * _ROUND:
            before = self.seconds
            for place in self._order():
                if self.left <= 0 or self.seconds <= goal:
                    break
                self.decide(place)
        self.settled = self.left > 0
        return self.left

    def is_complete(self) -> bool:
        """Whether nothing would get better with more room, either."""
        return self.settled and all(
            self._was_in_vain(place) and place.position not in self._crowded
            for _, place in self.hopeful()
        )

    def _was_in_vain(self, place: FreePlace) -> bool:
        return self._in_vain.get(place.position) == self._accepted

    def _order(self) -> list[FreePlace]:
        """Values that could gain, the most first; shuffled somewhat, if by chance.

        If room is spared, the most for the bytes and steps that they take.
        """
        rows = []
        for gain, place in self.hopeful():
            if self._sparing:
                first, last = place.span
                gain /= place.size * (last - first + 1)
            if self._rng is not None:
                gain *= math.exp(self._rng.gauss(0.0, _SHUFFLE))
            rows.append((-gain, place.position, place))
        rows.sort()
        return [place for _, _, place in rows]

    def hopeful(self) -> Iterator[tuple[float, FreePlace]]:
        """Values that could gain, and seconds that they could at most."""
        least = self.seconds * 1e-6
        stalled = sum(self._draft.timeline.stalls.values()) > least
        for place in self._free.values():
            gain = self._potential(place)
            if gain > least or (stalled and self._is_copied(place)):
                yield gain, place

    def _is_copied(self, place: FreePlace) -> bool:
        """Whether it has a copy, for which others may wait in the queue."""
        draft = self._draft
        return any(
            draft.allocations[n].is_copy_like
            for n in draft.of_place.get(place.position, ())
        )

    def _potential(self, place: FreePlace) -> float:
        """Seconds that the value could gain at most: slow accesses, and its stalls."""
        timeline = self._draft.timeline
        accesses, runs = timeline.accesses, timeline.runs
        fast: set[object] = set()
        total = 0.0
        for number in self._draft.of_place.get(place.position, ()):
            allocation = self._draft.allocations[number]
            if allocation.is_copy_like:
                total += timeline.stalls.get(allocation.available, 0.0)
            if allocation.is_alternate:
                fast.update(allocation.uses)
                if not allocation.is_copy_like:
                    fast.add(place.position)
        for item in place.uses:
            if item.use not in fast and item.size and not item.default:
                step = item.use.step
                total += accesses.gain(step, item.size, 0.0) * runs[step]
        if place.definable and place.position not in fast:
            total += accesses.gain(place.step, 0.0, place.written) * runs[place.step]
        return total

    # -- one value -------------------------------------------------------------------

    def decide(self, place: FreePlace) -> bool:
        """Decide a value anew; whether anything was changed for the better."""
        if self._was_in_vain(place):
            return False
        timeline = self._draft.timeline
        self._changes = []
        start = timeline.bookmark()
        wishes: list[tuple[float, Sketch]] = []
        if self._is_kept(self._replan(place, self.seconds, wishes)):
            return True
        wishes.sort(key=lambda wish: -wish[0])
        for gain, sketch in wishes[:_WISHES]:
            if self.left <= 0:
                break
            if self._is_kept(self._make_room(place, sketch, gain)):
                return True
            self._draft.undo(self._changes)
            self._changes = []
            timeline.back_to(start)
        timeline.forget()
        if self.left > 0:
            self._in_vain[place.position] = self._accepted
            self._crowded.discard(place.position)
            if wishes:
                self._crowded.add(place.position)
        return False

    def decide_all(self, budget: float, places: Iterable[FreePlace]) -> float:
        """Decide some values anew, one after another; what is left of the budget."""
        self.left = budget
        for place in places:
            if self.left <= 0:
                break
            self.decide(place)
        return self.left

    # -- several at once -------------------------------------------------------------

    def placed(self) -> list[FreePlace]:
        """Free places that are in alternate memory at some time."""
        draft = self._draft
        positions = {a.position for a in draft.allocations.values() if a.is_alternate}
        return [self._free[p] for p in sorted(positions) if p in self._free]

    def keep(self) -> Kept:
        """The draft as it is, to come back to."""
        return Kept(
            dict(self._draft.allocations),
            self.seconds,
            self._accepted,
            dict(self._in_vain),
            set(self._crowded),
        )

    def clear(self, places: Iterable[FreePlace]) -> None:
        """Put some values into default memory, whatever that costs."""
        for place in places:
            self._draft.lift(place.position)
            made = self._draft.put(allocations_of(place, Sketch()), place.size)
            assert made is not None
        self.seconds = self._draft.timeline.commit()
        self._accepted = self._turn = self._turn + 1
        self._pay()

    def take_back(self, kept: Kept) -> float:
        """Take back everything that was done since; what that cost."""
        self._draft.restore(kept.allocations)
        self._draft.timeline.commit()
        self.seconds, self._accepted = kept.seconds, kept.accepted
        self._in_vain, self._crowded = kept.in_vain, kept.crowded
        before = self.left
        self._pay()
        return before - self.left

    def _is_kept(self, found: float) -> bool:
        """Keep what was changed, if it takes so much less time."""
        if found >= self.seconds * LESS:
            return False
        self.seconds = self._draft.timeline.commit()
        self._accepted = self._turn = self._turn + 1
        self._pay()
        return True

    def scattered(self, budget: float) -> list[Wish]:
        """What would gain, and has bytes enough, but no room in one piece.

        One wish per value, the dearest first. Nothing is changed.
        """
        self.left = budget
        draft = self._draft
        start = draft.timeline.bookmark()
        wishes = []
        for place in self._order():
            if self.left <= 0:
                break
            gone = draft.lift(place.position)
            gains = Gains(draft.timeline, place)
            now = gains.of_allocations(allocation for _, allocation in gone)
            rooms = _Rooms(draft.layout, place)
            best: Wish | None = None
            for sketch in self._proposer.sketches(place):
                self.left -= _SKETCH_WORK
                gain = gains.of(sketch).seconds - now
                if gain <= (best.gain if best else 0.0) or rooms.may_hold(sketch):
                    continue
                if rooms.is_new(sketch) and rooms.has_bytes(sketch):
                    best = Wish(gain, place, sketch)
            draft.put_back(gone)
            draft.timeline.back_to(start)
            self.left -= _FIND_WORK * rooms.asked
            self._pay()
            if best is not None:
                wishes.append(best)
        draft.timeline.forget()
        wishes.sort(key=lambda wish: (-wish.gain, wish.place.position))
        return wishes

    def _done(self) -> float:
        """Work that was done so far on the draft, in boundaries."""
        layout = self._draft.layout
        chunks = _PASS_WORK * layout.passed + _PRICE_WORK * layout.priced
        return self._draft.timeline.work + chunks

    def _pay(self) -> None:
        work = self._done()
        self.left -= work - self._work
        self._work = work

    def _replan(
        self,
        place: FreePlace,
        now: float,
        wishes: list[tuple[float, Sketch]] | None = None,
        around: tuple[int, int] | None = None,
    ) -> float:
        """Give a value the best sketch that fits; the time then, `now` if none is.

        The change is noted. Sketches without room go to `wishes`, with what their
        accesses gain; sketches that leave room in the steps `around` are tried too.
        Those are not tried that are too slow whatever is waited for.
        """
        draft, timeline = self._draft, self._draft.timeline
        gone = draft.lift(place.position)
        bare = timeline.bookmark()
        steps, busy = timeline.least()
        gains = Gains(timeline, place)
        rooms = _Rooms(draft.layout, place)
        best, best_made = now * LESS, None
        for sketch in self._proposer.sketches(place, around):
            if self.left <= 0:
                break
            self.left -= _SKETCH_WORK
            gain = gains.of(sketch)
            if steps - gain.seconds >= best or busy - gain.relief >= best:
                continue
            came = None
            if rooms.may_hold(sketch):
                made = allocations_of(place, sketch)
                self.left -= _TRIAL_WORK
                came = draft.put(made, place.size)
            if came is None:
                if wishes is not None and rooms.is_new(sketch):
                    wishes.append((gain.seconds, sketch))
                continue
            seconds = timeline.run()
            self._pay()
            draft.take_out(came)
            timeline.back_to(bare)
            if seconds < best:
                best, best_made = seconds, made
        self.left -= _FIND_WORK * rooms.asked
        self._pay()
        if best_made is None:
            draft.put_back(gone)
            return now
        came = draft.put(best_made, place.size)
        assert came is not None
        self._changes.append(Change(place.position, gone, came))
        return best

    # -- making room -----------------------------------------------------------------

    def _make_room(self, place: FreePlace, sketch: Sketch, gain: float) -> float:
        """Put a sketch where others have to go, and decide those anew; the time.

        Those that go must lose less than the sketch gains.
        """
        draft, timeline = self._draft, self._draft.timeline
        made = allocations_of(place, sketch)
        gone = draft.lift(place.position)
        pushed = self._in_the_way(place, made, gain)
        if pushed is None:
            draft.put_back(gone)
            return math.inf
        for other in pushed:
            free = self._free[other]
            left = draft.lift(other)
            plain = draft.put(allocations_of(free, Sketch()), free.size)
            assert plain is not None
            self._changes.append(Change(other, left, plain))
        came = draft.put(made, place.size)
        if came is None:
            draft.undo(self._changes)
            self._changes = []
            draft.put_back(gone)
            return math.inf
        self._changes.append(Change(place.position, gone, came))
        found = timeline.run()
        self._pay()
        for other, around in pushed.items():
            found = self._replan(self._free[other], found, around=around)
        return found

    def _in_the_way(
        self, place: FreePlace, made: Sequence[Allocation], wanted: float
    ) -> dict[Position, tuple[int, int]] | None:
        """Values that have to go, with the steps in which they do; None: too dear."""
        draft = self._draft
        pushed: dict[Position, tuple[int, int]] = {}
        for allocation in made:
            if not allocation.is_alternate:
                continue
            start, end = allocation.start, allocation.end
            self.left -= _MAKE_WORK
            price = partial(self._price, start, end)
            room = draft.layout.make(start, end, place.size, price, _MOST)
            self._pay()
            if room is None or room.cost >= wanted:
                return None
            for number in room.taken_by:
                pushed[draft.allocations[number].position] = (start, end)
        return pushed if len(pushed) <= _EVICTED else None

    def _price(self, start: int, end: int, number: int) -> float:
        """Seconds lost at least if an allocation goes from steps [start, end].

        Infinite if it must stay.
        """
        allocation = self._draft.allocations[number]
        place = self._free.get(allocation.position)
        if place is None or allocation.value < 0:
            return math.inf
        accesses, runs = self._draft.timeline.accesses, self._draft.timeline.runs
        total = 0.0
        inside = {use for use in allocation.uses if start <= use.step <= end}
        if inside:
            for item in place.uses:
                if item.use in inside and item.size:
                    step = item.use.step
                    total -= accesses.gain(step, -item.size, 0.0) * runs[step]
        step = place.step
        if not allocation.is_copy_like and start <= step <= end:
            total -= accesses.gain(step, 0.0, -place.written) * runs[step]
        return total


class _Rooms:
    """Whether sketches of one place may find room, each question asked once."""

    __slots__ = ("_answers", "_layout", "_place", "_seen", "asked")

    def __init__(self, layout: Layout, place: FreePlace) -> None:
        self._layout = layout
        self._place = place
        self._answers: dict[tuple[int, int], bool] = {}
        self._seen: set[tuple[tuple[int, int], ...]] = set()
        self.asked = 0

    def _stays(self, sketch: Sketch) -> tuple[tuple[int, int], ...]:
        """Steps in which it takes room, however early its fetches start."""
        stays = [(fetch.first, fetch.last) for fetch in sketch.fetches]
        if sketch.stay is not None:
            stays.append((self._place.step, max(self._place.step, sketch.stay)))
        return tuple(stays)

    def may_hold(self, sketch: Sketch) -> bool:
        """Whether there is room while it is needed at least."""
        for stay in self._stays(sketch):
            known = self._answers.get(stay)
            if known is None:
                self.asked += 1
                offset = self._layout.find(*stay, self._place.size)
                known = self._answers[stay] = offset is not None
            if not known:
                return False
        return True

    def has_bytes(self, sketch: Sketch) -> bool:
        """Whether there are bytes enough while it is needed, in pieces or not."""
        stays = self._stays(sketch)
        self.asked += len(stays)
        return all(self._layout.has_bytes(*stay, self._place.size) for stay in stays)

    def is_new(self, sketch: Sketch) -> bool:
        """Whether no sketch with the same stays was asked about here before."""
        stays = self._stays(sketch)
        if stays in self._seen:
            return False
        self._seen.add(stays)
        return True
