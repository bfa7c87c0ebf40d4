"""The incremental timeline gives what the estimator gives, after any changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import msa
from msa.assignment.allocation import Allocation
from msa.assignment.dead_steps import DeadSteps
from msa.assignment.estimate import Estimator
from msa.assignment.problem import Problem
from msa.assignment.search.timeline import Timeline
from msa.testing import random_module

DATA = Path(__file__).parents[2] / "data"
NAMES = ("ring_buffer_loop", "nested_while", "mlp_forward", "collectives_zoo")


def planned(name: str, mib: int = 4) -> tuple[Problem, list[Allocation]]:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=mib << 20)
    path = next(DATA.glob(f"{name}.opt.hlo*"))
    plan = msa.assign(msa.load(path), target)
    return plan.problem, list(plan.result.allocations)


@pytest.fixture(scope="module", params=NAMES)
def plan(request: pytest.FixtureRequest) -> tuple[Problem, list[Allocation]]:
    return planned(request.param)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_changes_are_timed_as_the_estimator_times_all(
    plan: tuple[Problem, list[Allocation]], data: st.DataObject
) -> None:
    problem, allocations = plan
    reference = Estimator(problem)
    timeline = Timeline(problem)
    inside: set[int] = set()
    for number, allocation in enumerate(allocations):
        timeline.add(number, allocation)
        inside.add(number)
    timeline.commit()
    for _ in range(data.draw(st.integers(1, 6))):
        flipped = data.draw(
            st.sets(st.integers(0, len(allocations) - 1), min_size=1, max_size=4)
        )
        before, start = timeline.seconds, timeline.bookmark()
        _flip(timeline, allocations, inside, flipped)
        seconds = timeline.run()
        run = reference.run(allocations[n] for n in sorted(inside))
        assert seconds == pytest.approx(run.seconds, rel=1e-9)
        if data.draw(st.booleans()):
            assert timeline.commit() == pytest.approx(run.seconds, rel=1e-9)
            assert sum(timeline.stalls.values()) == pytest.approx(
                run.stall, rel=1e-9, abs=run.seconds * 1e-9
            )
        else:
            _flip(timeline, allocations, inside, flipped)
            timeline.back_to(start)
            assert timeline.run() == pytest.approx(before, rel=1e-9)


def _flip(
    timeline: Timeline,
    allocations: list[Allocation],
    inside: set[int],
    numbers: set[int],
) -> None:
    for number in sorted(numbers):
        if number in inside:
            timeline.remove(number, allocations[number])
        else:
            timeline.add(number, allocations[number])
    inside ^= numbers


def test_one_change_passes_few_boundaries() -> None:
    problem, allocations = planned("gpt2_small_forward", 16)
    timeline = Timeline(problem)
    for number, allocation in enumerate(allocations):
        timeline.add(number, allocation)
    start = timeline.work
    timeline.commit()
    whole = timeline.work - start
    passed = []
    for number, allocation in enumerate(allocations):
        if allocation.is_copy_like:
            start = timeline.work
            timeline.remove(number, allocation)
            timeline.run()
            timeline.add(number, allocation)
            timeline.forget()
            passed.append(timeline.work - start)
    assert len(passed) > 50
    assert sum(passed) / len(passed) < whole / 4


def test_what_lies_between_two_changes_is_jumped_over() -> None:
    problem, allocations = planned("gpt2_small_forward", 16)
    reference, timeline = Estimator(problem), Timeline(problem)
    for number, allocation in enumerate(allocations):
        timeline.add(number, allocation)
    start = timeline.work
    timeline.commit()
    whole = timeline.work - start
    copies = [n for n, a in enumerate(allocations) if a.is_copy_like]
    passed = []
    for first, last in zip(copies[::7], copies[::-7], strict=True):
        if first == last:
            continue
        inside = set(range(len(allocations)))
        start = timeline.work
        _flip(timeline, allocations, inside, {first, last})
        expected = reference.seconds(allocations[n] for n in sorted(inside))
        assert timeline.run() == pytest.approx(expected, rel=1e-9)
        _flip(timeline, allocations, inside, {first, last})
        timeline.forget()
        passed.append(timeline.work - start)
    assert len(passed) > 10
    assert sum(passed) / len(passed) < whole / 3


def planned_at_random(seed: int, capacity: int, strategy: str) -> msa.Assignment:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=capacity)
    return msa.assign(random_module(seed), target, msa.Options(strategy=strategy))


_OF_TUPLES = ("get-tuple-element", "tuple")


def changes_what_is_there(plan: msa.Assignment) -> bool:
    """Whether the plan makes or names tuples, or the program's own copies move bytes.

    Lowering makes a new tuple where something else reads the old one too, and a new
    name of an element keeps what makes the tuple. Estimates know of neither, nor of
    what an allocation's position keeps that nothing read before.
    """
    dead = DeadSteps(plan.problem).of(plan.result.allocations)
    gone = {plan.problem.names[step] for step in dead}
    for computation in plan.module.schedule or ():
        if any(x.name in gone for x in computation.instructions):
            return True
    known = {x.name for x in plan.problem.keys}
    ours = {x for pairs in plan.lowered.copies.values() for pair in pairs for x in pair}
    for computation in plan.module.schedule or ():
        for x in computation.instructions:
            if x.opcode in _OF_TUPLES and x.name not in known:
                return True
            if x.opcode in ("copy-start", "async-start") and x not in ours:
                return True
    return False


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    capacity=st.sampled_from((512, 3000, 16384)),
    strategy=st.sampled_from(("greedy", "search")),
)
def test_random_programs_are_timed_as_they_are_simulated(
    seed: int, capacity: int, strategy: str
) -> None:
    """With loops, branches, calls, dead code and asynchronous operations."""
    try:
        plan = planned_at_random(seed, capacity, strategy)
    except msa.CapacityError:
        return
    problem, allocations = plan.problem, plan.result.allocations
    timeline = Timeline(problem, DeadSteps(problem).of(allocations))
    for number, allocation in enumerate(allocations):
        timeline.add(number, allocation)
    simulated = msa.simulate(plan.module, plan.target).elapsed_seconds
    assert simulated == plan.estimate.after_seconds
    assert timeline.commit() == pytest.approx(
        Estimator(problem).seconds(allocations), rel=1e-12
    )
    if not changes_what_is_there(plan):
        assert timeline.seconds == pytest.approx(simulated, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_is_timed_as_it_is_simulated(name: str) -> None:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=4 << 20)
    plan = msa.assign(msa.load(next(DATA.glob(f"{name}.opt.hlo*"))), target)
    timeline = Timeline(plan.problem)
    for number, allocation in enumerate(plan.result.allocations):
        timeline.add(number, allocation)
    assert timeline.commit() == pytest.approx(plan.estimate.after_seconds, rel=1e-12)
