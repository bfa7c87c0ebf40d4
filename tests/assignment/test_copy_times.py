"""Many copies at once are timed as each by itself."""

from __future__ import annotations

import numpy as np
import pytest

import msa
from msa.assignment import build_problem
from msa.assignment.copy_times import CopyTimes, done_at, started_after
from msa.testing import random_module


@pytest.mark.parametrize("seed", range(12))
def test_at_once_as_one_by_one(seed: int) -> None:
    module = msa.schedule(random_module(seed, size=40))
    problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    times = CopyTimes(problem)
    chance = np.random.default_rng(seed)
    steps = chance.integers(0, problem.end, 500)
    starts = chance.integers(-1, problem.end, 500)
    dones = chance.integers(0, problem.end + 1, 500)
    begun = [started_after(problem, a, s) for a, s in zip(starts, steps, strict=True)]
    ended = [done_at(problem, d, s) for d, s in zip(dones, steps, strict=True)]
    assert times.started(starts, steps).tolist() == begun
    assert times.landed(dones, steps).tolist() == ended


def test_random_modules_have_copies_beside_what_they_run() -> None:
    # Without them the test above would prove nothing.
    module = msa.schedule(random_module(3, size=40))
    problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    assert len(problem.regions) > 1
    moved = [
        step
        for step in problem.called
        if done_at(problem, step, step) != step and problem.region_of[step] == 0
    ]
    assert moved


def test_no_copies() -> None:
    module = msa.schedule(random_module(0, size=5))
    times = CopyTimes(build_problem(module, msa.Target.preset("tpu_v5e")))
    nothing = np.array([], np.int64)
    assert not len(times.started(nothing, nothing))
    assert not len(times.landed(nothing, nothing))
