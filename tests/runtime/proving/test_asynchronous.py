"""What runs asynchronously may use its own memory all the way."""

from __future__ import annotations

import pytest

import msa
from msa.errors import SanitizerError
from msa.runtime import prove_lowered

TEXT = """HloModule m, is_scheduled=true
fused {
  q = f32[64]{0} parameter(0)
  t = (f32[64]{0}, f32[64]{0}) tuple(q, q)
  u = f32[64]{0} get-tuple-element(t), index=1
  ROOT s = f32[64]{0} multiply(u, u)
}
inner {
  p = f32[64]{0} parameter(0)
  i = f32[64]{0:S(1)} negate(p)
  ROOT r = f32[64]{0} fusion(i), kind=kLoop, calls=fused
}
ENTRY e {
  x = f32[64]{0} parameter(0)
  before = f32[64]{0:S(1)} abs(x)
  taken = f32[64]{0} add(before, x)
  start = ((f32[64]{0}), f32[64]{0}, u32[]) async-start(taken), calls=inner
  middle = f32[64]{0:S(1)} abs(x)
  used = f32[64]{0} add(middle, taken)
  done = f32[64]{0} async-done(start)
  after = f32[64]{0:S(1)} abs(done)
  ROOT y = f32[64]{0} add(after, used)
}"""
TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=1024)


def prove(inner: int, middle: int) -> None:
    module = msa.parse(TEXT)
    chunks = {
        "before{}": (0, 256),
        "i{}": (inner, 256),
        "middle{}": (middle, 256),
        "after{}": (0, 256),
    }
    prove_lowered(module, module, TARGET, chunks=chunks)


@pytest.mark.parametrize(("inner", "middle"), [(0, 256), (512, 0), (256, 512)])
def test_places_of_their_own_are_well(inner: int, middle: int) -> None:
    """Before the start and after the done they are free for others."""
    prove(inner, middle)


@pytest.mark.parametrize("inner", [0, 128, 252])
def test_values_between_start_and_done_need_other_places(inner: int) -> None:
    """`middle` is made and read in flight: neither end of it would show."""
    with pytest.raises(SanitizerError, match="overwritten by scratch of i"):
        prove(inner, 0 if inner else 128)
