"""A program with a loop inside an asynchronous call, and work beside it."""

from __future__ import annotations

ASYNC_LOOP = """
HloModule m, is_scheduled=true
body {
  b = (s32[], f32[4096]{0}, f32[4096]{0}) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  x = f32[4096]{0} get-tuple-element(b), index=1
  w = f32[4096]{0} get-tuple-element(b), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t1 = f32[4096]{0} negate(x)
  t2 = f32[4096]{0} abs(t1)
  t3 = f32[4096]{0} add(t2, t1)
  t4 = f32[4096]{0} add(t3, w)
  t5 = f32[4096]{0} add(t4, t1)
  ROOT r = (s32[], f32[4096]{0}, f32[4096]{0}) tuple(j, t5, w)
}
cond {
  c = (s32[], f32[4096]{0}, f32[4096]{0}) parameter(0)
  ci = s32[] get-tuple-element(c), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(ci, n), direction=LT
}
inner {
  q = f32[4096]{0} parameter(0)
  v = f32[4096]{0} parameter(1)
  z = s32[] constant(0)
  tt = (s32[], f32[4096]{0}, f32[4096]{0}) tuple(z, q, v)
  wh = (s32[], f32[4096]{0}, f32[4096]{0}) while(tt), condition=cond, body=body
  ROOT o = f32[4096]{0} get-tuple-element(wh), index=1
}
ENTRY e {
  p = f32[4096]{0} parameter(0)
  k = f32[4096]{0} parameter(1)
  s = ((f32[4096]{0}, f32[4096]{0}), f32[4096]{0}, u32[]) call-start(p, k), to_apply=inner
  a1 = f32[4096]{0} negate(k)
  a2 = f32[4096]{0} abs(a1)
  a3 = f32[4096]{0} add(a2, a1)
  d = f32[4096]{0} call-done(s)
  ROOT f = f32[4096]{0} add(d, a3)
}
"""
