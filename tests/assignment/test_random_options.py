"""Random programs under random options: plans are right, and proved by execution."""

from __future__ import annotations

import pytest

import msa
import msa.testing
from assignment.random_options import random_options

PLAIN = msa.testing.RandomModuleOptions.plain()
"""Programs of these forms had the seeds of the hard ones below."""


def check(
    seed: int,
    size: int,
    *,
    scratch: bool = False,
    kinds: msa.testing.RandomModuleOptions | None = None,
) -> None:
    """Plan and prove the program of a seed; it may honestly not fit."""
    vector = (64, 256, 1024)[seed % 3]
    program = msa.testing.random_module(seed, size=size, vector=vector, options=kinds)
    options = random_options(seed, program, scratch=scratch)
    target = msa.Target.preset("tpu_v5e").replace(
        alternate_memory_bytes=max(vector * 4 * (1, 2, 4, 8, 32)[seed % 5], 1024),
        alignment_bytes=(8, 64, 256)[seed // 3 % 3],
    )
    try:
        plan = msa.assign(program, target, options)
    except msa.CapacityError:
        return
    plan.verify()
    plan.prove(seed=seed)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_under_random_options(seed) -> None:
    check(seed, 30)


# What broke plans before: restrictions inside loops, reads of slices of slices, windows
# that nothing reads, calls that hand inputs on, values spilled twice in a step, inputs
# evicted over themselves while they are still read.
@pytest.mark.parametrize("seed", [107, 211, 298, 307, 324, 401, 1149, 1429, 1518])
def test_programs_that_were_hard(seed) -> None:
    check(seed, 60, kinds=PLAIN)


@pytest.mark.parametrize("seed", [201796])
def test_smaller_programs_that_were_hard(seed) -> None:
    check(seed, 40, kinds=PLAIN)


# A loop's parameter is read asynchronously while it leaves a barrier; values read at
# an earlier place may have to be in default memory later, or be read there twice;
# scratch of conditionals and of branches' parameters lies over their own arrays; values
# in shards are spilled everywhere.
@pytest.mark.parametrize(
    ("seed", "size"),
    [
        (300533, 80),
        (311090, 80),
        (311219, 80),
        (310856, 80),
        (311725, 40),
        (311076, 20),
        (310021, 40),
    ],
)
def test_programs_with_scratch_that_were_hard(seed, size) -> None:
    check(seed, size, scratch=True, kinds=PLAIN)


# Operands of operations that run on were copied while these run; a branch that takes an
# array itself read a copy made outside of it.
@pytest.mark.parametrize(
    ("seed", "size", "scratch"),
    [(500123, 80, True), (600059, 80, False), (600468, 20, False)],
)
def test_programs_of_more_forms_that_were_hard(seed, size, scratch) -> None:
    check(seed, size, scratch=scratch)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_random_programs_with_scratch(block) -> None:
    for seed in range(310_000 + 50 * block, 310_050 + 50 * block):
        check(seed, (20, 40, 80)[seed % 3], scratch=True)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_many_random_programs_under_random_options(block) -> None:
    for seed in range(10_000 + 50 * block, 10_050 + 50 * block):
        check(seed, (20, 40, 80)[seed % 3])
