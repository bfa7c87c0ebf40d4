"""Greedy plans where an input fetched ahead of the program crowds others out."""

import pytest

import msa

# `w` (1 MiB) is read once, by its last reader; `a` to `e` (512 KiB each) by the next.
TEXT = """
HloModule crowded, is_scheduled=true

ENTRY main {
  x = f32[256,512]{1,0} parameter(0)
  w = f32[512,512]{1,0} parameter(1)
  a = f32[256,512]{1,0} negate(x)
  b = f32[256,512]{1,0} abs(a)
  c = f32[256,512]{1,0} negate(b)
  d = f32[256,512]{1,0} abs(c)
  e = f32[256,512]{1,0} negate(d)
  ROOT r = f32[256,512]{1,0} dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def _plan(capacity: str, **options: object) -> msa.Assignment:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=capacity)
    return msa.assign(msa.parse(TEXT), target, msa.Options(**options))


@pytest.mark.parametrize("capacity", ["1MiB", "1280KiB", "1536KiB", "2MiB", "4MiB"])
def test_a_large_input_fetched_ahead_never_slows_the_plan_down(capacity: str) -> None:
    plan = _plan(capacity)
    without = _plan(capacity, enable_cross_program_prefetch=False)
    seconds = plan.estimate.after_seconds
    assert seconds <= without.estimate.after_seconds * (1 + 1e-9)
    plan.verify()
    plan.prove(seed=1)


def test_values_of_the_program_win_over_an_input_that_fills_the_memory() -> None:
    plan = _plan("1MiB")
    assert {"b{}", "d{}"} & set(plan.chunks)
    assert "fetched before" not in str(plan.explain("w"))


def test_xlas_own_plan_keeps_the_fetch() -> None:
    faithful = _plan("1MiB", faithful=True)
    assert [
        faithful.problem.names[faithful.problem.values[f.value].position.step]
        for f in faithful.result.cross_program_prefetches
    ] == ["w"]
