"""Bad plans that are forced: a lifetime across a loop, an update that overlaps itself."""

from __future__ import annotations

import pytest

import msa
from msa.errors import SanitizerError
from msa.runtime.proving.prove import prove_lowered

TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=1024)
FAST = "s32[16]{0:S(1)}"

LOOP = f"""
HloModule loop, is_scheduled=true

body {{
  state = (s32[], {FAST}, s32[16]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  persistent = {FAST} get-tuple-element(state), index=1
  sum = s32[16] get-tuple-element(state), index=2
  read = s32[16] add(persistent, sum)
  later = {FAST} negate(read)
  used = s32[16] abs(later)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT next = (s32[], {FAST}, s32[16]) tuple(j, persistent, used)
}}

test {{
  again = (s32[], {FAST}, s32[16]) parameter(0)
  k = s32[] get-tuple-element(again), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(k, three), direction=LT
}}

ENTRY main {{
  p = s32[16] parameter(0)
  q = s32[16] parameter(1)
  fast = {FAST} copy(p)
  start = s32[] constant(0)
  first = s32[] copy(start)
  zero = s32[16] copy(q)
  init = (s32[], {FAST}, s32[16]) tuple(first, fast, zero)
  loop = (s32[], {FAST}, s32[16]) while(init), condition=test, body=body
  ROOT out = s32[16] get-tuple-element(loop), index=2
}}
"""


@pytest.mark.parametrize("offset", [0, 4, 60])
def test_what_a_loop_carries_keeps_its_place_on_every_trip_c4(offset: int) -> None:
    """The textual uses of `persistent` are over when `later` is made; it is read again
    on the next trip. Places of 64 bytes each: apart they take 128."""
    original = msa.parse(LOOP.replace(":S(1)", ""))
    planned = msa.parse(LOOP)
    apart = {"fast{}": (0, 64), "later{}": (64, 64)}
    prove_lowered(original, planned, TARGET, chunks=apart, seed=1)
    forced = {"fast{}": (0, 64), "later{}": (offset, 64)}
    with pytest.raises(SanitizerError, match="overwritten") as caught:
        prove_lowered(original, planned, TARGET, chunks=forced, seed=1)
    assert "later{}" in caught.value.parties


UPDATE = """
HloModule update, is_scheduled=true

inner {
  b = s32[4] parameter(0)
  part = s32[3] slice(b), slice={[0:3]}
  at = s32[] constant(1)
  ROOT u = s32[4] dynamic-update-slice(b, part, at)
}

ENTRY main {
  x = s32[4] parameter(0)
  ones = s32[4] parameter(1)
  base = s32[4] add(x, ones)
  ROOT out = s32[4] fusion(base), kind=kLoop, calls=inner
}
"""
APART = """
HloModule update, is_scheduled=true

ENTRY main {
  x = s32[4] parameter(0)
  ones = s32[4] parameter(1)
  base = s32[4]{0:S(1)} add(x, ones)
  part = s32[3]{0:S(1)} slice(base), slice={[0:3]}
  at = s32[] constant(1)
  there = s32[4]{0:S(1)} dynamic-update-slice(base, part, at)
  ROOT out = s32[4] copy(there)
}
"""
INPUTS = [[0, 1, 2, 3], [1, 1, 1, 1]]


def test_an_update_that_reads_what_it_overwrites_is_caught_c8() -> None:
    module = msa.parse(UPDATE)
    assert msa.execute(module, INPUTS).tolist() == [1, 1, 2, 3]
    with pytest.raises(SanitizerError) as caught:
        prove_lowered(module, module, TARGET, inputs=INPUTS, seed=1)
    assert caught.value.kind == "in-place hazard"


@pytest.mark.parametrize("offset", [0, 4, 12])
def test_a_slice_on_top_of_its_base_is_caught_c8(offset: int) -> None:
    original = msa.parse(APART.replace(":S(1)", ""))
    planned = msa.parse(APART)
    assert msa.execute(planned, INPUTS).tolist() == [1, 1, 2, 3]
    apart = {"base{}": (0, 16), "part{}": (16, 12)}
    prove_lowered(original, planned, TARGET, chunks=apart, inputs=INPUTS, seed=1)
    forced = {"base{}": (0, 16), "part{}": (offset, 12)}
    with pytest.raises(SanitizerError):
        prove_lowered(original, planned, TARGET, chunks=forced, inputs=INPUTS, seed=1)
