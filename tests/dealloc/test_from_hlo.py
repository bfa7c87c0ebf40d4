"""Programs in HLO, lowered, freed and checked on all paths."""

from __future__ import annotations

import pytest

import msa
from msa.dealloc import check, place_in_function, print_function, verify_function
from msa.dealloc.from_hlo import PlacedInterpreter, lower_module
from msa.errors import ScheduleError

LOOP = """HloModule m, is_scheduled=true
body {
  p = (f32[16], f32[16], s32[]) parameter(0)
  x = f32[16] get-tuple-element(p), index=0
  c = f32[16] get-tuple-element(p), index=1
  i = s32[] get-tuple-element(p), index=2
  s = f32[16] add(x, c)
  t = f32[16] multiply(s, c)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT r = (f32[16], f32[16], s32[]) tuple(t, c, n)
}
cond {
  q = (f32[16], f32[16], s32[]) parameter(0)
  j = s32[] get-tuple-element(q), index=2
  k = s32[] constant(4)
  ROOT lt = pred[] compare(j, k), direction=LT
}
yes { a = f32[16] parameter(0)
  ROOT e = f32[16] exponential(a) }
no { b = f32[16] parameter(0)
  ROOT g = f32[16] negate(b) }
ENTRY e {
  x0 = f32[16] parameter(0)
  w = f32[16] parameter(1)
  z = s32[] constant(0)
  zc = s32[] copy(z)
  c0 = f32[16] copy(x0)
  wc = f32[16] copy(w)
  t0 = (f32[16], f32[16], s32[]) tuple(c0, wc, zc)
  l = (f32[16], f32[16], s32[]) while(t0), condition=cond, body=body
  o = f32[16] get-tuple-element(l), index=0
  f = pred[] constant(true)
  h = f32[16] conditional(f, o, o), true_computation=yes, false_computation=no
  cs = (f32[16]{0:S(1)}, f32[16], u32[]) copy-start(h)
  m = f32[16] negate(o)
  cd = f32[16]{0:S(1)} copy-done(cs)
  ROOT y = f32[16] add(cd, m)
}
"""


def test_loops_branches_and_copies() -> None:
    program = lower_module(msa.parse(LOOP))
    verify_function(program.function)
    after, report = place_in_function(program.function)
    outcome = check(after, program.function, report.marked, trips=(0, 1, 2, 3))
    assert outcome.paths == 8
    assert outcome.clean, (outcome.findings[:2], outcome.differences[:2])
    again, _ = place_in_function(after)
    assert print_function(again) == print_function(after)
    kinds = {op.kind for op in program.function.walk()}
    assert {"while", "if", "use", "alloc"} <= kinds


def test_the_source_of_a_copy_lives_until_it_is_done() -> None:
    program = lower_module(msa.parse(LOOP))
    after, _ = place_in_function(program.function)
    text = print_function(after)
    done = text.index('tag = "cd"')
    source = next(n for n, (x, _) in program.origins.items() if x.name == "m")
    assert text.index(f"dealloc %{source}") > done


def test_in_place_operations_write_their_operand() -> None:
    module = msa.parse("""HloModule m, is_scheduled=true
ENTRY e {
  x = f32[8] parameter(0)
  c = f32[8] copy(x)
  u = f32[2] constant({1, 2})
  i = s32[] constant(0)
  ROOT d = f32[8] dynamic-update-slice(c, u, i)
}""")
    program = lower_module(module)
    names = {x.name for x, _ in program.origins.values()}
    assert names == {"c", "u", "i"}


def test_overlapping_places_are_seen() -> None:
    program = lower_module(msa.parse(LOOP))
    after, _ = place_in_function(program.function)
    by_name = {x.name: name for name, (x, _) in program.origins.items()}
    apart = {name: (1, 64 * i, 64) for i, name in enumerate(program.origins)}
    run = PlacedInterpreter(after, [1, 1], apart)
    run.run()
    assert run.overlaps == []
    apart[by_name["m"]] = apart[by_name["cs"]]
    run = PlacedInterpreter(after, [1, 1], apart)
    run.run()
    assert run.overlaps == [(by_name["cs"], by_name["m"])]


def test_a_schedule_is_needed() -> None:
    with pytest.raises(ScheduleError):
        lower_module(msa.parse("ENTRY e { ROOT x = f32[] parameter(0) }"))
