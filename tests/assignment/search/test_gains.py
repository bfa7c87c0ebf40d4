"""What bounds the time of a sketch before it is tried, against trying it."""

from __future__ import annotations

from pathlib import Path

import pytest

import msa
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import free_places
from msa.assignment.search.gains import Gains
from msa.assignment.search.improve import Improver
from msa.assignment.search.proposals import Proposer
from msa.assignment.search.sketches import allocations_of
from msa.testing import random_module

DATA = Path(__file__).parents[2] / "data"
NAMES = ("ring_buffer_loop", "nested_while", "mlp_forward", "collectives_zoo")


def drafted(module: msa.Module, capacity: int, more: int = 1) -> tuple[Problem, Draft]:
    """The draft of a greedy plan, in so many times the room that it was made for."""
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=capacity)
    plan = msa.assign(module, target)
    alignment = plan.problem.machine.alignment
    return plan.problem, Draft(
        plan.problem, plan.result.allocations, capacity * more, alignment
    )


def corpus(name: str) -> msa.Module:
    return msa.load(next(DATA.glob(f"{name}.opt.hlo*")))


@pytest.mark.parametrize("name", NAMES)
def test_a_sketch_changes_the_least_times_as_its_gain_says(name: str) -> None:
    problem, draft = drafted(corpus(name), 4 << 20)
    timeline, proposer = draft.timeline, Proposer(problem, draft.timeline)
    free = free_places(problem, 4 << 20, draft.allocations.values())
    checked = 0
    for place in list(free.values())[:60]:
        start = timeline.bookmark()
        gone = draft.lift(place.position)
        steps, busy = timeline.least()
        gains = Gains(timeline, place)
        for sketch in proposer.sketches(place):
            came = draft.put(allocations_of(place, sketch), place.size)
            if came is None:
                continue
            gain = gains.of(sketch)
            least = timeline.least()
            assert least[0] == pytest.approx(steps - gain.seconds, rel=1e-9)
            assert least[1] == pytest.approx(busy - gain.relief, rel=1e-9)
            assert timeline.run() >= max(least) * (1 - 1e-9)
            draft.take_out(came)
            checked += 1
        draft.put_back(gone)
        timeline.back_to(start)
    assert checked > 20


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_of_a_random_program_takes_less_than_the_least(seed: int) -> None:
    _, draft = drafted(random_module(seed, size=50), 4096)
    timeline = draft.timeline
    for number in list(draft.allocations):
        draft.take(number)
        assert timeline.run() >= max(timeline.least()) * (1 - 1e-9)
        assert timeline.commit() >= max(timeline.least()) * (1 - 1e-9)


def test_what_is_complete_does_not_get_better_with_more_room() -> None:
    complete = 0
    for seed in range(12):
        module, capacity = random_module(seed, size=40), 4096
        problem, draft = drafted(module, capacity)
        free = free_places(problem, capacity, draft.allocations.values())
        improver = Improver(problem, draft, free)
        improver.run(1e6)
        if not improver.is_complete():
            continue
        complete += 1
        wide = Draft(problem, draft.sequence(), 8 * capacity, 1)
        again = Improver(problem, wide, free)
        again.run(1e6)
        assert again.seconds == pytest.approx(improver.seconds, rel=1e-9)
    assert complete > 2


def test_a_value_that_was_decided_in_vain_is_left_alone() -> None:
    problem, draft = drafted(corpus("collectives_zoo"), 4 << 20)
    free = free_places(problem, 4 << 20, draft.allocations.values())
    improver = Improver(problem, draft, free)
    assert improver.run(1e6) > 0
    left, seconds = improver.run(1e6), improver.seconds
    assert improver.settled
    work = draft.timeline.work
    assert improver.run(1e6) >= left
    assert improver.run(1e6) == 1e6
    assert (draft.timeline.work, improver.seconds) == (work, seconds)
