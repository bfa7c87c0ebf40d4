"""The simulated machine: one compute engine and one bandwidth that copies share with it.

Instructions run one after another. While one runs, default memory is busy with that
instruction's own traffic for part of the time; in the rest, queued copies advance.
The end of a copy waits until the copy has landed. Copies of one direction land in the
order in which they started; when both directions have copies queued, each gets half
of the copy bandwidth.

Loops run trip after trip until a trip starts and ends with the same copies in flight:
every later trip is then the same, and is counted without being run.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

RUN: Final = 0
"""Event: an instruction runs (`seconds`, of which `idle` leave the memory free)."""
START: Final = 1
"""Event: a copy of `amount` bytes is queued; `copy` names it."""
DONE: Final = 2
"""Event: wait for `copy`."""
ENTER: Final = 3
"""Event: a loop of `amount` trips begins."""
LEAVE: Final = 4
"""Event: a trip of the innermost loop ends."""

TO_ALTERNATE: Final = 0
TO_DEFAULT: Final = 1

_Queues = tuple[deque[list[float]], deque[list[float]]]


@dataclass(frozen=True, slots=True)
class Event:
    """What happens at one place of the program.

    Attributes:
        kind: one of the constants above.
        step: the step of the flattened schedule that it belongs to.
        seconds, idle: of a run.
        amount: bytes of a copy, or trips of a loop.
        copy: number of the copy that starts or ends.
        direction: `TO_ALTERNATE` or `TO_DEFAULT`.
    """

    kind: int
    step: int
    seconds: float = 0.0
    idle: float = 0.0
    amount: float = 0.0
    copy: int = -1
    direction: int = TO_ALTERNATE


@dataclass(slots=True)
class Run:
    """What a run of a program took.

    Attributes:
        seconds: all of it.
        stall: seconds spent waiting for copies.
        starts: per step, when it first began; NaN if it never did.
        stalls: step → seconds waited there, over all its runs.
    """

    seconds: float
    stall: float
    starts: list[float]
    stalls: dict[int, float]


@dataclass(slots=True)
class _Loop:
    begin: int
    trips: float
    done: float
    clock: float
    in_flight: tuple[tuple[tuple[float, float], ...], ...]
    outer: dict[int, float]


def run(events: Sequence[Event], step_count: int, copy_bandwidth: float) -> Run:
    """Run a program.

    O(events) per simulated trip. Trips are simulated until nothing changes from one to
    the next; copies that a loop drains a little on every trip are advanced over many
    trips at once.
    """
    machine = _Machine(copy_bandwidth, step_count)
    loops: list[_Loop] = []
    place = 0
    while place < len(events):
        event = events[place]
        kind = event.kind
        if kind == RUN:
            machine.compute(event)
        elif kind == START:
            machine.start(event)
        elif kind == DONE:
            machine.wait(event)
        elif kind == ENTER:
            machine.mark(event.step)
            if event.amount <= 0:
                place = _skip(events, place)
                continue
            loops.append(
                _Loop(
                    place,
                    event.amount,
                    0.0,
                    machine.clock,
                    machine.in_flight(),
                    machine.stalls,
                )
            )
            machine.stalls = {}
        elif machine.end_of_trip(loops[-1]):
            loops.pop()
        else:
            place = loops[-1].begin
        place += 1
    return Run(
        machine.clock, sum(machine.stalls.values(), 0.0), machine.starts, machine.stalls
    )


def _skip(events: Sequence[Event], place: int) -> int:
    """One past the end of the loop that begins at `place`."""
    depth = 0
    while True:
        kind = events[place].kind
        depth += (kind == ENTER) - (kind == LEAVE)
        place += 1
        if not depth:
            return place


class _Machine:
    """Clock, copies in flight, and what has been waited for where."""

    __slots__ = ("bandwidth", "clock", "queues", "stalls", "starts")

    def __init__(self, bandwidth: float, step_count: int) -> None:
        self.bandwidth = bandwidth
        self.clock = 0.0
        self.queues: _Queues = (deque(), deque())
        self.starts = [math.nan] * step_count
        self.stalls: dict[int, float] = {}

    def mark(self, step: int) -> None:
        if self.starts[step] != self.starts[step]:  # still NaN
            self.starts[step] = self.clock

    def compute(self, event: Event) -> None:
        self.mark(event.step)
        self.clock += event.seconds
        if event.idle > 0.0 and (self.queues[0] or self.queues[1]):
            self.drain(event.idle)

    def start(self, event: Event) -> None:
        self.mark(event.step)
        if event.amount > 0:
            self.queues[event.direction].append([event.copy, event.amount])

    def wait(self, event: Event) -> None:
        """Advance all copies until this one has landed."""
        self.mark(event.step)
        mine, other = self.queues[event.direction], self.queues[1 - event.direction]
        if not any(entry[0] == event.copy for entry in mine):
            return
        waited = 0.0
        landed = False
        while not landed:
            rate = self.bandwidth / 2 if other else self.bandwidth
            amount = min(mine[0][1], other[0][1]) if other else mine[0][1]
            landed = mine[0][0] == event.copy and mine[0][1] <= amount
            waited += amount / rate
            _advance(mine, amount)
            if other:
                _advance(other, amount)
        self.clock += waited
        if waited > 0.0:
            self.stalls[event.step] = self.stalls.get(event.step, 0.0) + waited

    def drain(self, seconds: float) -> None:
        """Let copies use idle memory time."""
        read, write = self.queues
        while seconds > 0.0 and (read or write):
            rate = self.bandwidth / 2 if read and write else self.bandwidth
            amount = min(queue[0][1] for queue in self.queues if queue)
            if amount <= rate * seconds:
                seconds -= amount / rate
            else:
                amount, seconds = rate * seconds, 0.0
            for queue in self.queues:
                if queue:
                    _advance(queue, amount)

    def in_flight(self) -> tuple[tuple[tuple[float, float], ...], ...]:
        return tuple(tuple((c, left) for c, left in queue) for queue in self.queues)

    def end_of_trip(self, loop: _Loop) -> bool:
        """Count the trip; whether the loop is over."""
        loop.done += 1.0
        left = loop.trips - loop.done
        after = self.in_flight()
        repeats = left if after == loop.in_flight else 0.0
        if left >= 2.0 and not repeats:
            repeats = self._drainable_trips(loop.in_flight, after, left)
        if repeats:
            self.clock += repeats * (self.clock - loop.clock)
            loop.done += repeats
            left -= repeats
        for step, stall in self.stalls.items():
            loop.outer[step] = loop.outer.get(step, 0.0) + stall * (1.0 + repeats)
        if left <= 0.0:
            self.stalls = loop.outer
            return True
        self.stalls = {}
        loop.clock = self.clock
        loop.in_flight = self.in_flight()
        return False

    def _drainable_trips(
        self,
        before: tuple[tuple[tuple[float, float], ...], ...],
        after: tuple[tuple[tuple[float, float], ...], ...],
        left: float,
    ) -> float:
        """Trips that only drain the first copies by as much as the last trip did.

        They are skipped: the copies advance by that much each.
        """
        repeats = left - 1.0
        drained = [0.0, 0.0]
        for direction in (TO_ALTERNATE, TO_DEFAULT):
            was, now = before[direction], after[direction]
            if [c for c, _ in was] != [c for c, _ in now] or was[1:] != now[1:]:
                return 0.0
            if was:
                drained[direction] = was[0][1] - now[0][1]
            if drained[direction] > 0.0:
                repeats = min(repeats, now[0][1] // drained[direction] - 1.0)
        if repeats < 1.0:
            return 0.0
        for direction in (TO_ALTERNATE, TO_DEFAULT):
            if drained[direction] > 0.0:
                self.queues[direction][0][1] -= repeats * drained[direction]
        return repeats


def _advance(queue: deque[list[float]], amount: float) -> None:
    front = queue[0]
    front[1] -= amount
    if front[1] <= 0.0:
        queue.popleft()
