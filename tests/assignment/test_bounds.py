"""No plan beats the bound: small problems, worked out and tried out."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.assignment import bound_windows, bounds
from msa.assignment.bound_residency import Stay, most_saved
from msa.assignment.bound_windows import windows_bound
from msa.assignment.bounds import fastest_seconds, lower_bound_seconds
from msa.assignment.build import build_problem
from msa.target import Target
from msa.testing import random_module

DATA = Path(__file__).parents[1] / "data"

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
    # The input is read once and the result written once, a second each, whatever is
    # placed; c lies between, and takes 0.1 s to read and 0.2 s to write.
    assert bound(ONE) == pytest.approx(2.3)


def test_everything_fast_is_a_bound_when_the_inside_is_large() -> None:
    text = ONE.replace(
        "  c = f32[25]{0} reverse(b), dimensions={0}\n",
        "".join(
            f"  c{i} = f32[25]{{0}} reverse({'b' if i == 0 else f'c{i - 1}'}), dimensions={{0}}\n"
            for i in range(20)
        ),
    ).replace("negate(c)", "negate(c19)")
    # Twenty steps of 100 bytes in (0.1 s) and out (0.2 s), between input and result.
    assert bound(text) == pytest.approx(1.0 + 20 * 0.3 + 1.0)


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
    module = msa.parse(text)
    problem = build_problem(module, half)
    seconds = fastest_seconds(problem, msa.simulate(module, half).trip_counts)
    assert sum(seconds) == pytest.approx(2 * fast + 3 * (fast + 1.0))
    assert bound(text, half) >= sum(seconds)


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
    # The input and the constant come in, 40 trips of vectors and scalars, one result.
    scalars = 40 * (12 + 9) / 100
    assert bound(text) == pytest.approx(1.04 + 40 * 0.3 + scalars + 1.0)


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


def test_what_comes_in_the_work_and_what_goes_out_add_up() -> None:
    """In: 1 s until b has it all. Four steps of 0.3 s between. Out: 1 s for the result."""
    text = ONE.replace(
        "  c = f32[25]{0} reverse(b), dimensions={0}\n",
        "".join(
            f"  c{i} = f32[25]{{0}} reverse({'b' if i == 0 else f'c{i - 1}'}), dimensions={{0}}\n"
            for i in range(4)
        ),
    ).replace("negate(c)", "negate(c3)")
    assert bound(text) == pytest.approx(1.0 + 4 * 0.3 + 1.0)


def test_what_does_not_fit_between_two_windows_passes_twice() -> None:
    """Three values of 100 bytes are made, then read; 100 bytes can stay in between.

    Two of them are written before the third exists and read after: 4 s on top of the
    input, once, and the result.
    """
    text = """
HloModule m, is_scheduled=true
ENTRY main {
  a = f32[25]{0} parameter(0)
  b = f32[25]{0} cosine(a)
  c = f32[25]{0} sine(a)
  d = f32[25]{0} tanh(a)
  e = f32[25]{0} add(b, c)
  ROOT f = f32[25]{0} add(e, d)
}
"""
    small = MACHINE.replace(alternate_memory_bytes=100)
    assert bound(text, small) >= 6.0


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 6), st.integers(0, 4), st.integers(1, 8), st.integers(1, 9)
        ),
        max_size=9,
    ),
    capacity=st.integers(1, 12),
)
def test_no_choice_of_stays_saves_more(
    rows: list[tuple[int, int, int, int]], capacity: int
) -> None:
    stays = [Stay(a, a + more, float(size), float(b)) for a, more, size, b in rows]
    best = 0.0
    for chosen in product((False, True), repeat=len(stays)):
        kept = [s for s, yes in zip(stays, chosen, strict=True) if yes]
        taken = [sum(s.size for s in kept if s.first <= t <= s.last) for t in range(11)]
        if max(taken) <= capacity:
            best = max(best, sum(s.saved for s in kept))
    found = most_saved(stays, 11, capacity)
    assert best - 1e-9 <= found <= sum(s.saved for s in stays) + 1e-9


def plain_windows(problem, fastest, known, capacity) -> float:
    """The bound by its definition: every cut of the entry's steps, every window."""
    reads, makes, leaves = bound_windows._moves(problem, known, problem.outermost)
    steps = [s for s in range(problem.end) if problem.region_of[s] == 0]
    best = [0.0]  # by number of entry steps before the cut
    for last in range(len(steps)):
        found = best[-1]
        for first in range(last + 1):
            begin = steps[first - 1] + 1 if first else 0
            inside = range(begin, steps[last] + 1)
            coming = sum(a for s in inside for before, a in reads[s] if before < begin)
            going = sum(a for s in inside for _, a in makes[s])
            going -= sum(a for s in inside for made, a in leaves[s] if made >= begin)
            moved = max(0.0, coming - (capacity if first else 0.0))
            moved += max(0.0, going - (0.0 if last == len(steps) - 1 else capacity))
            work = sum(
                fastest[s]
                for s in range(problem.end)
                if begin <= problem.outermost[s] <= steps[last]
            )
            moved /= problem.machine.default_bandwidth
            found = max(found, best[first] + max(work, moved))
        best.append(found)
    return best[-1]


@pytest.mark.parametrize("seed", range(8))
def test_windows_are_cut_in_the_best_way(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    module = msa.analysis.prepare(random_module(seed, size=60, vector=64))
    target = Target.preset("tpu_v5e").replace(alternate_memory_bytes=1024)
    problem = build_problem(module, target)
    calls = []
    monkeypatch.setattr(
        bounds, "windows_bound", lambda *given: calls.append(given) or 0.0
    )
    lower_bound_seconds(problem, msa.simulate(module, target).trip_counts)
    (given,) = calls
    full = plain_windows(*given)
    assert windows_bound(*given) == pytest.approx(full, rel=1e-12)
    for cuts in (2, 3, 5, 16):  # any choice of cuts is a bound, if a lower one
        monkeypatch.setattr(bound_windows, "_CUTS", cuts)
        assert 0.0 < windows_bound(*given) <= full * (1 + 1e-12)


def test_what_is_slower_in_alternate_memory_need_not_be_there() -> None:
    # Three operations read and write 100 bytes each; at 10 bytes/s in alternate memory
    # and 100 in default memory, nothing is placed: 6 s.
    slow = MACHINE.replace(
        alternate_read_bandwidth=10.0, alternate_write_bandwidth=10.0
    )
    plan = msa.assign(msa.parse(ONE), slow, msa.Options(strategy="search"))
    assert plan.estimate.after_seconds == pytest.approx(6.0)
    assert plan.estimate.lower_bound_seconds <= plan.estimate.after_seconds


def test_the_bound_of_arithmetic_is_as_exact_as_its_time() -> None:
    # Memory is far too fast to matter; 25 operations at 3 per second take a time that
    # single precision rounds.
    fast = MACHINE.replace(
        default_memory_bandwidth=1e25,
        alternate_read_bandwidth=1e25,
        alternate_write_bandwidth=1e25,
        flops_per_second=3.0,
        transcendentals_per_second=3.0,
    )
    for rate in (3.0, 7.0, 11.0, 13.0):
        target = fast.replace(flops_per_second=rate)
        estimate = msa.assign(msa.parse(ONE), target).estimate
        assert estimate.after_seconds == pytest.approx(50 / rate, rel=1e-6)
        assert estimate.lower_bound_seconds <= estimate.after_seconds


@pytest.mark.parametrize("capacity", [0, 1000, 1 << 40])
@pytest.mark.parametrize("name", ["mlp_forward", "quantized_matmul", "nested_while"])
def test_no_plan_is_below_the_bound_by_rounding(name: str, capacity: int) -> None:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=capacity)
    estimate = msa.assign(msa.load(DATA / f"{name}.opt.hlo"), target).estimate
    assert estimate.lower_bound_seconds <= estimate.after_seconds
