"""The simulated machine: one compute engine and one bandwidth that copies share with it.

Instructions run one after another. While one runs, default memory is busy with that
instruction's own traffic for part of the time; in the rest, queued copies advance
(see `machine`). The end of a copy waits until the copy has landed.

Loops run trip after trip until a trip starts and ends with the same copies in flight:
every later trip is then the same, and is counted without being run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from msa.analysis.simulation.machine import (
    TO_ALTERNATE,
    Machine,
    Trips,
)

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


class Event(NamedTuple):
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


EventRow = tuple[int, int, float, float, float, int, int]
"""An event as a plain tuple."""


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


class _Loop(NamedTuple):
    begin: int
    trips: Trips
    outer: dict[int, float]


def run(events: Sequence[EventRow], step_count: int, copy_bandwidth: float) -> Run:
    """Run a program.

    O(events) per simulated trip. Trips are simulated until nothing changes from one to
    the next; copies that a loop drains a little on every trip are advanced over many
    trips at once.
    """
    machine = Machine(copy_bandwidth)
    starts = [math.nan] * step_count
    stalls: dict[int, float] = {}
    loops: list[_Loop] = []
    bounds = [place for place, event in enumerate(events) if event[0] >= ENTER]
    place = number = 0
    while number < len(bounds):
        bound = bounds[number]
        _run_straight(machine, events[place:bound], starts, stalls)
        kind, step, _, _, amount, _, _ = events[bound]
        if kind == ENTER:
            if starts[step] != starts[step]:  # still NaN
                starts[step] = machine.clock
            if amount > 0:
                loops.append(_Loop(number, Trips(machine, amount), stalls))
                stalls = {}
            else:
                number = _end_of_loop(events, bounds, number)
        else:
            begin, trips, outer = loops[-1]
            repeats = trips.end_of_trip()
            for where, stall in stalls.items():
                outer[where] = outer.get(where, 0.0) + stall * (1.0 + repeats)
            if trips.over:
                loops.pop()
                stalls = outer
            else:
                number, stalls = begin, {}
        place = bounds[number] + 1
        number += 1
    _run_straight(machine, events[place:], starts, stalls)
    return Run(machine.clock, sum(stalls.values(), 0.0), starts, stalls)


def _run_straight(
    machine: Machine,
    events: Sequence[EventRow],
    starts: list[float],
    stalls: dict[int, float],
) -> None:
    """Run events without ends of loops."""
    clock, flying, drain = machine.clock, machine.flying, machine.drain
    for kind, step, seconds, idle, amount, copy, direction in events:
        if starts[step] != starts[step]:  # still NaN
            starts[step] = clock
        if kind == RUN:
            # As `machine.run`, without a call for each instruction.
            clock += seconds
            if flying and idle > 0.0:
                drain(idle)
        elif kind == START:
            machine.start(copy, amount, direction)
        elif copy in flying:
            waited = machine.wait(copy, direction)
            if waited > 0.0:
                clock += waited
                stalls[step] = stalls.get(step, 0.0) + waited
    machine.clock = clock


def _end_of_loop(events: Sequence[EventRow], bounds: Sequence[int], number: int) -> int:
    """The number of the bound that ends the loop that begins at bound `number`."""
    depth = 0
    while True:
        kind = events[bounds[number]][0]
        depth += (kind == ENTER) - (kind == LEAVE)
        if not depth:
            return number
        number += 1
