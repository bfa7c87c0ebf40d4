"""The simulated machine itself: a clock, and two queues of copies on one bandwidth.

While an instruction leaves the memory idle, queued copies advance. Copies of one
direction land in the order in which they started; when both directions have copies
queued, each gets half of the copy bandwidth. How idle time is cut into pieces does not
matter: two stretches have the effect of one as long as both together.
"""

from __future__ import annotations

from collections import deque
from typing import Final

TO_ALTERNATE: Final = 0
TO_DEFAULT: Final = 1

Copies = tuple[tuple[int, float], ...]
"""Copies in flight of one direction: number and bytes left, in order of landing."""

InFlight = tuple[Copies, Copies]


class Machine:
    """Clock and copies in flight; bytes, seconds, bytes/s.

    Every method is O(copies that land), but for states, which are O(copies in flight).

    Attributes:
        bandwidth: of copies.
        clock: seconds since the start.
        flying: how often each copy is queued; a loop may start one again that still
            flies.
    """

    __slots__ = ("_queues", "bandwidth", "clock", "flying")

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth = bandwidth
        self.clock = 0.0
        self._queues: tuple[deque[list[float]], deque[list[float]]] = (deque(), deque())
        self.flying: dict[float, int] = {}

    def run(self, seconds: float, idle: float) -> None:
        """Run instructions; for `idle` of the seconds copies advance."""
        self.clock += seconds
        if idle > 0.0 and (self._queues[0] or self._queues[1]):
            self.drain(idle)

    def start(self, copy: int, amount: float, direction: int) -> None:
        """Queue a copy of `amount` bytes."""
        if amount > 0:
            self._queues[direction].append([copy, amount])
            self.flying[copy] = self.flying.get(copy, 0) + 1

    def wait(self, copy: int, direction: int) -> float:
        """Advance all copies until this one has landed; seconds waited."""
        flying = self.flying
        if copy not in flying:
            return 0.0
        left = flying[copy] - 1
        mine, other = self._queues[direction], self._queues[1 - direction]
        waited = 0.0
        while flying.get(copy, 0) > left:
            if other:
                amount = min(mine[0][1], other[0][1])
                waited += amount / (self.bandwidth / 2)
                self._advance(1 - direction, amount)
            else:
                amount = mine[0][1]
                waited += amount / self.bandwidth
            self._advance(direction, amount)
        self.clock += waited
        return waited

    def drain(self, seconds: float) -> None:
        """Let copies use idle memory time."""
        read, write = self._queues
        while read and write:
            rate = self.bandwidth / 2
            amount = min(read[0][1], write[0][1])
            if amount > rate * seconds:
                read[0][1] -= rate * seconds
                write[0][1] -= rate * seconds
                return
            seconds -= amount / rate
            self._advance(TO_ALTERNATE, amount)
            self._advance(TO_DEFAULT, amount)
            if seconds <= 0.0:
                return
        queue, rate = read or write, self.bandwidth
        while queue and seconds > 0.0:
            front = queue[0]
            amount = front[1]
            if amount > rate * seconds:
                front[1] = amount - rate * seconds
                return
            seconds -= amount / rate
            self._land(queue)

    def _advance(self, direction: int, amount: float) -> None:
        queue = self._queues[direction]
        front = queue[0]
        front[1] -= amount
        if front[1] <= 0.0:
            self._land(queue)

    def _land(self, queue: deque[list[float]]) -> None:
        """The first copy of a queue has all its bytes."""
        copy = queue.popleft()[0]
        left = self.flying.pop(copy) - 1
        if left:
            self.flying[copy] = left

    def in_flight(self) -> InFlight:
        """The copies queued in each direction."""
        read, write = self._queues
        return tuple((int(c), left) for c, left in read), tuple(
            (int(c), left) for c, left in write
        )

    def restore(self, clock: float, in_flight: InFlight) -> None:
        """Go back to a clock and copies in flight."""
        self.clock = clock
        self._queues = (
            deque([c, left] for c, left in in_flight[0]),
            deque([c, left] for c, left in in_flight[1]),
        )
        self.flying.clear()
        for copies in in_flight:
            for copy, _ in copies:
                self.flying[copy] = self.flying.get(copy, 0) + 1


class Trips:
    """The trips of one loop on a machine, run until each is like the one before."""

    __slots__ = ("_clock", "_done", "_in_flight", "_machine", "_trips")

    def __init__(self, machine: Machine, trips: float) -> None:
        self._machine = machine
        self._trips = trips
        self._done = 0.0
        self._clock = machine.clock
        self._in_flight = machine.in_flight()

    @property
    def over(self) -> bool:
        """Whether all trips are done."""
        return self._done >= self._trips

    def end_of_trip(self) -> float:
        """Count the trip just run; how many more like it were counted without a run."""
        machine = self._machine
        self._done += 1.0
        left = self._trips - self._done
        after = machine.in_flight()
        repeats = left if after == self._in_flight else 0.0
        if left >= 2.0 and not repeats:
            repeats = self._drainable(after, left)
        if repeats:
            machine.clock += repeats * (machine.clock - self._clock)
            self._done += repeats
        if not self.over:
            self._clock = machine.clock
            self._in_flight = machine.in_flight()
        return repeats

    def _drainable(self, after: InFlight, left: float) -> float:
        """Trips that only drain the first copies by as much as the last trip did.

        They are skipped: the copies advance by that much each.
        """
        repeats = left - 1.0
        drained = [0.0, 0.0]
        for direction in (TO_ALTERNATE, TO_DEFAULT):
            was, now = self._in_flight[direction], after[direction]
            if [c for c, _ in was] != [c for c, _ in now] or was[1:] != now[1:]:
                return 0.0
            if was:
                drained[direction] = was[0][1] - now[0][1]
            if drained[direction] > 0.0:
                repeats = min(repeats, now[0][1] // drained[direction] - 1.0)
        if repeats < 1.0:
            return 0.0
        machine = self._machine
        machine.restore(
            machine.clock,
            (
                _shortened(after[0], repeats * drained[0]),
                _shortened(after[1], repeats * drained[1]),
            ),
        )
        return repeats


def _shortened(copies: Copies, amount: float) -> Copies:
    if amount <= 0.0:
        return copies
    (first, left), *others = copies
    return ((first, left - amount), *others)
