"""The machine against a fluid model in exact fractions, and loops against unrolling."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.analysis.simulation.engine import (
    DONE,
    ENTER,
    LEAVE,
    RUN,
    START,
    Event,
    run,
)

BANDWIDTH = 4.0


def fluid(events: list[Event]) -> tuple[Fraction, Fraction]:
    """Seconds and stall of straight-line events: copies as fluids, piece by piece."""
    queues: list[list[list[object]]] = [[], []]
    clock = stall = Fraction(0)

    def advance(seconds: Fraction | None, until: int | None) -> Fraction:
        """Let copies flow for so long, or until a copy is gone; the time taken."""
        taken = Fraction(0)
        while any(queues):
            if until is not None and all(c != until for q in queues for c, _ in q):
                break
            if seconds is not None and taken == seconds:
                break
            flowing = [queue for queue in queues if queue]
            rate = Fraction(BANDWIDTH) / len(flowing)
            piece = min(Fraction(queue[0][1]) for queue in flowing) / rate  # type: ignore[call-overload]
            if seconds is not None:
                piece = min(piece, seconds - taken)
            for queue in flowing:
                queue[0][1] = queue[0][1] - piece * rate  # type: ignore[operator]
                if queue[0][1] == 0:
                    queue.pop(0)
            taken += piece
        return taken

    for event in events:
        if event.kind == RUN:
            clock += Fraction(event.seconds)
            advance(Fraction(event.idle), None)
        elif event.kind == START:
            queues[event.direction].append([event.copy, Fraction(event.amount)])
        elif event.kind == DONE:
            waited = advance(None, event.copy)
            clock += waited
            stall += waited
    return clock, stall


def unroll(events: list[Event]) -> list[Event]:
    """The same program without loops; copies of every trip get names of their own."""
    out: list[Event] = []
    fresh = 1000

    def expand(part: list[Event], names: dict[int, int]) -> None:
        nonlocal fresh
        i = 0
        while i < len(part):
            event = part[i]
            if event.kind == ENTER:
                depth, j = 1, i + 1
                while depth:
                    depth += (part[j].kind == ENTER) - (part[j].kind == LEAVE)
                    j += 1
                for _ in range(int(event.amount)):
                    expand(part[i + 1 : j - 1], dict(names))
                i = j
                continue
            if event.kind == START:
                fresh += 1
                names[event.copy] = fresh
            copy = names.get(event.copy, event.copy)
            out.append(
                Event(
                    event.kind,
                    event.step,
                    event.seconds,
                    event.idle,
                    event.amount,
                    copy,
                    event.direction,
                )
            )
            i += 1

    expand(events, {})
    return out


QUARTERS = st.integers(0, 12).map(lambda n: n / 4)


@st.composite
def programs(draw: st.DrawFn, depth: int = 2) -> list[Event]:
    """Events in which copies that start in a loop end in it."""
    counter = iter(range(10**6))

    def part(level: int) -> list[Event]:
        events: list[Event] = []
        open_copies: list[tuple[int, int]] = []
        for _ in range(draw(st.integers(1, 6))):
            kind = draw(st.sampled_from("rrssd" + ("l" if level else "")))
            step = next(counter)
            if kind == "r":
                seconds = draw(QUARTERS)
                idle = min(seconds, draw(QUARTERS))
                events.append(Event(RUN, step, seconds, idle))
            elif kind == "s":
                direction = draw(st.integers(0, 1))
                amount = float(draw(st.integers(1, 40)))
                events.append(
                    Event(START, step, amount=amount, copy=step, direction=direction)
                )
                open_copies.append((step, direction))
            elif kind == "d" and open_copies:
                copy, direction = open_copies.pop(
                    draw(st.integers(0, len(open_copies) - 1))
                )
                events.append(Event(DONE, step, copy=copy, direction=direction))
            elif kind == "l":
                trips = float(draw(st.integers(0, 6)))
                inner = part(level - 1)
                events += [
                    Event(ENTER, step, amount=trips),
                    *inner,
                    Event(LEAVE, next(counter)),
                ]
        for copy, direction in open_copies:
            events.append(Event(DONE, next(counter), copy=copy, direction=direction))
        return events

    return part(depth)


@given(programs(depth=0))
def test_copies_flow_like_fluids(events: list[Event]) -> None:
    steps = max((e.step for e in events), default=0) + 1
    result = run(events, steps, BANDWIDTH)
    clock, stall = fluid(events)
    assert result.seconds == pytest.approx(float(clock), rel=1e-9, abs=1e-9)
    assert result.stall == pytest.approx(float(stall), rel=1e-9, abs=1e-9)


@given(programs())
def test_a_loop_is_its_trips_one_after_another(events: list[Event]) -> None:
    steps = max((e.step for e in events), default=0) + 1
    result = run(events, steps, BANDWIDTH)
    flat = unroll(events)
    clock, stall = fluid(flat)
    assert result.seconds == pytest.approx(float(clock), rel=1e-9, abs=1e-9)
    assert result.stall == pytest.approx(float(stall), rel=1e-9, abs=1e-9)
    by_step: dict[int, float] = run(flat, steps, BANDWIDTH).stalls
    assert set(result.stalls) >= {s for s, t in by_step.items() if t > 1e-9}
    for step, time in by_step.items():
        assert result.stalls.get(step, 0.0) == pytest.approx(time, rel=1e-9, abs=1e-9)


def test_millions_of_trips_are_counted_not_run() -> None:
    events = [
        Event(START, 0, amount=1e6, copy=0),
        Event(ENTER, 1, amount=1e9),
        Event(RUN, 1, 1.0, 0.001),
        Event(START, 2, amount=4.0, copy=2, direction=1),
        Event(RUN, 3, 1.0, 0.5),
        Event(DONE, 4, copy=2, direction=1),
        Event(LEAVE, 5),
        Event(DONE, 6, copy=0),
    ]
    result = run(events, 7, BANDWIDTH)
    assert result.seconds > 2e9
    assert result.stalls[4] > 0.0
    assert 6 not in result.stalls  # it has long landed
