"""Inputs whose memory a result takes over are not evicted over themselves."""

from __future__ import annotations

import pytest

import msa
from msa.assignment import algorithm
from msa.errors import PlanError

# The slice reads the input until it is done; behind the barrier the input has
# another name, under which it goes to alternate memory and back.
READ_LATE = """
HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  p = f32[256] parameter(0)
  q = f32[4,64] parameter(1)
  s = ((f32[256]), f32[128], u32[]) slice-start(p), slice={[128:256]}
  b = f32[4,64] bitcast(p)
  h = f32[4,64] tanh(b)
  t = (f32[4,64], f32[4,64]) tuple(b, h)
  o = (f32[4,64], f32[4,64]) opt-barrier(t)
  g = f32[4,64] get-tuple-element(o), index=0
  k = f32[4,64] get-tuple-element(o), index=1
  n = f32[4,64] negate(k)
  m = f32[4,64] add(n, q)
  d = f32[128] slice-done(s)
  ROOT r = (f32[256], f32[4,64], f32[128]) tuple(p, m, d)
}
"""


def plan() -> msa.Assignment:
    options = msa.Options(
        prefetch_interval_picker=msa.assignment.options.InstructionCountPicker(1, 1000),
        buffer_interval_comparator="spatial",
        always_spill_to_default_memory=True,
        is_use_allowed_in_alternate_mem_fn=lambda u: (
            u.instruction.name not in ("s", "d")
        ),
    )
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=4096)
    return msa.assign(msa.parse(READ_LATE), target, options)


def test_an_input_that_is_still_read_stays_in_place() -> None:
    made = plan()
    made.verify()
    made.prove()


def test_the_eviction_would_break_the_plan(monkeypatch) -> None:
    monkeypatch.setattr(algorithm, "keep_inputs_in_place", lambda state: None)
    with pytest.raises(PlanError, match="still needed"):
        plan().verify()
