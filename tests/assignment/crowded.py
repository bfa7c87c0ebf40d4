"""A program with two values of which one keeps the other out of 2048 bytes."""

CROWDED = """
HloModule crowded, is_scheduled=true
ENTRY main {
  p = f32[256]{0} parameter(0)
  q = f32[512]{0} parameter(1)
  a = f32[256]{0} negate(p)
  b = f32[512]{0} exponential(q)
  c = f32[256]{0} add(a, a)
  d = f32[512]{0} sine(b)
  ROOT t = (f32[256]{0}, f32[512]{0}) tuple(c, d)
}
"""
