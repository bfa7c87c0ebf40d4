"""The checker sees through what only names or moves a value."""

from __future__ import annotations

import msa
from msa.assignment.verification.tracing import Tracer


def test_barriers_and_copies_keep_the_value() -> None:
    module = msa.parse("""
ENTRY e { x = f32[4] parameter(0)
  t = (f32[4]) tuple(x)
  b = (f32[4]) opt-barrier(t)
  g = f32[4] get-tuple-element(b), index=0
  s = (f32[4]{0:S(1)}, f32[4], u32[]) copy-start(g)
  d = f32[4]{0:S(1)} copy-done(s)
  n = f32[4] negate(d)
  ROOT r = f32[4] add(d, n) }""")
    tracer = Tracer(module)
    by_name = {i.name: i for i in module.entry.instructions}
    assert tracer.origin(by_name["d"], ()) == tracer.origin(by_name["x"], ())
    assert tracer.origin(by_name["n"], ()) != tracer.origin(by_name["x"], ())
