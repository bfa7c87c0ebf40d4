"""Calls give way to the instructions of their callees."""

from __future__ import annotations

import numpy as np
import pytest

import msa
from msa.analysis.copy_insertion.inline_calls import inline_calls

TEXT = """HloModule m{S}
inner { a = f32[4] parameter(0)
  n = f32[4] negate(a)
  ROOT t = (f32[4], f32[4]) tuple(n, a) }
outer { a = f32[4] parameter(0)
  c = (f32[4], f32[4]) call(a), to_apply=inner
  g = f32[4] get-tuple-element(c), index=0
  ROOT n = f32[4] exponential(g) }
same { ROOT p = f32[4] parameter(0) }
ENTRY e { x = f32[4] parameter(0)
  y = f32[4] call(x), to_apply=outer
  z = f32[4] call(y), to_apply=outer
  w = f32[4] call(z), to_apply=same
  ROOT r = f32[4] add(w, y) }
"""


@pytest.mark.parametrize("scheduled", [False, True])
def test_no_call_is_left_and_results_are_equal(scheduled: bool) -> None:
    text = TEXT.replace("{S}", ", is_scheduled=true" if scheduled else "")
    module = msa.parse(text)
    inlined = module.clone()
    assert inline_calls(inlined) == 5
    msa.hlo.verify(inlined)
    assert len(inlined.computations) == 1
    assert all(x.opcode != "call" for x in inlined.entry.instructions)
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    assert msa.execute(inlined, [x]).tolist() == msa.execute(module, [x]).tolist()
    assert inlined.is_scheduled is scheduled
