"""When storage is needed, step by step, worked out by hand."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import AliasAnalysis, FlattenedSchedule
from msa.analysis.residency import Residency, handovers, merged


def spans(text: str) -> dict[str, list[tuple[int, int]]]:
    module = msa.parse(text)
    alias = AliasAnalysis.run(module)
    residency = Residency(alias, FlattenedSchedule.run(module))
    return {
        str(value.position): residency.spans(value)
        for value in alias.dataflow.values
        if value.shape.is_array
    }


BRANCHES = """
HloModule m, is_scheduled=true
left {
  l = f32[8] parameter(0)
  l1 = f32[8] negate(l)
  ROOT l2 = f32[8] negate(l1)
}
right {
  r = f32[8] parameter(0)
  r1 = f32[8] negate(r)
  ROOT r2 = f32[8] add(r1, r)
}
ENTRY main {
  c = pred[] parameter(0)
  x = f32[8] parameter(1)
  a = f32[8] negate(x)
  b = f32[8] exponential(x)
  k = f32[8] conditional(c, a, b), true_computation=left, false_computation=right
  ROOT out = f32[8] negate(k)
}
"""
# flattened: c0 x1 a2 b3 l4 l1 5 l2 6 r7 r1 8 r2 9 k10 out11


def test_a_branch_needs_only_its_own_operand() -> None:
    found = spans(BRANCHES)
    assert found["a{}"] == [(2, 4), (4, 6)]
    assert found["b{}"] == [(3, 4), (7, 10)]
    assert found["l1{}"] == [(5, 7)]
    assert found["l2{}"] == [(6, 7)]  # the conditional's own storage follows at 10
    assert found["r2{}"] == [(9, 10)]
    assert found["k{}"] == [(10, 12)]
    assert found["x{}"] == [(0, 12)]  # the caller's


def test_a_value_read_after_a_conditional_is_needed_through_it() -> None:
    text = BRANCHES.replace("negate(k)", "add(k, a)")
    assert spans(text)["a{}"] == [(2, 12), (4, 6)]


LOOP = """
HloModule m, is_scheduled=true
body {
  p = (f32[8], f32[8], pred[]) parameter(0)
  v = f32[8] get-tuple-element(p), index=0
  w = f32[8] get-tuple-element(p), index=1
  go = pred[] get-tuple-element(p), index=2
  u = f32[8] add(v, w)
  s = f32[8] reverse(u), dimensions={0}
  ROOT q = (f32[8], f32[8], pred[]) tuple(s, w, go)
}
cond {
  cp = (f32[8], f32[8], pred[]) parameter(0)
  ROOT on = pred[] get-tuple-element(cp), index=2
}
ENTRY main {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  f = pred[] parameter(2)
  a = f32[8] negate(x)
  b = f32[8] negate(y)
  g = pred[] copy(f)
  init = (f32[8], f32[8], pred[]) tuple(a, b, g)
  l = (f32[8], f32[8], pred[]) while(init), condition=cond, body=body
  e = f32[8] get-tuple-element(l), index=0
  ROOT out = f32[8] negate(e)
}
"""
# flattened: x0 y1 f2 a3 b4 g5 init6 cp7 on8 p9 v10 w11 go12 u13 s14 q15 l16 e17 out18


def test_loop_state_is_handed_over_at_the_body() -> None:
    found = spans(LOOP)
    assert found["a{}"] == [(3, 9)]  # through the condition, until the body starts
    assert found["p{0}"] == [(9, 14)]  # until it is read for the last time
    assert found["s{}"] == [(14, 16)]  # to the end of the trip
    assert found["l{0}"] == [(16, 19)]
    assert found["u{}"] == [(13, 15)]


def test_what_a_loop_only_reads_is_needed_until_it_ends() -> None:
    found = spans(LOOP)
    # In the entry until the loop has ended; in its parts throughout.
    assert merged(found["b{}"]) == [(4, 17)]


def test_inputs_that_may_be_overwritten_are_needed_until_their_last_reader() -> None:
    text = """
HloModule m, is_scheduled=true{}
ENTRY main {{
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  ROOT b = f32[8] negate(a)
}}
"""
    assert spans(text.format(""))["p{}"] == [(0, 3)]
    donated = text.format(", buffer_donor={ (0, {}) }")
    assert spans(donated)["p{}"] == [(0, 2)]
    aliased = text.format(", input_output_alias={ {}: (0, {}, may-alias) }")
    assert spans(aliased)["p{}"] == [(0, 2)]


def test_a_copy_needs_its_source_and_its_result_until_it_ends() -> None:
    found = spans("""
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[8]{0} parameter(0)
  a = f32[8]{0} negate(x)
  s = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(a)
  b = f32[8]{0} negate(x)
  d = f32[8]{0:S(1)} copy-done(s)
  ROOT c = f32[8]{0} add(b, d)
}
""")
    assert found["a{}"] == [(1, 5)]
    assert found["s{0}"] == [(2, 6)]


def test_values_inside_an_asynchronous_computation_last_until_it_ends() -> None:
    found = spans("""
HloModule m, is_scheduled=true
work {
  p = f32[8] parameter(0)
  h = f32[8] negate(p)
  ROOT r = f32[8] exponential(h)
}
ENTRY main {
  x = f32[8] parameter(0)
  a = f32[8] negate(x)
  s = ((f32[8]), f32[8], u32[]) async-start(a), calls=work
  b = f32[8] negate(x)
  d = f32[8] async-done(s), calls=work
  ROOT c = f32[8] add(b, d)
}
""")
    # x0 a1 p2 h3 r4 s5 b6 d7 c8
    assert found["h{}"] == [(3, 8)]
    assert merged(found["a{}"]) == [(1, 8)]


def test_dead_values_are_needed_at_their_own_step() -> None:
    found = spans("""
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[8] parameter(0)
  dead = f32[8] negate(x)
  ROOT c = f32[8] add(x, x)
}
""")
    assert found["dead{}"] == [(1, 2)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([(2, 3), (0, 2)], [(0, 3)]),
        ([(0, 5), (1, 2)], [(0, 5)]),
        ([(0, 1), (2, 3)], [(0, 1), (2, 3)]),
    ],
)
def test_merged(given: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    assert merged(given) == expected


def test_handovers_pair_equal_sizes_at_one_step() -> None:
    module = msa.parse("""
HloModule m, is_scheduled=true
ENTRY main {
  x = f32[8] parameter(0)
  a = f32[8] negate(x)
  b = f32[4] slice(a), slice={[0:4]}
  ROOT c = f32[4] negate(b)
}
""")
    alias = AliasAnalysis.run(module)
    _, a, b, c = alias.dataflow.values
    ending = [(3, a), (4, b)]
    beginning = [(1, a), (2, b), (3, c)]
    assert handovers(ending, beginning) == [(3, b, c)]
