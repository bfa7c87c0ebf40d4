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
    starts, dones = plain_copies(problem, allocations)
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
        events += dones.get(step + 1, ())
        events += starts.get(step, ())
    rate = machine.default_bandwidth * machine.copy_scaling
    return run(events, problem.end + 1, rate)


def plain_copies(
    problem: Problem, allocations: list[Allocation]
) -> tuple[dict[int, list[Event]], dict[int, list[Event]]]:
    """Start and end events per step after and before which they happen."""
    rows = []
    for allocation in allocations:
        direction = TO_ALTERNATE if allocation.is_alternate else TO_DEFAULT
        if isinstance(allocation, CopyAllocation):
            size = float(problem.values[allocation.value].size)
            done = allocation.done_before
            rows.append((done, allocation.start_after, direction, size))
        elif isinstance(allocation, SlicedCopyAllocation):
            done = allocation.done_before
            rows += (
                (done, s.start_after, direction, float(s.chunk.size))
                for s in allocation.slices
            )
    # Evictions are scheduled before prefetches, each by (end, start).
    rows.sort(key=lambda row: (-row[2], row[0], row[1]))
    starts: dict[int, list[Event]] = {}
    dones: dict[int, list[Event]] = {}
    for number, (done, start, direction, size) in enumerate(rows):
        # Between two steps, ends come before starts; but an end needs its start.
        at = (
            dones.setdefault(done, [])
            if start + 1 == done
            else starts.setdefault(start, [])
        )
        at.append(Event(START, max(start, 0), 0.0, 0.0, size, number, direction))
        end = Event(DONE, done, copy=number, direction=direction)
        dones.setdefault(done, []).append(end)
    return starts, dones


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
