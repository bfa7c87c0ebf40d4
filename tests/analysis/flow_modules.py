"""Modules of the dataflow and alias behaviours, shared by several tests."""

from __future__ import annotations

ADD = """
ENTRY main {
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  ROOT add = f32[] add(c1, c2)
}"""

TUPLE = """
ENTRY main {
  p0 = f32[] parameter(0)
  p1 = f32[] parameter(1)
  tuple = (f32[], f32[]) tuple(p0, p1)
  gte0 = f32[] get-tuple-element(tuple), index=0
  gte1 = f32[] get-tuple-element(tuple), index=1
  ROOT add = f32[] add(gte0, gte1)
}"""

NESTED_TUPLE = """
ENTRY main {
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  t = (f32[], f32[]) tuple(c1, c2)
  n = ((f32[], f32[]), (f32[], f32[]), f32[]) tuple(t, t, c1)
  gte_tuple = (f32[], f32[]) get-tuple-element(n), index=1
  ROOT gte_out = f32[] get-tuple-element(gte_tuple), index=0
}"""

CALL = """
callee {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT add = f32[] add(a, b)
}
ENTRY main {
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  ROOT call = f32[] call(c1, c2), to_apply=callee
}"""

NESTED_CALLS = """
inner {
  ip0 = f32[] parameter(0)
  ip1 = f32[] parameter(1)
  ROOT add = f32[] add(ip0, ip1)
}
outer {
  op0 = f32[] parameter(0)
  op1 = f32[] parameter(1)
  ROOT nested = f32[] call(op1, op0), to_apply=inner
}
ENTRY main {
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  ROOT call = f32[] call(c1, c2), to_apply=outer
}"""

STATE = "(f32[], f32[])"

WHILE = f"""
body {{
  bp = {STATE} parameter(0)
  bg0 = f32[] get-tuple-element(bp), index=0
  bg1 = f32[] get-tuple-element(bp), index=1
  add = f32[] add(bg0, bg1)
  ROOT body_root = {STATE} tuple(bg0, add)
}}
cond {{
  cp = {STATE} parameter(0)
  ROOT t = pred[] constant(false)
}}
ENTRY main {{
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  init = {STATE} tuple(c1, c2)
  ROOT while = {STATE} while(init), condition=cond, body=body
}}"""

SEQUENTIAL_WHILES = f"""
body0 {{
  b0 = {STATE} parameter(0)
  x0 = f32[] get-tuple-element(b0), index=0
  y0 = f32[] get-tuple-element(b0), index=1
  add0 = f32[] add(x0, y0)
  ROOT r0 = {STATE} tuple(x0, add0)
}}
body1 {{
  b1 = {STATE} parameter(0)
  x1 = f32[] get-tuple-element(b1), index=0
  y1 = f32[] get-tuple-element(b1), index=1
  add1 = f32[] add(x1, y1)
  ROOT r1 = {STATE} tuple(x1, add1)
}}
body2 {{
  b2 = {STATE} parameter(0)
  x2 = f32[] get-tuple-element(b2), index=0
  y2 = f32[] get-tuple-element(b2), index=1
  add2 = f32[] add(x2, y2)
  ROOT r2 = {STATE} tuple(x2, add2)
}}
cond0 {{ q0 = {STATE} parameter(0)  ROOT f0 = pred[] constant(false) }}
cond1 {{ q1 = {STATE} parameter(0)  ROOT f1 = pred[] constant(false) }}
cond2 {{ q2 = {STATE} parameter(0)  ROOT f2 = pred[] constant(false) }}
ENTRY main {{
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  init = {STATE} tuple(c1, c2)
  while0 = {STATE} while(init), condition=cond0, body=body0
  while1 = {STATE} while(while0), condition=cond1, body=body1
  ROOT while2 = {STATE} while(while1), condition=cond2, body=body2
}}"""

NESTED_WHILE = f"""
inner_body {{
  ip = {STATE} parameter(0)
  ig0 = f32[] get-tuple-element(ip), index=0
  ig1 = f32[] get-tuple-element(ip), index=1
  add = f32[] add(ig0, ig1)
  ROOT inner_root = {STATE} tuple(ig0, add)
}}
inner_cond {{ icp = {STATE} parameter(0)  ROOT ifalse = pred[] constant(false) }}
outer_body {{
  op = {STATE} parameter(0)
  og0 = f32[] get-tuple-element(op), index=0
  negate = f32[] negate(og0)
  og1 = f32[] get-tuple-element(op), index=1
  ot = {STATE} tuple(negate, og1)
  ROOT nested_while = {STATE} while(ot), condition=inner_cond, body=inner_body
}}
outer_cond {{ ocp = {STATE} parameter(0)  ROOT ofalse = pred[] constant(false) }}
ENTRY main {{
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  init = {STATE} tuple(c1, c2)
  ROOT entry_while = {STATE} while(init), condition=outer_cond, body=outer_body
}}"""

PASSING_NEST = """
body3 { p3 = (f32[]) parameter(0)  g3 = f32[] get-tuple-element(p3), index=0
  ROOT r3 = (f32[]) tuple(g3) }
cond3 { q3 = (f32[]) parameter(0)  ROOT f3 = pred[] constant(false) }
body2 { p2 = (f32[]) parameter(0)
  ROOT w2 = (f32[]) while(p2), condition=cond3, body=body3 }
cond2 { q2 = (f32[]) parameter(0)  ROOT f2 = pred[] constant(false) }
body1 { p1 = (f32[]) parameter(0)
  ROOT w1 = (f32[]) while(p1), condition=cond2, body=body2 }
cond1 { q1 = (f32[]) parameter(0)  ROOT f1 = pred[] constant(false) }
ENTRY main {
  c = f32[] constant(1)
  init = (f32[]) tuple(c)
  ROOT w0 = (f32[]) while(init), condition=cond1, body=body1
}"""


def swizzling(second: str) -> str:
    """A loop that swaps its two elements; the second starts as `second`."""
    return f"""
body {{
  bp = {STATE} parameter(0)
  bg0 = f32[] get-tuple-element(bp), index=0
  bg1 = f32[] get-tuple-element(bp), index=1
  ROOT body_root = {STATE} tuple(bg1, bg0)
}}
cond {{
  cp = {STATE} parameter(0)
  ROOT t = pred[] constant(false)
}}
ENTRY main {{
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  init = {STATE} tuple(c1, {second})
  ROOT while = {STATE} while(init), condition=cond, body=body
}}"""


SELECT = """
ENTRY main {
  p = pred[] constant(false)
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  ROOT select = f32[] select(p, c1, c2)
}"""

BITCAST = """
ENTRY main {
  c = f32[] constant(1)
  ROOT b = f32[] bitcast(c)
}"""

TUPLE_COPY = """
ENTRY main {
  p0 = f32[] parameter(0)
  p1 = f32[] parameter(1)
  t = (f32[], f32[]) tuple(p0, p1)
  ROOT copy = (f32[], f32[]) copy(t)
}"""

BARRIER = """
ENTRY main {
  p0 = f32[] parameter(0)
  p1 = f32[] parameter(1)
  t = (f32[], f32[]) tuple(p0, p1)
  ROOT b = (f32[], f32[]) opt-barrier(t)
}"""

COPY_START = """
ENTRY main {
  c = f32[] constant(1)
  start = (f32[], f32[], u32[]) copy-start(c)
  ROOT done = f32[] copy-done(start)
}"""

CUSTOM_CALL_ASYNC = """
wrapped {
  wp = f32[2,3] parameter(0)
  ROOT op = f32[4,5] custom-call(wp), custom_call_target="foo"
}
ENTRY main {
  p = f32[2,3] parameter(0)
  start = ((f32[2,3]), f32[4,5], s32[]) async-start(p), calls=wrapped
  update = ((f32[2,3]), f32[4,5], s32[]) async-update(start)
  ROOT done = f32[4,5] async-done(update)
}"""

SIDE_THREAD = """
wrapped {
  wp = f32[8] parameter(0)
  ROOT op = f32[8] negate(wp)
}, execution_thread="side"
ENTRY main {
  p = f32[8] parameter(0)
  start = ((f32[8]), f32[8], s32[]) async-start(p), async_execution_thread="side", calls=wrapped
  update = ((f32[8]), f32[8], s32[]) async-update(start)
  ROOT done = f32[8] async-done(update)
}"""

ASYNC_CONDITIONAL = """
yes { yp = f32[8] parameter(0)  ROOT yn = f32[8] negate(yp) }
no { np = f32[8] parameter(0)  ROOT ne = f32[8] exponential(np) }
wrapped {
  which = pred[] parameter(0)
  wp = f32[8] parameter(1)
  ROOT cond = f32[8] conditional(which, wp, wp), true_computation=yes, false_computation=no
}
ENTRY main {
  b = pred[] parameter(0)
  p = f32[8] parameter(1)
  start = ((pred[], f32[8]), f32[8], s32[]) async-start(b, p), calls=wrapped
  ROOT done = f32[8] async-done(start)
}"""

ASYNC_TUPLE = """
wrapped {
  wp = f32[8] parameter(0)
  ROOT op = (f32[8], f32[4]) custom-call(wp), custom_call_target="foo"
}
ENTRY main {
  p = f32[8] parameter(0)
  start = ((f32[8]), (f32[8], f32[4]), s32[]) async-start(p), calls=wrapped
  update = ((f32[8]), (f32[8], f32[4]), s32[]) async-update(start)
  ROOT done = (f32[8], f32[4]) async-done(update)
}"""

LATE_OPERAND = """
wrapped {
  w0 = f32[8] parameter(0)
  w1 = f32[8] parameter(1)
  ROOT op = f32[8] add(w0, w1)
}
ENTRY main {
  p0 = f32[8] parameter(0)
  p1 = f32[8] parameter(1)
  start = ((f32[8], ()), f32[8], s32[]) async-start(p0), calls=wrapped
  update = ((f32[8], f32[8]), f32[8], s32[]) async-update(start, p1)
  ROOT done = f32[8] async-done(update)
}"""

LATE_OUTPUT = """
wrapped {
  w0 = f32[8] parameter(0)
  ROOT op = f32[8] negate(w0)
}
ENTRY main {
  p0 = f32[8] parameter(0)
  start = ((), (), s32[]) async-start(), calls=wrapped
  update = ((f32[8]), f32[8], s32[]) async-update(start, p0)
  ROOT done = f32[8] async-done(update)
}"""

MISMATCHED_CONTEXT = """
wrapped {
  w0 = f32[8] parameter(0)
  ROOT op = f32[8] negate(w0)
}
ENTRY main {
  p0 = f32[8] parameter(0)
  start = ((f32[8]), f32[8], s32[]) async-start(p0), calls=wrapped
  update = ((f32[8]), f32[8]) async-update(start)
  ROOT done = f32[8] async-done(update)
}"""

SEND = """
ENTRY main {
  p = f32[] parameter(0)
  tok = token[] after-all()
  send = (f32[], u32[], token[]) send(p, tok), channel_id=1
  ROOT done = token[] send-done(send), channel_id=1
}"""

RECV = """
ENTRY main {
  tok = token[] after-all()
  recv = (f32[], u32[], token[]) recv(tok), channel_id=1
  done = (f32[], token[]) recv-done(recv), channel_id=1
  ROOT data = f32[] get-tuple-element(done), index=0
}"""

SET_SIZE = """
ENTRY main {
  p = f32[<=8] parameter(0)
  n = s32[] parameter(1)
  ROOT s = f32[<=8] set-dimension-size(p, n), dimensions={0}
}"""


IDENTITIES = """
yes { ROOT yp = f32[] parameter(0) }
no { ROOT np = f32[] parameter(0) }
ENTRY main {
  p = pred[] constant(true)
  c1 = f32[] constant(56)
  c2 = f32[] constant(12)
  ROOT cond = f32[] conditional(p, c1, c2), true_computation=yes, false_computation=no
}"""

TUPLE_CONDITIONAL = """
yes { yp = (f32[], f32[]) parameter(0)
  yx = f32[] get-tuple-element(yp), index=0
  yy = f32[] get-tuple-element(yp), index=1
  ROOT yadd = f32[] add(yx, yy) }
no { np = (f32[], f32[]) parameter(0)
  nx = f32[] get-tuple-element(np), index=0
  ny = f32[] get-tuple-element(np), index=1
  ROOT nsub = f32[] subtract(nx, ny) }
ENTRY main {
  p = pred[] constant(true)
  c1 = f32[] constant(56)
  c2 = f32[] constant(12)
  t = (f32[], f32[]) tuple(c1, c2)
  ROOT cond = f32[] conditional(p, t, t), true_computation=yes, false_computation=no
}"""

NESTED_CONDITIONALS = """
c1 { a1 = f32[] parameter(0)  ROOT ceil = f32[] ceil(a1) }
c2 { a2 = f32[] parameter(0)  ROOT floor = f32[] floor(a2) }
c3 { a3 = f32[] parameter(0)  ROOT negate = f32[] negate(a3) }
inner {
  ip = (pred[], f32[], f32[]) parameter(0)
  iw = pred[] get-tuple-element(ip), index=0
  i1 = f32[] get-tuple-element(ip), index=1
  i2 = f32[] get-tuple-element(ip), index=2
  ROOT inner_cond = f32[] conditional(iw, i1, i2), true_computation=c1, false_computation=c2
}
ENTRY main {
  w1 = pred[] constant(true)
  w2 = pred[] constant(false)
  x1 = f32[] constant(1)
  x2 = f32[] constant(2)
  x3 = f32[] constant(3)
  t = (pred[], f32[], f32[]) tuple(w2, x1, x2)
  ROOT cond = f32[] conditional(w1, t, x3), true_computation=inner, false_computation=c3
}"""

ADD_DEPENDENCY = """
ENTRY main {
  p = f32[3] parameter(0)
  tok = token[] after-all()
  ROOT d = f32[3] add-dependency(p, tok)
}"""

_SUM = (
    "sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }"
)

ALL_REDUCE = f"""
{_SUM}
ENTRY main {{
  p0 = f32[4] parameter(0)
  start = f32[4] all-reduce-start(p0), to_apply=sum, replica_groups={{}}
  ROOT done = f32[4] all-reduce-done(start)
}}"""

ALL_REDUCE_TWO = f"""
{_SUM}
ENTRY main {{
  p0 = f32[4] parameter(0)
  p1 = f32[4] parameter(1)
  start = (f32[4], f32[4]) all-reduce-start(p0, p1), to_apply=sum, replica_groups={{}}
  ROOT done = (f32[4], f32[4]) all-reduce-done(start)
}}"""

PERMUTE_TWO = """
ENTRY main {
  p0 = f32[4] parameter(0)
  p1 = f32[4] parameter(1)
  start = ((f32[4], f32[4]), (f32[4], f32[4])) collective-permute-start(p0, p1), source_target_pairs={{0,1},{1,0}}
  ROOT done = (f32[4], f32[4]) collective-permute-done(start)
}"""

GATHER_TWO = """
ENTRY main {
  p0 = f32[4] parameter(0)
  p1 = f32[4] parameter(1)
  start = ((f32[4], f32[4]), (f32[8], f32[8])) all-gather-start(p0, p1), dimensions={0}, replica_groups={}
  ROOT done = (f32[8], f32[8]) all-gather-done(start)
}"""

MIXED_CONTEXTS = """
callee { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
ENTRY main {
  p = f32[] parameter(0)
  a = f32[4] parameter(1)
  m = f32[4] map(a), dimensions={0}, to_apply=callee
  ROOT c = f32[] call(p), to_apply=callee
}"""

MIXED_CALLERS = """
callee { x = (f32[]) parameter(0)  ROOT n = (f32[]) copy(x) }
cond { cp = (f32[]) parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main {
  p = (f32[]) parameter(0)
  w = (f32[]) while(p), condition=cond, body=callee
  ROOT c = (f32[]) call(w), to_apply=callee
}"""

PASSING_WHILE_CALLED_TWICE = """
callee { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
body { bp = (f32[]) parameter(0)  bg = f32[] get-tuple-element(bp), index=0
  ROOT br = (f32[]) tuple(bg) }
cond { cp = (f32[]) parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main {
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  init = (f32[]) tuple(c1)
  w = (f32[]) while(init), condition=cond, body=body
  g = f32[] get-tuple-element(w), index=0
  a = f32[] call(g), to_apply=callee
  b = f32[] call(c2), to_apply=callee
  ROOT add = f32[] add(a, b)
}"""
