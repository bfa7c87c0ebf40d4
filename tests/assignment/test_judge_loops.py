"""Reasons of uses that come after loops inside of loops."""

from __future__ import annotations

import pytest

import msa
from msa import Reason

V5E = msa.Target.preset("tpu_v5e")

# `w` is there from step 0 and read in the end; the only steps that take long are those
# of the inner loop. A copy of the entry computation cannot start in there: it starts
# before all that the outer loop runs, which begins at step 6.
NESTED = """
HloModule nested, is_scheduled=true
inner_body {
  ip = (s32[], f32[128,128]{1,0}) parameter(0)
  ii = s32[] get-tuple-element(ip), index=0
  ix = f32[128,128]{1,0} get-tuple-element(ip), index=1
  i1 = s32[] constant(1)
  in = s32[] add(ii, i1)
  iy = f32[128,128]{1,0} tanh(ix)
  ROOT it = (s32[], f32[128,128]{1,0}) tuple(in, iy)
}
inner_condition {
  jp = (s32[], f32[128,128]{1,0}) parameter(0)
  ji = s32[] get-tuple-element(jp), index=0
  j1 = s32[] constant(3)
  ROOT jl = pred[] compare(ji, j1), direction=LT
}
outer_body {
  op = (s32[], f32[128,128]{1,0}) parameter(0)
  oi = s32[] get-tuple-element(op), index=0
  ox = f32[128,128]{1,0} get-tuple-element(op), index=1
  o1 = s32[] constant(1)
  on = s32[] add(oi, o1)
  oz = s32[] constant(0)
  ozc = s32[] copy(oz)
  ot = (s32[], f32[128,128]{1,0}) tuple(ozc, ox)
  ol = (s32[], f32[128,128]{1,0}) while(ot), condition=inner_condition, body=inner_body
  oy = f32[128,128]{1,0} get-tuple-element(ol), index=1
  ROOT otr = (s32[], f32[128,128]{1,0}) tuple(on, oy)
}
outer_condition {
  qp = (s32[], f32[128,128]{1,0}) parameter(0)
  qi = s32[] get-tuple-element(qp), index=0
  q1 = s32[] constant(3)
  ROOT ql = pred[] compare(qi, q1), direction=LT
}
ENTRY main {
  w = f32[512,512]{1,0} parameter(0)
  x = f32[128,128]{1,0} parameter(1)
  z = s32[] constant(0)
  zc = s32[] copy(z)
  xc = f32[128,128]{1,0} copy(x)
  t = (s32[], f32[128,128]{1,0}) tuple(zc, xc)
  l = (s32[], f32[128,128]{1,0}) while(t), condition=outer_condition, body=outer_body
  r = f32[128,128]{1,0} get-tuple-element(l), index=1
  wn = f32[512,512]{1,0} negate(w)
  ROOT o = (f32[512,512]{1,0}, f32[128,128]{1,0}) tuple(wn, r)
}
"""


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_a_copy_starts_before_loops_in_loops(strategy: str) -> None:
    target = V5E.replace(alternate_memory_bytes="2MiB", transcendentals_per_second=2e9)
    options = msa.Options(strategy=strategy, max_outstanding_prefetches=0)
    plan = msa.assign(msa.parse(NESTED), target, options)
    (use,) = plan.why_not("w").values[0].slow
    (finding,) = use.findings
    assert finding.reason is Reason.TOO_MANY_COPIES
    read = plan.problem.names.index("wn")
    assert (finding.start, finding.end) == (6, read)
    assert plan.decisions
