"""Large neighbourhoods: never slower, everything taken back, optima that are near."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from assignment.sketch import SMALL
from assignment.sketch import Sketch as Program
from msa.assignment.algorithm import run_greedy
from msa.assignment.options import Options
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import free_places
from msa.assignment.search.improve import Improver
from msa.assignment.search.shake import shake


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Operations on one or two earlier values, in half a dozen sizes of memory."""
    capacity = 16 * draw(st.integers(1, 4))
    program = Program(replace(SMALL, capacity=capacity, alignment=8))
    program.parameter("p", 16)
    program.parameter("q", 16)
    for step in range(2, draw(st.integers(5, 14))):
        operands = draw(st.lists(st.integers(0, step - 1), min_size=1, max_size=2))
        program.op(f"v{step}", tuple(dict.fromkeys(operands)), 16)
    return program.problem()


def begin(problem: Problem) -> tuple[Draft, Improver]:
    result = run_greedy(problem, Options())
    capacity = problem.machine.capacity
    draft = Draft(problem, result.allocations, capacity, 8)
    free = free_places(problem, capacity, result.allocations)
    return draft, Improver(problem, draft, free)


@settings(max_examples=60, deadline=None)
@given(problem=problems(), seed=st.integers(0, 3))
def test_shaking_is_never_slower_and_its_time_is_true(
    problem: Problem, seed: int
) -> None:
    draft, improver = begin(problem)
    improver.run(5_000.0)
    settled = improver.seconds
    shake(improver, random.Random(seed), 20_000.0, 0.0)
    assert improver.seconds <= settled * (1 + 1e-12)
    again = Draft(problem, draft.sequence(), problem.machine.capacity, 8)
    assert abs(again.timeline.seconds - improver.seconds) <= 1e-9 * settled


@settings(max_examples=60, deadline=None)
@given(problem=problems(), seed=st.integers(0, 3))
def test_what_is_taken_back_is_as_it_was(problem: Problem, seed: int) -> None:
    draft, improver = begin(problem)
    improver.run(5_000.0)
    before = dict(draft.allocations)
    chunks = [a.chunk for a in draft.sequence()]
    kept = improver.keep()
    placed = improver.placed()
    improver.clear(placed)
    assert not improver.placed()
    shuffled = [*placed, *(place for _, place in improver.hopeful())]
    random.Random(seed).shuffle(shuffled)
    improver.decide_all(5_000.0, shuffled)
    improver.take_back(kept)
    assert draft.allocations == before
    assert [a.chunk for a in draft.sequence()] == chunks
    again = Draft(problem, draft.sequence(), problem.machine.capacity, 8)
    assert abs(again.timeline.seconds - improver.seconds) <= 1e-9 * improver.seconds
