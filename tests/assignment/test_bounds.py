"""No plan beats the bound: small problems, worked out and tried out."""

from __future__ import annotations

from itertools import product

import pytest

import msa
from msa.assignment.bounds import lower_bound_seconds
from msa.assignment.build import build_problem
from msa.target import Target

MACHINE = Target(
    name="toy",
    alternate_memory_bytes=1000,
    alignment_bytes=1,
    default_memory_bandwidth=100.0,
    alternate_read_bandwidth=1000.0,
    alternate_write_bandwidth=500.0,
    flops_per_second=1e9,
    transcendentals_per_second=1e9,
)


def bound(text: str, target: Target = MACHINE) -> float:
    module = msa.parse(text)
    problem = build_problem(module, target)
    before = msa.simulate(module, target)
    return lower_bound_seconds(problem, before.trip_counts)


ONE = """
HloModule m, is_scheduled=true
ENTRY main {
  a = f32[25]{0} parameter(0)
  b = f32[25]{0} negate(a)
  c = f32[25]{0} reverse(b), dimensions={0}
  ROOT d = f32[25]{0} negate(c)
}
"""


def test_what_goes_in_and_out_passes_the_slow_memory() -> None:
    # The input is read once and the result written once: 2 s, whatever is placed.
    assert bound(ONE) == pytest.approx(2.0)


def test_everything_fast_is_a_bound_when_the_inside_is_large() -> None:
    text = ONE.replace(
        "  c = f32[25]{0} reverse(b), dimensions={0}\n",
        "".join(
            f"  c{i} = f32[25]{{0}} reverse({'b' if i == 0 else f'c{i - 1}'}), dimensions={{0}}\n"
            for i in range(20)
        ),
    ).replace("negate(c)", "negate(c19)")
    # 22 steps of 100 bytes in (0.1 s) and out (0.2 s).
    assert bound(text) == pytest.approx(22 * 0.3)


def test_what_does_not_fit_is_slow() -> None:
    small = MACHINE.replace(alternate_memory_bytes=99)
    assert bound(ONE, small) == pytest.approx(6.0)


def test_operands_that_do_not_fit_together_are_partly_slow() -> None:
    text = """
HloModule m, is_scheduled=true
ENTRY main {
  a = f32[25]{0} parameter(0)
  b = f32[25]{0} reverse(a), dimensions={0}
  c = f32[25]{0} cosine(a)
  d = f32[25]{0} add(b, c)
  e = f32[25]{0} add(d, b)
  ROOT f = f32[25]{0} add(e, c)
}
"""
    half = MACHINE.replace(alternate_memory_bytes=100)
    # Five steps write 100 bytes fast; b and c read one operand, the adds one of two.
    fast = 0.1 + 0.2
    assert bound(text, half) == pytest.approx(2 * fast + 3 * (fast + 1.0))


def test_arithmetic_is_a_bound_too() -> None:
    # b and d take 2.5 s of arithmetic each, c is pure traffic.
    slow = MACHINE.replace(flops_per_second=10.0)
    assert bound(ONE, slow) == pytest.approx(2.5 + 0.3 + 2.5)


def test_loops_count_with_their_trips() -> None:
    text = """
HloModule m, is_scheduled=true
body {
  p = (s32[], f32[25]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[25]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[25]{0} reverse(v), dimensions={0}
  ROOT q = (s32[], f32[25]{0}) tuple(j, w)
}
cond {
  cp = (s32[], f32[25]{0}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  n = s32[] constant(40)
  ROOT lt = pred[] compare(ci, n), direction=LT
}
ENTRY main {
  nil = s32[] constant(0)
  zero = s32[] copy(nil)
  x = f32[25]{0} parameter(0)
  a = f32[25]{0} negate(x)
  init = (s32[], f32[25]{0}) tuple(zero, a)
  l = (s32[], f32[25]{0}) while(init), condition=cond, body=body
  v1 = f32[25]{0} get-tuple-element(l), index=1
  ROOT out = f32[25]{0} negate(v1)
}
"""
    scalars = 40 * (12 + 9) / 100 + 8 / 100
    assert bound(text) == pytest.approx(42 * 0.3 + scalars)


@pytest.mark.parametrize("capacity", [0, 100, 150, 200, 300, 1000])
def test_no_choice_of_memories_beats_it(capacity: int) -> None:
    """Every coloring of a small program that respects capacity at each step."""
    text = """
HloModule m, is_scheduled=true
ENTRY main {
  a = f32[25]{0} parameter(0)
  b = f32[25]{0@} reverse(a), dimensions={0}
  c = f32[25]{0@} reverse(b), dimensions={0}
  d = f32[25]{0@} add(b, c)
  e = f32[25]{0@} add(d, c)
  ROOT f = f32[25]{0} add(e, b)
}
"""
    target = MACHINE.replace(alternate_memory_bytes=capacity)
    found = bound(text.replace("@", ""), target)
    best = float("inf")
    for choice in product(["", ":S(1)"], repeat=4):
        colored = text
        for space in choice:
            colored = colored.replace("@", space, 1)
        result = msa.simulate(msa.parse(colored), target)
        if int(result.alternate_bytes.max()) <= capacity:
            best = min(best, result.elapsed_seconds)
    assert found <= best * (1 + 1e-12)
    assert found > 0.0
