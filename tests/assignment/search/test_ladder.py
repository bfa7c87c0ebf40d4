"""What is said of a rung depends on the rung, and lower rungs give what they should."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from assignment.sketch import SMALL
from assignment.sketch import Sketch as Program
from msa.assignment.search.ladder import Ladder

SHARED = os.environ.get("MSA_SHARED", "")


def chain(sizes: list[int]) -> Program:
    """One input, and operations that each read the one before."""
    program = Program(SMALL)
    step = program.parameter("p", sizes[0])
    for number, size in enumerate(sizes[1:]):
        step = program.op(f"n{number}", (step,), size)
    return program


def ladder(program: Program, capacity: int) -> Ladder:
    problem = program.problem()
    return Ladder(problem, capacity, [1.0] * problem.end)


def test_above_what_is_live_at_once_rungs_are_the_same() -> None:
    # At the last step the input and two values of 40 bytes are live: 120 bytes. With
    # slack 150 bytes are enough, and 128, a rung.
    program = chain([40, 40, 40])
    assert [ladder(program, c).top for c in (80, 127, 128, 160, 300, 600)] == [
        80,
        127,
        128,
        128,
        128,
        128,
    ]
    # Of 126 bytes live, 128 are too little slack: 158 are enough.
    program = chain([42, 42, 42])
    assert [ladder(program, c).top for c in (128, 157, 158, 600)] == [
        128,
        157,
        158,
        158,
    ]


def test_rungs_above_what_is_enough_are_those_up_to_the_capacity() -> None:
    program = chain([40, 40, 40])
    found = [ladder(program, c).above() for c in (127, 128, 256, 300, 600, 5000)]
    assert found == [[], [], [], [256], [256], [256]]


def test_no_value_fits_below_the_smallest() -> None:
    found = ladder(chain([40, 40]), 64)
    assert found.support(64) is None


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 200), min_size=2, max_size=6),
    capacity=st.integers(1, 400),
    doublings=st.integers(1, 4),
)
def test_a_rung_does_not_depend_on_where_the_ladder_begins(
    sizes: list[int], capacity: int, doublings: int
) -> None:
    program = chain(sizes)
    short, long = ladder(program, capacity), ladder(program, capacity << doublings)
    assert short.bound(capacity) == long.bound(capacity)
    assert short.support(capacity) == long.support(capacity)
    if long.top <= capacity:
        assert short.top == long.top


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 200), min_size=2, max_size=6),
    capacity=st.integers(1, 1000),
)
def test_supported_rungs_are_few_and_nearly_as_good(
    sizes: list[int], capacity: int
) -> None:
    found = ladder(chain(sizes), capacity)
    rung, rungs = found.top, 0
    while (below := found.support(rung)) is not None:
        assert rung / 2 <= below < rung
        assert below.bit_count() == 1
        assert found.bound(rung) <= found.bound(below) <= 1.06 * found.bound(rung)
        rung, rungs = below, rungs + 1
    assert rungs <= 4


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set")
def test_more_capacity_is_not_worse_where_it_hardly_helps() -> None:
    """From 32 MiB on, `unet_forward` gains little: chance must not decide."""
    module = msa.load(Path(SHARED) / "corpus" / "unet_forward.opt.hlo")
    times = []
    for mib in (32, 64, 128):
        target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=mib << 20)
        plan = msa.assign(module, target, msa.Options(strategy="search"))
        times.append(plan.estimate.after_seconds)
    assert times == sorted(times, reverse=True)
