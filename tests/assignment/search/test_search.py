"""Search is never worse than greedy, deterministic, and monotone in capacity."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import msa
from msa.assignment.estimate import Estimator
from msa.assignment.search.access import Access, bytes_of_places

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
        found = plan(module, mib, strategy="search", effort=5)
        found.verify()
        assert found.estimate.after_seconds <= greedy * (1 + 1e-9)
        assert found.estimate.after_seconds >= found.estimate.lower_bound_seconds


def test_no_effort_is_greedy(module: msa.Module) -> None:
    greedy = plan(module, 1)
    search = plan(module, 1, strategy="search", effort=0)
    assert search.module == greedy.module


def test_deterministic_by_seed(module: msa.Module) -> None:
    texts = {
        plan(module, 1, strategy="search", effort=6, seed=3).module.to_text()
        for _ in range(2)
    }
    assert len(texts) == 1


def test_more_capacity_is_never_worse(module: msa.Module) -> None:
    times = [
        plan(module, mib, strategy="search", effort=3).estimate.after_seconds
        for mib in (1, 2, 4, 8)
    ]
    assert times == sorted(times, reverse=True)


def test_marginal_gains_equal_the_change_of_the_steps_time() -> None:
    """Moving one access changes its step's time by just the stated gain."""
    text = (DATA / modules()[0]).read_text()
    found = plan(msa.parse(text), 1)
    problem = found.problem
    sizes = bytes_of_places(problem)
    allocations = list(found.result.allocations)
    access = Access(problem, sizes, allocations)
    seconds = access.step_seconds()
    reference = Estimator(problem)
    checked = 0
    for place, allocation in enumerate(allocations):
        if not allocation.is_alternate or not allocation.uses:
            continue
        use = allocation.uses[0]
        if use not in sizes:
            continue
        without = dataclasses.replace(allocation, uses=allocation.uses[1:])
        changed = [*allocations[:place], without, *allocations[place + 1 :]]
        slower = Access(problem, sizes, changed).step_seconds()
        assert slower[use.step] - seconds[use.step] == pytest.approx(
            access.read_gain(use), abs=1e-15
        )
        checked += 1
    assert checked
    assert reference.seconds(allocations) > 0
