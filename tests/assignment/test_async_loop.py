"""Nothing is moved inside a loop that runs in an asynchronous operation."""

from __future__ import annotations

import pytest

import msa
from assignment.async_loop import ASYNC_LOOP
from msa.assignment import build_problem
from msa.assignment.estimate import Estimator
from msa.assignment.options import Options
from msa.assignment.search.free import free_places

TARGET = msa.Target.preset("tpu_v5e")
READY = msa.analysis.prepare(msa.parse(ASYNC_LOOP))


def test_the_loop_runs_asynchronously_and_has_no_free_places() -> None:
    problem = build_problem(READY, TARGET)
    inside = problem.runs_asynchronously
    kinds = {
        r.kind for r, within in zip(problem.regions, inside, strict=True) if within
    }
    assert kinds == {"async", "call", "body", "condition"}
    # Even if the values there were placeable, they would be needed at any time.
    free = free_places(problem, 1 << 20, ())
    names = {problem.names[place.step] for place in free}
    assert {"a1", "a2"} <= names
    assert not any(inside[place.region] for place in free.values())


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(faithful=True),
        Options(strategy="search", effort=64),
        Options(always_spill_to_default_memory=True),
        Options(enable_sync_copy_replacement=True),
    ],
    ids=["greedy", "faithful", "search", "spill", "sync"],
)
@pytest.mark.parametrize("capacity", [20_000, 70_000, 200_000])
def test_no_copies_inside(options: Options, capacity: int) -> None:
    target = TARGET.replace(alternate_memory_bytes=capacity)
    plan = msa.assign(msa.parse(ASYNC_LOOP), target, options)
    plan.verify()
    problem = build_problem(READY, target)
    for allocation in plan.allocations:
        if allocation.value >= 0 and allocation.is_copy_like:
            region = problem.region_of[allocation.position.step]
            assert not problem.runs_asynchronously[region]
    plan.prove()


@pytest.mark.parametrize("capacity", [20_000, 70_000, 200_000])
def test_steps_within_the_operation_take_no_time_of_their_own(capacity: int) -> None:
    """Neither for the estimate nor for the simulation."""
    target = TARGET.replace(alternate_memory_bytes=capacity)
    module = msa.parse(ASYNC_LOOP)
    estimator = Estimator(build_problem(READY, target))
    assert estimator.seconds([]) == pytest.approx(
        msa.simulate(module, target).elapsed_seconds, rel=1e-9
    )
    # Or every draft would look slower than nothing placed and be given up.
    plan = msa.assign(module, target)
    assert plan.estimate.after_seconds < plan.estimate.before_seconds
