"""Random modules planned by both strategies and executed: the soak, in little."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.soak import check

import msa
from msa.testing import RandomModuleOptions


@pytest.mark.parametrize("seed", range(24))
def test_random_plans_hold(seed: int) -> None:
    counts: Counter[str] = Counter()
    assert check(seed, size=32, vector=1024, counts=counts) == []
    assert counts["plans"] == 2


@pytest.mark.parametrize(
    ("seed", "size"),
    [
        (839, 48),
        (3449, 48),
        (7434, 48),
        (8518, 48),
        (11964, 48),
        (337, 20),
        (407, 20),
        (466, 20),
    ],
)
def test_plans_that_were_wrong_once(seed: int, size: int) -> None:
    """Found by the soak: inputs written back inside loops, results left in fast
    memory when the loop before them was dropped or when a view of them was read from
    a copy, operands read through the start of an asynchronous operation."""
    plain = RandomModuleOptions.plain()
    assert check(seed, size, 1024, Counter(), plain) == []


def test_a_barrier_around_the_result_whose_array_is_only_named_after_it() -> None:
    """The result takes the input itself; the plan's copy of it is read by the barrier
    last, and only named by the element that gives the result its other parts."""
    module = msa.parse("""
HloModule barrier, is_scheduled=true, input_output_alias={ {0,0}: (0, {}, may-alias) }
made {
  q = s32[4,8]{1,0} parameter(0)
  j = s32[16]{0} iota(), iota_dimension=0
  ROOT s = (s32[16]{0}) tuple(j)
}
ENTRY main {
  p = s32[4,8]{1,0} parameter(0)
  c = s32[4,8]{1,0} copy(p)
  m = (s32[16]{0}) call(c), to_apply=made
  i = s32[16]{0} get-tuple-element(m), index=0
  four = s32[] constant(4)
  d = s32[8]{0} dynamic-slice(i, four), dynamic_slice_sizes={8}
  k = s32[16]{0} iota(), iota_dimension=0
  l = s32[32]{0} iota(), iota_dimension=0
  t = (s32[4,8]{1,0}, s32[32]{0}, s32[16]{0}) tuple(p, l, k)
  u = ((s32[4,8]{1,0}, s32[32]{0}, s32[16]{0}), s32[8]{0}, s32[16]{0}, s32[8]{0}) tuple(t, d, k, d)
  ROOT o = ((s32[4,8]{1,0}, s32[32]{0}, s32[16]{0}), s32[8]{0}, s32[16]{0}, s32[8]{0}) opt-barrier(u)
}
""")
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=2048)
    plan = msa.assign(module, target, msa.Options(strategy="greedy"))
    plan.verify()
    plan.prove(seed=1)
