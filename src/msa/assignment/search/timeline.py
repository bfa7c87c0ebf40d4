"""Modelled time of a draft, kept up to date while allocations come and go.

The same figure as `Estimator` gives, but a change costs only what it touches: steps
between two places where copies start or end pass at once (prefix sums of seconds and
of idle memory time), runs resume from the last mark before the change, and stop at the
first mark after it where the machine is as it was. From one place that changes to the
next they jump likewise.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Set
from itertools import accumulate
from typing import Final, NamedTuple

from msa.analysis.simulation.machine import (
    TO_ALTERNATE,
    TO_DEFAULT,
    InFlight,
    Machine,
    Trips,
)
from msa.assignment.allocation import Allocation, CopyAllocation, SlicedCopyAllocation
from msa.assignment.copy_times import done_at, started_after
from msa.assignment.estimate import Loop, loops_of
from msa.assignment.problem import Problem
from msa.assignment.search.accesses import Accesses

_SPACING: Final = 8
"""Boundaries with copies between two marks."""

_KEPT: Final = 16
"""Steps whose sums and marks take as long to keep as passing a boundary."""

_PARTS: Final = 1 << 20
"""More than the slices of a copy."""

_SAME_BYTES: Final = 1e-3
"""Copies in flight count as equal if no more bytes differ."""


class _Event(NamedTuple):
    """Start or end of a copy, in the order in which they happen at one boundary.

    `asked` is the boundary that the plan names, and `boundary` where it happens. What a
    start moves, in bytes, is `amount` in each run, and `moved` in all.
    """

    asked: int
    phase: int
    evictions_first: int
    done: int
    start: int
    number: int
    part: int
    ends: bool
    amount: float
    boundary: int
    direction: int
    copy: int
    moved: float


class _Mark(NamedTuple):
    """State of the machine when a boundary outside loops is reached."""

    boundary: int
    clock: float
    in_flight: InFlight


class _Bookmark(NamedTuple):
    low: int
    high: int
    touched: dict[int, None]
    moved: dict[int, None]


class _Node:
    """A loop (or the program) with the loops directly inside."""

    __slots__ = ("inner", "loop")

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.inner: list[_Node] = []


class Timeline:
    """Modelled time of a set of allocations, each named by a number.

    Boundary `k` lies right before step `k`; copies start and end there.

    Attributes:
        seconds: of the whole program, as of the last call of `run` or `commit`.
        accesses: bytes that steps move fast.
        rate: bytes per second that copies move.
        runs: per step, how often it runs.
        stalls: step → seconds waited there, over all its runs, as of `commit`.
        work: boundaries passed so far in all runs, and what keeping changes takes.
    """

    def __init__(self, problem: Problem, dead: Set[int] = frozenset()) -> None:
        self._problem = problem
        machine = problem.machine
        self.rate = machine.default_bandwidth * machine.copy_scaling
        self.accesses = Accesses(problem, dead)
        self._tree = _tree(problem)
        self.runs = _runs(problem)
        self._events: dict[int, list[_Event]] = {}
        self._places: list[int] = []
        self._of_copy: dict[int, list[_Event]] = {}
        self._step_seconds = [0.0] * problem.end
        self._step_idle = [0.0] * problem.end
        self._low, self._high = 0, problem.end
        self._touched: dict[int, None] = dict.fromkeys(range(problem.end))
        self._moved: dict[int, None] = {}
        self._stops: list[int] = []
        self._shift: list[tuple[int, float, float]] = []
        self._elapsed: list[float] = []
        self._idle: list[float] = []
        self._marks: list[_Mark] = [_Mark(0, 0.0, ((), ()))]
        self._made: list[_Mark] | None = None
        self._committed = 0.0
        self._least = (0.0, 0.0)
        self._copied = 0.0
        self.stalls: dict[int, float] = {}
        self.work = 0
        self.seconds = 0.0
        self.commit()

    # -- changing --------------------------------------------------------------------

    def add(self, number: int, allocation: Allocation) -> None:
        """Let an allocation take part; `number` orders those that are otherwise equal."""
        self._touch_steps(self.accesses.move(allocation, 1.0))
        if not allocation.is_copy_like:
            return
        rows = self._of_copy[number] = self._copy_events(number, allocation)
        for event in rows:
            self._copied += event.moved
            self._moved[event.boundary] = None
            self._touch(event.boundary)
            row = self._events.get(event.boundary)
            if row is None:
                row = self._events[event.boundary] = []
                insort(self._places, event.boundary)
            insort(row, event)

    def remove(self, number: int, allocation: Allocation) -> None:
        """Take an allocation back that was added under that number."""
        self._touch_steps(self.accesses.move(allocation, -1.0))
        for event in self._of_copy.pop(number, ()):
            self._copied -= event.moved
            self._moved[event.boundary] = None
            self._touch(event.boundary)
            row = self._events[event.boundary]
            row.remove(event)
            if not row:
                del self._events[event.boundary]
                del self._places[bisect_left(self._places, event.boundary)]

    def _copy_events(self, number: int, allocation: Allocation) -> list[_Event]:
        """What happens of a copy, one event after another."""
        direction = TO_ALTERNATE if allocation.is_alternate else TO_DEFAULT
        if isinstance(allocation, CopyAllocation):
            size = float(self._problem.values[allocation.value].size)
            rows = [(allocation.start_after, size)]
        elif isinstance(allocation, SlicedCopyAllocation):
            rows = [(s.start_after, float(s.chunk.size)) for s in allocation.slices]
        else:
            return []
        done = allocation.done_before
        step = allocation.position.step
        end = done_at(self._problem, done, step)
        found = []
        for part, (asked, size) in enumerate(rows):
            start = started_after(self._problem, asked, step)
            phase = 0 if start + 1 == done else 1
            key = (-direction, done, asked, number, part)
            copy = number * _PARTS + part
            at = (start + 1, direction, copy, size * self.runs[step])
            found.append(_Event(start + 1, phase, *key, False, size, *at))
            at = (end, direction, copy, 0.0)
            found.append(_Event(done, 0, *key, True, size, *at))
        return found

    def _touch(self, boundary: int) -> None:
        if boundary < self._low:
            self._low = boundary
        if boundary > self._high:
            self._high = boundary

    def _touch_steps(self, steps: Iterable[int]) -> None:
        for step in steps:
            self._touched[step] = None
            self._touch(step)
            self._touch(step + 1)

    def bookmark(self) -> _Bookmark:
        """What has been touched since the last commit."""
        return _Bookmark(self._low, self._high, dict(self._touched), dict(self._moved))

    def back_to(self, bookmark: _Bookmark) -> None:
        """All changes made since the bookmark have been taken back."""
        self._low, self._high, touched, moved = bookmark
        self._touched = dict(touched)
        self._moved = dict(moved)

    # -- steps -----------------------------------------------------------------------

    def _changes(self) -> list[tuple[int, float, float]]:
        """Touched steps with the seconds and idle seconds that were added to them."""
        found = []
        for step in self._touched:
            seconds, idle = self.accesses.cost(step)
            more, freer = (
                seconds - self._step_seconds[step],
                idle - self._step_idle[step],
            )
            if more or freer:
                found.append((step, more, freer))
        found.sort()
        return found

    def _between(self, first: int, last: int) -> tuple[float, float]:
        """Seconds and idle seconds of steps [first, last), each once."""
        seconds = self._elapsed[last] - self._elapsed[first]
        idle = self._idle[last] - self._idle[first]
        shift = self._shift
        if shift and shift[0][0] < last and first <= shift[-1][0]:
            for step, more, freer in shift:
                if first <= step < last:
                    seconds += more
                    idle += freer
        return seconds, idle

    # -- running ---------------------------------------------------------------------

    def run(self) -> float:
        """Seconds with the changes made since `commit`; nothing is kept."""
        self._shift = self._changes()
        self._stops = sorted({step for step, _, _ in self._shift}.union(self._moved))
        same, clock = self._simulate(self._mark_before(self._low))
        if same is not None:
            clock += self._committed - self._marks[same].clock
        self.seconds = clock
        return clock

    def least(self) -> tuple[float, float]:
        """Seconds that steps take, and that default memory is busy, after the changes.

        `run` gives no less than either. Linear in the steps that were touched.
        """
        steps, busy = self._least
        for step, more, freer in self._changes():
            steps += more * self.runs[step]
            busy += (more - freer) * self.runs[step]
        return steps, busy + self._copied / self.rate

    def commit(self) -> float:
        """Keep the changes made since the last commit; seconds with them."""
        changes = self._changes()
        steps, busy = self._least
        for step, more, freer in changes:
            self._step_seconds[step] += more
            self._step_idle[step] += freer
            steps += more * self.runs[step]
            busy += (more - freer) * self.runs[step]
        self._least = steps, busy
        if changes or not self._elapsed:
            first = changes[0][0] if self._elapsed else 0
            _sum_up(self._elapsed, self._step_seconds, first)
            _sum_up(self._idle, self._step_idle, first)
        self._shift = []
        number = self._mark_before(self._low)
        stalls, self.stalls = self.stalls, {}
        self._made = self._marks[: number + 1]
        same, clock = self._simulate(number)
        last = self._problem.end + 1
        if same is not None:
            last = self._marks[same].boundary
            later = clock - self._marks[same].clock
            self._made += (
                m._replace(clock=m.clock + later) for m in self._marks[same:]
            )
            clock = self._committed + later
        first = self._marks[number].boundary
        kept = {step: t for step, t in stalls.items() if not first <= step < last}
        self.stalls = {**kept, **self.stalls}
        self._marks, self._made = self._made, None
        self.seconds = self._committed = clock
        self.work += self._problem.end // _KEPT
        self.forget()
        return clock

    def forget(self) -> None:
        """Nothing has changed since `commit`: all that did was taken back."""
        self._touched.clear()
        self._moved.clear()
        self._shift = []
        self._low, self._high = self._problem.end + 1, -1

    def _mark_before(self, boundary: int) -> int:
        return bisect_right(self._marks, boundary, key=lambda m: m.boundary) - 1

    def _simulate(self, number: int) -> tuple[int | None, float]:
        """Run from a mark to one where all is as it was, or to the end; and the clock."""
        mark = self._marks[max(number, 0)]
        machine = Machine(self.rate)
        machine.restore(mark.clock, mark.in_flight)
        same = self._walk(
            machine, self._tree, mark.boundary, self._problem.end, number + 1
        )
        return same, machine.clock

    def _walk(
        self, machine: Machine, node: _Node, place: int, last: int, mark: int
    ) -> int | None:
        """Run steps and boundaries from boundary `place` up to `last`.

        With `mark >= 0` the walk is that of the whole program: marks are made, or the
        number of the one is returned at which all is as it was.
        """
        places, events = self._places, self._events
        at = bisect_left(places, place) if mark >= 0 else bisect_right(places, place)
        stop = bisect_right(places, last)
        loops = node.inner
        inner = bisect_left(loops, place, key=_start)
        marks, made = self._marks, self._made
        begun = at
        while True:
            boundary = places[at] if at < stop else last
            child = loops[inner] if inner < len(loops) else None
            if child is not None and child.loop.start < boundary:
                if child.loop.start > place:
                    machine.run(*self._between(place, child.loop.start))
                self._loop(machine, child)
                place = child.loop.step
                inner += 1
                at = bisect_right(places, place, at, stop)
                continue
            if boundary > place:
                machine.run(*self._between(place, boundary))
                place = boundary
            if at >= stop:
                break
            if mark >= 0:
                while mark < len(marks) and marks[mark].boundary < place:
                    mark += 1
                if mark < len(marks) and marks[mark].boundary == place:
                    onto = self._same_onto(mark)
                    if onto != mark and _equal(
                        marks[mark].in_flight, machine.in_flight()
                    ):
                        self.work += at - begun + 1
                        if onto is None:
                            return mark
                        later = machine.clock - marks[mark].clock
                        _, clock, in_flight = marks[onto]
                        machine.restore(clock + later, in_flight)
                        mark, place = onto, marks[onto].boundary
                        begun = at = bisect_left(places, place, at, stop)
                        inner = bisect_left(loops, place, key=_start)
                        continue
                    mark += 1
                if (
                    made is not None
                    and at % _SPACING == 0
                    and place > made[-1].boundary
                ):
                    made.append(_Mark(place, machine.clock, machine.in_flight()))
            for event in events[place]:
                if event.ends:
                    waited = machine.wait(event.copy, event.direction)
                    if waited and made is not None:
                        self._note(place, waited)
                else:
                    machine.start(event.copy, event.amount, event.direction)
            at += 1
        self.work += at - begun + 1
        return None

    def _same_onto(self, mark: int) -> int | None:
        """The last mark up to which nothing is changed from one on; None: the end.

        While marks are made it is that one, or the end.
        """
        boundary = self._marks[mark].boundary
        if boundary > self._high:
            return None
        if self._made is not None:
            return mark
        at = bisect_left(self._stops, boundary)
        if at == len(self._stops):
            return None
        return self._mark_before(self._stops[at])

    def _note(self, step: int, waited: float) -> None:
        self.stalls[step] = self.stalls.get(step, 0.0) + waited

    def _loop(self, machine: Machine, node: _Node) -> None:
        start, step, count = node.loop
        if count <= 0:
            return
        places = self._places
        if bisect_right(places, start) == bisect_right(places, step):
            seconds, idle = self._once(node)
            machine.run(seconds * count, idle * count)
            return
        trips = Trips(machine, count)
        outer = self.stalls
        while not trips.over:
            self.stalls = {}
            self._walk(machine, node, start, step, -1)
            repeats = trips.end_of_trip()
            for where, stall in self.stalls.items():
                outer[where] = outer.get(where, 0.0) + stall * (1.0 + repeats)
        self.stalls = outer

    def _once(self, node: _Node) -> tuple[float, float]:
        """Seconds and idle seconds of one trip without copies."""
        start, step, _ = node.loop
        seconds, idle = self._between(start, step)
        for child in node.inner:
            more, freer = self._once(child)
            once = self._between(child.loop.start, child.loop.step)
            trips = max(child.loop.trips, 0.0)
            seconds += more * trips - once[0]
            idle += freer * trips - once[1]
        return seconds, idle

    # -- asking ----------------------------------------------------------------------

    @property
    def idle(self) -> list[float]:
        """Per boundary, idle seconds of default memory before it, loops entered once."""
        return self._idle

    @property
    def elapsed(self) -> list[float]:
        """Per boundary, seconds of the steps before it, without waits, loops once."""
        return self._elapsed


def _start(node: _Node) -> int:
    return node.loop.start


def _sum_up(sums: list[float], terms: list[float], first: int) -> None:
    """Make the sums of the first 0, 1, … terms anew from number `first` on."""
    start = sums[first] if sums else 0.0
    sums[first:] = accumulate(terms[first:], initial=start)


def _equal(a: InFlight, b: InFlight) -> bool:
    return all(
        len(x) == len(y)
        and all(
            c == d and abs(left - rest) <= _SAME_BYTES
            for (c, left), (d, rest) in zip(x, y, strict=True)
        )
        for x, y in zip(a, b, strict=True)
    )


def _runs(problem: Problem) -> list[float]:
    """Per step, how often the loops around it run it."""
    found = [1.0] * problem.end
    for start, step, trips in loops_of(problem):
        for inside in range(start, step):
            found[inside] *= max(trips, 0.0)
    return found


def _tree(problem: Problem) -> _Node:
    root = _Node(Loop(-1, problem.end, 1.0))
    stack = [root]
    for loop in sorted(loops_of(problem), key=lambda x: (x.start, -x.step)):
        while stack[-1].loop.step < loop.step:
            stack.pop()
        node = _Node(loop)
        stack[-1].inner.append(node)
        stack.append(node)
    return root
