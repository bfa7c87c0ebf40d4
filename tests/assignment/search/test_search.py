"""Search is valid, deterministic, and between the optimum and greedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from assignment.sketch import SMALL
from assignment.sketch import Sketch as Program
from msa.assignment.algorithm import AllocationResult, run_greedy
from msa.assignment.allocation import Allocation
from msa.assignment.bounds import lower_bound_seconds
from msa.assignment.estimate import Estimator
from msa.assignment.options import Options
from msa.assignment.outcomes import Served
from msa.assignment.problem import Problem
from msa.assignment.refine import refine
from msa.assignment.search import run_search
from msa.assignment.search.free import FreePlace, free_places
from msa.assignment.search.sketches import (
    Fetch,
    Sketch,
    allocations_of,
    first_in_default,
)
from msa.testing import random_module

DATA = Path(__file__).parents[2] / "data"
MIB = 1 << 20


def modules() -> list[str]:
    names = [p.name for p in sorted(DATA.glob("*.opt.hlo"))]
    return [n for n in names if (DATA / n).stat().st_size < 60_000][:6]


@pytest.fixture(scope="module", params=modules())
def module(request: pytest.FixtureRequest) -> msa.Module:
    return msa.load(DATA / request.param)


def plan(module: msa.Module, mib: float, **options: object) -> msa.Assignment:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=int(mib * MIB))
    return msa.assign(module, target, msa.Options(**options))  # type: ignore[arg-type]


def test_never_worse_than_greedy_and_valid(module: msa.Module) -> None:
    for mib in (0.25, 4):
        greedy = plan(module, mib).estimate.after_seconds
        found = plan(module, mib, strategy="search")
        found.verify()
        assert found.estimate.after_seconds <= greedy * (1 + 1e-9)
        assert found.estimate.after_seconds >= found.estimate.lower_bound_seconds


def test_never_worse_than_the_reference_plan(module: msa.Module) -> None:
    """The plan that reproduces the reference algorithm is one of the starts."""
    for mib in (1, 16):
        reference = plan(module, mib, faithful=True).estimate.after_seconds
        found = plan(module, mib, strategy="search").estimate.after_seconds
        assert found <= reference * (1 + 1e-9)


@pytest.mark.parametrize("seed", [7, 8, 18])
def test_never_worse_than_the_reference_plan_where_estimates_fail(seed: int) -> None:
    """Tuples that lowering makes anew, and what is dead then, are not estimated."""
    module = random_module(seed, size=80, vector=5000)
    for mib in (1 / 32, 1):
        reference = plan(module, mib, faithful=True).estimate.after_seconds
        found = plan(module, mib, strategy="search").estimate.after_seconds
        assert found <= reference * (1 + 1e-9)


@pytest.mark.parametrize("seed", [18, 23])
def test_half_the_room_is_looked_at_where_the_bound_is_far(seed: int) -> None:
    """The bound says that half the room is much worse, but plans are."""
    module = random_module(seed, size=80, vector=5000)
    times = [
        plan(module, mib, strategy="search").estimate.after_seconds
        for mib in (1 / 64, 1 / 32)
    ]
    assert times[1] <= times[0] * (1 + 1e-8)


@pytest.mark.parametrize("seed", [8, 13])
def test_copies_of_what_nothing_needs_mislead_no_search(seed: int) -> None:
    """The greedy plan copies results of dead steps, which keeps those steps."""
    module = random_module(seed, size=80, vector=5000)
    times = {}
    for mib in (0.1, 3, 1e9):
        greedy = plan(module, mib)
        found = plan(module, mib, strategy="search")
        found.verify()
        assert found.estimate.after_seconds <= greedy.estimate.after_seconds * (
            1 + 1e-9
        )
        times[mib] = found.estimate.after_seconds
    assert times[3] <= times[0.1] * (1 + 1e-8)


def test_plans_compute_what_the_program_does() -> None:
    for name in ("mlp_forward.opt.hlo", "quantized_matmul.opt.hlo"):
        found = plan(msa.load(DATA / name), 4, strategy="search")
        found.prove(seed=1)


def test_no_effort_is_greedy(module: msa.Module) -> None:
    greedy = plan(module, 1)
    search = plan(module, 1, strategy="search", effort=0)
    assert search.module == greedy.module


def test_a_plan_that_nearly_reaches_the_bound_needs_no_other_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain of operations fits altogether: there is nothing left to gain."""
    lines = ["x0 = f32[512,512] parameter(0)"]
    lines += [f"x{n + 1} = f32[512,512] negate(x{n})" for n in range(1200)]
    text = "\n".join([*lines[:-1], f"ROOT {lines[-1]}"])
    module = msa.parse(f"HloModule m, is_scheduled=true\nENTRY e {{\n{text}\n}}")
    made: list[Options] = []

    def counted(problem: Problem, options: Options) -> AllocationResult:
        made.append(options)
        return run_greedy(problem, options)

    monkeypatch.setattr("msa.assignment.search.starts.run_greedy", counted)
    found = plan(module, 16, strategy="search").estimate
    assert found.after_seconds <= found.lower_bound_seconds * 1.001
    assert all(not o.faithful for o in made[:-1])
    assert {o.prefetch_interval_picker for o in made} == {
        Options().prefetch_interval_picker
    }


def test_deterministic_by_seed(module: msa.Module) -> None:
    texts = {
        plan(module, 1, strategy="search", seed=3).module.to_text() for _ in range(2)
    }
    assert len(texts) == 1


def test_the_seed_shuffles_what_is_decided_first() -> None:
    program = msa.load(DATA / "quantized_matmul.opt.hlo")
    greedy = plan(program, 1).estimate.after_seconds
    found = [plan(program, 1, strategy="search", seed=seed) for seed in range(4)]
    assert all(p.estimate.after_seconds <= greedy * (1 + 1e-9) for p in found)
    assert len({p.module.to_text() for p in found}) > 1


def test_more_capacity_is_never_worse(module: msa.Module) -> None:
    times = [
        plan(module, mib, strategy="search").estimate.after_seconds
        for mib in (1, 2, 4, 8)
    ]
    assert times == sorted(times, reverse=True)


def test_decisions_say_how_every_use_is_served() -> None:
    found = plan(msa.load(DATA / "quantized_matmul.opt.hlo"), 4, strategy="search")
    served = {use: a for a in found.allocations if a.value >= 0 for use in a.uses}
    checked = 0
    for decision in found.result.decisions:
        allocation = served.get(decision.use)
        if allocation is None or decision.served in (Served.SAME_STEP, Served.MIRRORED):
            continue
        fast = decision.served in (Served.NO_COPY, Served.PREFETCH)
        assert fast == allocation.is_alternate
        checked += 1
    assert checked > 10
    assert "slow memory" in found.why_not("wrapped_convert") or found.explain(
        "wrapped_convert"
    )


@pytest.mark.parametrize("seed", [5, 11, 13, 31, 51, 66])
def test_random_programs_with_branches_loops_and_dead_code(seed: int) -> None:
    module = random_module(seed)
    greedy = plan(module, 1 / 64)
    found = plan(module, 1 / 64, strategy="search")
    found.verify()
    found.prove(seed=seed)
    estimate = found.estimate
    assert estimate.after_seconds <= greedy.estimate.after_seconds * (1 + 1e-9)
    assert estimate.lower_bound_seconds <= estimate.after_seconds * (1 + 1e-9)


@pytest.mark.parametrize("seed", [1, 4, 9, 13])
def test_more_capacity_is_never_worse_with_branches_loops_and_dead_code(
    seed: int,
) -> None:
    module = random_module(seed)
    times = [
        plan(module, 2.0**-doublings, strategy="search").estimate.after_seconds
        for doublings in range(12, 3, -1)
    ]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(times))


# -- tiny problems: bound <= optimum <= search <= greedy ---------------------------------


def every_sketch(place: FreePlace, last: int) -> Iterator[Sketch]:
    """All sketches with at most one fetch, and copies at any times."""
    steps = sorted({item.use.step for item in place.uses if not item.default})
    spans = [(a, b) for a in steps for b in steps if a <= b]
    fetches: list[tuple[Fetch, ...]] = [()]
    fetches += [
        (Fetch(start, first, until),)
        for first, until in spans
        for start in range(place.step, first)
    ]
    for fetch in fetches:
        yield Sketch(fetches=fetch)
    if not place.definable:
        return
    for stay in (place.step, *steps):
        for fetch in fetches:
            if fetch and fetch[0].start_after < stay:
                continue
            needed = first_in_default(place, Sketch(stay, None, fetch))
            if needed is None:
                yield Sketch(stay)
                continue
            for done in range(place.step + 1, needed + 1):
                yield Sketch(stay, done, fetch)


def fits(problem: Problem, allocations: list[Allocation], size: int) -> bool:
    """Whether chunks of one size fit at every step: intervals can then be coloured."""
    room = problem.machine.capacity // size
    return all(
        sum(a.is_alternate and a.start <= step <= a.end for a in allocations) <= room
        for step in range(problem.end)
    )


def optimum(problem: Problem, size: int) -> float:
    estimator = Estimator(problem)
    places = free_places(problem, problem.machine.capacity, ())
    assert len(places) == len(problem.values)
    choices = [list(every_sketch(p, problem.end - 1)) for p in places.values()]
    best = float("inf")
    for sketches in product(*choices):
        allocations = [
            allocation
            for place, sketch in zip(places.values(), sketches, strict=True)
            for allocation in allocations_of(place, sketch)
        ]
        if fits(problem, allocations, size):
            best = min(best, estimator.seconds(allocations))
    return best


@st.composite
def tiny(draw: st.DrawFn) -> Problem:
    """Two inputs and two or three operations on values of 40 bytes."""
    capacity = draw(st.sampled_from((40, 80, 120)))
    machine = replace(SMALL, capacity=capacity, alignment=1)
    program = Program(machine, seconds=draw(st.sampled_from((0.0, 0.3, 1.0))))
    steps = [program.parameter("p", 40), program.parameter("q", 40)]
    for number in range(draw(st.integers(2, 3))):
        count = draw(st.integers(1, 2))
        operands = tuple(draw(st.sampled_from(steps)) for _ in range(count))
        steps.append(program.op(f"n{number}", operands, 40))
    return program.problem()


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.sampled_from((16, 24, 40, 64, 120)), min_size=4, max_size=12),
    reads=st.lists(st.integers(0, 30), min_size=12, max_size=12),
    seconds=st.sampled_from((0.0, 0.3, 1.0)),
)
def test_twice_the_room_is_never_worse(
    sizes: list[int], reads: list[int], seconds: float
) -> None:
    times = []
    for doublings in range(6):
        machine = replace(SMALL, capacity=40 << doublings, alignment=8)
        program = Program(machine, seconds=seconds)
        steps = [program.parameter("p", 64), program.parameter("q", 24)]
        for number, (size, read) in enumerate(zip(sizes, reads, strict=False)):
            operands = (steps[-1], steps[read % len(steps)])
            steps.append(program.op(f"n{number}", operands, size))
        problem = program.problem()
        options = Options(strategy="search")
        estimator = Estimator(problem)
        greedy = refine(
            problem, run_greedy(problem, options), options, estimator.seconds([])
        )
        found = run_search(problem, options, greedy)
        times.append(estimator.seconds(found.allocations))
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(times))


@settings(max_examples=12, deadline=None)
@given(problem=tiny())
def test_bound_optimum_search_and_greedy_are_in_order(problem: Problem) -> None:
    options = Options(strategy="search")
    estimator = Estimator(problem)
    before = estimator.seconds([])
    greedy = refine(problem, run_greedy(problem, options), options, before)
    found = run_search(problem, options, greedy)
    best = optimum(problem, 40)
    searched = estimator.seconds(found.allocations)
    bound = lower_bound_seconds(problem, [1.0] * problem.end)
    assert bound <= best * (1 + 1e-9)
    assert best <= searched * (1 + 1e-9)
    assert searched <= estimator.seconds(greedy.allocations) * (1 + 1e-9)
    assert fits(problem, list(found.allocations), 40)
