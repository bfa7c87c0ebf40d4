"""Programs and plans of them, written by hand: text before, text after, offsets.

Chunks are multiples of 1024 bytes; `f32[256]` is 1024 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msa
from msa.assignment.verification import verify_plan
from msa.hlo import Module
from msa.target import Target

TARGET = Target.preset("tpu_v5e").replace(alternate_memory_bytes=8192)


@dataclass(frozen=True)
class PlannedModule:
    """A program, a plan of it, and where the plan puts things."""

    before: str
    after: str
    chunks: dict[str, tuple[int, int]]
    scoped: dict[str, tuple[int, int]] = field(default_factory=dict)
    capacity: int = 8192
    edit: Callable[[Module], None] | None = None

    def verify(self) -> None:
        """Check it with the verifier under test."""
        module = msa.parse(self.after, verify=False)
        if self.edit is not None:
            self.edit(module)
        verify_plan(
            msa.parse(self.before),
            module,
            self.chunks,
            TARGET.replace(alternate_memory_bytes=self.capacity),
            scoped=self.scoped,
        )


STRAIGHT = PlannedModule(
    before="""
HloModule straight, is_scheduled=true, input_output_alias={ {1}: (2, {}, may-alias) }
ENTRY main {
  x = f32[256]{0} parameter(0)
  w = f32[256]{0} parameter(1)
  k = f32[256]{0} parameter(2)
  a = f32[256]{0} negate(x)
  b = f32[256]{0} exponential(a)
  c = f32[256]{0} subtract(b, w)
  d = f32[256]{0} multiply(c, c)
  r = f32[256]{0} reverse(d), dimensions={0}
  e = f32[256]{0} subtract(r, a)
  n = f32[256]{0} add(k, e)
  ROOT t = (f32[256]{0}, f32[256]{0}) tuple(e, n)
}
""",
    after="""
HloModule straight, is_scheduled=true, input_output_alias={ {1}: (2, {}, may-alias) }
ENTRY main {
  x = f32[256]{0} parameter(0)
  w = f32[256]{0} parameter(1)
  k = f32[256]{0} parameter(2)
  ws = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(w)
  a = f32[256]{0:S(1)} negate(x)
  b = f32[256]{0:S(1)} exponential(a)
  as = (f32[256]{0}, f32[256]{0:S(1)}, u32[]) copy-start(a)
  wd = f32[256]{0:S(1)} copy-done(ws)
  c = f32[256]{0:S(1)} subtract(b, wd)
  ad = f32[256]{0} copy-done(as)
  d = f32[256]{0:S(1)} multiply(c, c)
  as2 = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(ad)
  r = f32[256]{0:S(1)} reverse(d), dimensions={0}
  ad2 = f32[256]{0:S(1)} copy-done(as2)
  e = f32[256]{0} subtract(r, ad2)
  n = f32[256]{0} add(k, e)
  ROOT t = (f32[256]{0}, f32[256]{0}) tuple(e, n)
}
""",
    chunks={
        "wd{}": (0, 1024),
        "a{}": (1024, 1024),
        "b{}": (2048, 1024),
        "c{}": (2048, 1024),
        "d{}": (1024, 1024),
        "r{}": (3072, 1024),
        "ad2{}": (0, 1024),
    },
    scoped={"b": (4096, 2048), "r": (6144, 1024)},
)

LOOP = PlannedModule(
    before="""
HloModule loop, is_scheduled=true
body {
  p = (s32[], f32[256]{0}, f32[256]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[256]{0} get-tuple-element(p), index=1
  w = f32[256]{0} get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[256]{0} subtract(v, w)
  s = f32[256]{0} sine(u)
  z = f32[256]{0} multiply(s, w)
  ROOT q = (s32[], f32[256]{0}, f32[256]{0}) tuple(j, z, w)
}
cond {
  cp = (s32[], f32[256]{0}, f32[256]{0}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(ci, ten), direction=LT
}
ENTRY main {
  x = f32[256]{0} parameter(0)
  y = f32[256]{0} parameter(1)
  nil = s32[] constant(0)
  zero = s32[] copy(nil)
  v0 = f32[256]{0} negate(x)
  w0 = f32[256]{0} exponential(y)
  init = (s32[], f32[256]{0}, f32[256]{0}) tuple(zero, v0, w0)
  loop = (s32[], f32[256]{0}, f32[256]{0}) while(init), condition=cond, body=body
  v1 = f32[256]{0} get-tuple-element(loop), index=1
  ROOT out = f32[256]{0} cosine(v1)
}
""",
    after="""
HloModule loop, is_scheduled=true
body {
  p = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[256]{0:S(1)} get-tuple-element(p), index=1
  w = f32[256]{0:S(1)} get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[256]{0:S(1)} subtract(v, w)
  s = f32[256]{0:S(1)} sine(u)
  z = f32[256]{0:S(1)} multiply(s, w)
  ROOT q = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}) tuple(j, z, w)
}
cond {
  cp = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(ci, ten), direction=LT
}
ENTRY main {
  x = f32[256]{0} parameter(0)
  y = f32[256]{0} parameter(1)
  nil = s32[] constant(0)
  zero = s32[] copy(nil)
  v0 = f32[256]{0:S(1)} negate(x)
  w0 = f32[256]{0:S(1)} exponential(y)
  init = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}) tuple(zero, v0, w0)
  loop = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}) while(init), condition=cond, body=body
  v1 = f32[256]{0:S(1)} get-tuple-element(loop), index=1
  ROOT out = f32[256]{0} cosine(v1)
}
""",
    chunks={
        "v0{}": (0, 1024),
        "w0{}": (1024, 1024),
        "u{}": (2048, 1024),
        "s{}": (3072, 1024),
    },
)

PARENT = PlannedModule(
    before=LOOP.before,
    after="""
HloModule loop, is_scheduled=true
body {
  p = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}, f32[256]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[256]{0:S(1)} get-tuple-element(p), index=1
  w = f32[256]{0:S(1)} get-tuple-element(p), index=2
  wp = f32[256]{0} get-tuple-element(p), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[256]{0:S(1)} subtract(v, w)
  s = f32[256]{0:S(1)} sine(u)
  wps = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(wp)
  wpd = f32[256]{0:S(1)} copy-done(wps)
  z = f32[256]{0:S(1)} multiply(s, wpd)
  ROOT q = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}, f32[256]{0}) tuple(j, z, wpd, wp)
}
cond {
  cp = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}, f32[256]{0}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  ten = s32[] constant(10)
  ROOT lt = pred[] compare(ci, ten), direction=LT
}
ENTRY main {
  x = f32[256]{0} parameter(0)
  y = f32[256]{0} parameter(1)
  nil = s32[] constant(0)
  zero = s32[] copy(nil)
  v0 = f32[256]{0:S(1)} negate(x)
  w0 = f32[256]{0} exponential(y)
  w0s = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(w0)
  w0d = f32[256]{0:S(1)} copy-done(w0s)
  init = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}, f32[256]{0}) tuple(zero, v0, w0d, w0)
  loop = (s32[], f32[256]{0:S(1)}, f32[256]{0:S(1)}, f32[256]{0}) while(init), condition=cond, body=body
  v1 = f32[256]{0:S(1)} get-tuple-element(loop), index=1
  ROOT out = f32[256]{0} cosine(v1)
}
""",
    chunks={
        "v0{}": (0, 1024),
        "w0d{}": (1024, 1024),
        "u{}": (2048, 1024),
        # The loop's w is not needed between `u` and the copy that brings it back.
        "s{}": (3072, 1024),
    },
)

BRANCHES = PlannedModule(
    before="""
HloModule branches, is_scheduled=true
left {
  lp = f32[256]{0} parameter(0)
  l1 = f32[256]{0} sine(lp)
  l2 = f32[256]{0} cosine(l1)
  ROOT l3 = f32[256]{0} tanh(l2)
}
right {
  rp = f32[256]{0} parameter(0)
  r1 = f32[256]{0} negate(rp)
  r2 = f32[256]{0} reverse(r1), dimensions={0}
  ROOT r3 = f32[256]{0} subtract(r2, rp)
}
ENTRY main {
  c = pred[] parameter(0)
  x = f32[256]{0} parameter(1)
  a = f32[256]{0} exponential(x)
  b = f32[256]{0} negate(x)
  k = f32[256]{0} conditional(c, a, b), true_computation=left, false_computation=right
  ROOT out = f32[256]{0} cosine(k)
}
""",
    after="""
HloModule branches, is_scheduled=true
left {
  lp = f32[256]{0:S(1)} parameter(0)
  l1 = f32[256]{0:S(1)} sine(lp)
  l2 = f32[256]{0:S(1)} cosine(l1)
  ROOT l3 = f32[256]{0:S(1)} tanh(l2)
}
right {
  rp = f32[256]{0:S(1)} parameter(0)
  r1 = f32[256]{0:S(1)} negate(rp)
  r2 = f32[256]{0:S(1)} reverse(r1), dimensions={0}
  ROOT r3 = f32[256]{0:S(1)} subtract(r2, rp)
}
ENTRY main {
  c = pred[] parameter(0)
  x = f32[256]{0} parameter(1)
  a = f32[256]{0:S(1)} exponential(x)
  b = f32[256]{0:S(1)} negate(x)
  k = f32[256]{0:S(1)} conditional(c, a, b), true_computation=left, false_computation=right
  ROOT out = f32[256]{0} cosine(k)
}
""",
    # Either branch may use the other's room: `b` is dead on the left, `a` on the right.
    chunks={
        "a{}": (0, 1024),
        "b{}": (1024, 1024),
        "l1{}": (1024, 1024),
        "l2{}": (0, 1024),
        "l3{}": (2048, 1024),
        "r1{}": (0, 1024),
        "r2{}": (3072, 1024),
    },
)

SLICES = PlannedModule(
    before="""
HloModule slices, is_scheduled=true
ENTRY main {
  w = f32[4,256]{1,0} parameter(0)
  x = f32[4,256]{1,0} parameter(1)
  a = f32[4,256]{1,0} negate(x)
  ROOT b = f32[4,256]{1,0} subtract(a, w)
}
""",
    after="""
HloModule slices, is_scheduled=true
ENTRY main {
  w = f32[4,256]{1,0} parameter(0)
  sa = ((f32[4,256]{1,0}), f32[2,256]{1,0:S(1)}, s32[]) slice-start(w), slice={[0:2], [0:256]}
  x = f32[4,256]{1,0} parameter(1)
  sb = ((f32[4,256]{1,0}), f32[2,256]{1,0:S(1)}, s32[]) slice-start(w), slice={[2:4], [0:256]}
  a = f32[4,256]{1,0} negate(x)
  d1 = f32[2,256]{1,0:S(1)} slice-done(sa)
  d2 = f32[2,256]{1,0:S(1)} slice-done(sb)
  j = f32[4,256]{1,0:S(1)} custom-call(d1, d2), custom_call_target="ConcatBitcast"
  ROOT b = f32[4,256]{1,0} subtract(a, j)
}
""",
    chunks={"d1{}": (1024, 2048), "d2{}": (3072, 2048), "j{}": (1024, 4096)},
)

IN_PLACE = PlannedModule(
    before="""
HloModule in_place, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  p = f32[256]{0} parameter(0)
  u = f32[128]{0} parameter(1)
  i = s32[] parameter(2)
  y = f32[256]{0} negate(p)
  d = f32[256]{0} dynamic-update-slice(y, u, i)
  z = f32[256]{0} sine(d)
  ROOT r = f32[256]{0} dynamic-update-slice(p, u, i)
}
""",
    after="""
HloModule in_place, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  p = f32[256]{0} parameter(0)
  ps = (f32[256]{0:S(1)}, f32[256]{0}, u32[]) copy-start(p)
  u = f32[128]{0} parameter(1)
  i = s32[] parameter(2)
  pd = f32[256]{0:S(1)} copy-done(ps)
  y = f32[256]{0:S(1)} negate(pd)
  d = f32[256]{0:S(1)} dynamic-update-slice(y, u, i)
  z = f32[256]{0} sine(d)
  ROOT r = f32[256]{0} dynamic-update-slice(p, u, i)
}
""",
    chunks={"pd{}": (0, 1024), "y{}": (1024, 1024)},
)

FUSED = PlannedModule(
    before="""
HloModule fused, is_scheduled=true
fused {
  fp = f32[256]{0} parameter(0)
  fq = f32[256]{0} parameter(1)
  fa = f32[256]{0} subtract(fp, fq)
  ROOT fr = f32[256]{0} sine(fa)
}
ENTRY main {
  x = f32[256]{0} parameter(0)
  y = f32[256]{0} parameter(1)
  a = f32[256]{0} negate(x)
  f = f32[256]{0} fusion(a, y), kind=kLoop, calls=fused
  ROOT g = f32[256]{0} cosine(f)
}
""",
    after="""
HloModule fused, is_scheduled=true
fused {
  fp = f32[256]{0} parameter(0)
  fq = f32[256]{0} parameter(1)
  fa = f32[256]{0} subtract(fp, fq)
  ROOT fr = f32[256]{0} sine(fa)
}
ENTRY main {
  x = f32[256]{0} parameter(0)
  y = f32[256]{0} parameter(1)
  a = f32[256]{0:S(1)} negate(x)
  f = f32[256]{0:S(1)} fusion(a, y), kind=kLoop, calls=fused
  ROOT g = f32[256]{0} cosine(f)
}
""",
    chunks={"a{}": (0, 1024), "f{}": (0, 1024)},
)

PLANS = {
    "straight": STRAIGHT,
    "loop": LOOP,
    "parent": PARENT,
    "branches": BRANCHES,
    "slices": SLICES,
    "in_place": IN_PLACE,
    "fused": FUSED,
}
