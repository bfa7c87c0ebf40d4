"""The timed flow of a result is that of events written down one by one."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import msa
from msa.analysis.simulation.engine import (
    DONE,
    ENTER,
    LEAVE,
    RUN,
    START,
    Event,
    Run,
    run,
)
from msa.analysis.simulation.machine import TO_ALTERNATE, TO_DEFAULT
from msa.assignment.allocation import Allocation, CopyAllocation, SlicedCopyAllocation
from msa.assignment.estimate import FREE, Estimator, Flow, bytes_of_places, loops_of
from msa.assignment.problem import Problem

DATA = Path(__file__).parents[1] / "data"
NAMES = ("ring_buffer_loop", "nested_while", "mlp_forward", "collectives_zoo")


def plain_run(problem: Problem, allocations: list[Allocation]) -> Run:
    """The run of a result, step by step from the definitions."""
    machine = problem.machine
    sizes = bytes_of_places(problem)
    read = [0.0] * problem.end
    written = [0.0] * problem.end
    for allocation in allocations:
        if not allocation.is_alternate or allocation.kind in ("scoped", "window"):
            continue
        for use in allocation.uses:
            read[use.step] += sizes.get(use, 0.0)
        if not allocation.is_copy_like:
            written[allocation.position.step] += sizes.get(allocation.position, 0.0)
    loops = loops_of(problem)
    between = plain_copies(problem, allocations)
    events: list[Event] = []
    for step in range(-1, problem.end):
        if step >= 0:
            events += (
                Event(ENTER, step, amount=loop.trips)
                for loop in reversed(loops)
                if loop.start == step
            )
            if problem.opcodes[step] not in FREE:
                total = max(problem.total_bytes[step], 0.0)
                slow = max(total - read[step] - written[step], 0.0)
                slow /= machine.default_bandwidth
                memory = (
                    read[step] / machine.alternate_read_bandwidth
                    + written[step] / machine.alternate_write_bandwidth
                    + slow
                )
                seconds = max(problem.compute_seconds[step], memory)
                events.append(Event(RUN, step, seconds, seconds - slow))
            if any(loop.step == step for loop in loops):
                events.append(Event(LEAVE, step))
        events += between.get(step + 1, ())
    rate = machine.default_bandwidth * machine.copy_scaling
    return run(events, problem.end + 1, rate)


def plain_copies(
    problem: Problem, allocations: list[Allocation]
) -> dict[int, list[Event]]:
    """Starts and ends of copies per step before which they happen."""
    rows = []
    for allocation in allocations:
        direction = TO_ALTERNATE if allocation.is_alternate else TO_DEFAULT
        own = problem.region_of[allocation.position.step]
        if isinstance(allocation, CopyAllocation):
            size = float(problem.values[allocation.value].size)
            done = allocation.done_before
            rows.append((done, allocation.start_after, direction, size, own))
        elif isinstance(allocation, SlicedCopyAllocation):
            done = allocation.done_before
            rows += (
                (done, s.start_after, direction, float(s.chunk.size), own)
                for s in allocation.slices
            )
    # Evictions are scheduled before prefetches, each by (end, start).
    rows.sort(key=lambda row: (-row[2], row[0], row[1]))
    between: dict[int, list[tuple[int, int, int, Event]]] = {}
    for number, (done, start, direction, size, own) in enumerate(rows):
        start = later_own(problem, start, own)
        # Between two steps, ends come before starts; but an end needs its start.
        begun = Event(START, max(start, 0), 0.0, 0.0, size, number, direction)
        late = int(start + 1 != done)
        between.setdefault(start + 1, []).append((start + 1, late, number, begun))
        end = Event(DONE, done, copy=number, direction=direction)
        place = before_called(problem, done, own)
        between.setdefault(place, []).append((done, 0, number, end))
    for row in between.values():
        row.sort(key=lambda item: (*item[:3], item[3].kind))
    return {place: [event for *_, event in row] for place, row in between.items()}


def enclosing(problem: Problem, step: int) -> list[int]:
    """The region of a step and those around it."""
    regions = [problem.region_of[step]]
    while problem.regions[regions[-1]].caller >= 0:
        regions.append(problem.region_of[problem.regions[regions[-1]].caller])
    return regions


def later_own(problem: Problem, step: int, own: int) -> int:
    """The first step of a region from a step on that lies inside it."""
    if not 0 <= step < problem.end or own not in enclosing(problem, step):
        return step
    while problem.region_of[step] != own:
        step += 1
    return step


def before_called(problem: Problem, done: int, own: int) -> int:
    """Where a copy ends: before all that the next step of its computation runs."""
    if done >= problem.end or own not in enclosing(problem, done):
        return done
    while done > 0 and problem.region_of[done - 1] != own:
        if own not in enclosing(problem, done - 1):
            break
        done -= 1
    return done


def same(a: Run, b: Run) -> bool:
    """Whether two runs are equal to the last bit."""
    return (a.seconds, a.stall, a.stalls) == (b.seconds, b.stall, b.stalls) and all(
        x == y or (math.isnan(x) and math.isnan(y))
        for x, y in zip(a.starts, b.starts, strict=True)
    )


@pytest.fixture(scope="module", params=NAMES)
def plan(request: pytest.FixtureRequest) -> tuple[Problem, list[Allocation]]:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=4 << 20)
    path = next(DATA.glob(f"{request.param}.opt.hlo*"))
    made = msa.assign(msa.load(path), target)
    return made.problem, list(made.result.allocations)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_flow_is_timed_as_its_events_written_down(
    plan: tuple[Problem, list[Allocation]], data: st.DataObject
) -> None:
    problem, made = plan
    numbers = st.sets(st.integers(0, len(made) - 1), max_size=len(made))
    allocations = [copy.copy(made[n]) for n in sorted(data.draw(numbers))]
    flow = Flow.of(Estimator(problem), allocations)
    copies = [a for a in allocations if isinstance(a, CopyAllocation)]
    for moved in copies:  # times are read anew on each run
        if data.draw(st.booleans()):
            moved.start_after = data.draw(st.integers(-1, problem.end - 1))
            moved.done_before = data.draw(
                st.integers(max(0, moved.start_after), problem.end)
            )
    assert same(flow.run(), plain_run(problem, allocations))
    gone = {a for a in copies if data.draw(st.booleans())}
    left = [a for a in allocations if a not in gone]
    assert same(flow.without(gone).run(), plain_run(problem, left))
    again = {a for a in copies if a not in gone and data.draw(st.booleans())}
    last = [a for a in left if a not in again]
    assert same(flow.without(gone).without(again).run(), plain_run(problem, last))
