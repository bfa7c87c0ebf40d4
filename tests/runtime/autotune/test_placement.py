"""Tuning the planner's ratios (PT-12)."""

from __future__ import annotations

from pathlib import Path

import pytest

import msa
from msa.assignment.options import CostAnalysisPicker, InstructionCountPicker
from msa.errors import OptionsError
from msa.runtime.autotune import AutotuneCache, tune_placement

ROOT = Path(__file__).resolve().parents[3]
TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="16MiB")
TEXT = """
HloModule m, is_scheduled=true
ENTRY e {
  p = f32[1024,256] parameter(0)
  w = f32[1024,256] parameter(1)
  n = f32[1024,256] negate(p)
  s = f32[1024,256] sine(n)
  ROOT a = f32[1024,256] add(s, w)
}
"""


def test_the_best_plan_of_all_candidates_is_kept_PT12() -> None:
    """Each trial is the plan made by hand with those ratios; the least counts."""
    module = msa.load(ROOT / "examples" / "gpt2_small_forward.hlo.gz")
    pairs = ((0.8, 1.5), (1.0, 8.0))
    found = tune_placement(module, TARGET, cache=AutotuneCache(), overlaps=pairs)
    seconds = []
    for least, preferred in pairs:
        picker = CostAnalysisPicker(least, preferred)
        options = msa.Options(prefetch_interval_picker=picker)
        seconds.append(msa.assign(module, TARGET, options).estimate.after_seconds)
    assert [trial.seconds for trial in found.trials] == seconds
    assert found.seconds == min(seconds)
    plan = msa.assign(module, TARGET, found.options)
    assert plan.estimate.after_seconds == found.seconds


def test_known_programs_are_not_planned_again_PT12() -> None:
    """Names do not matter; the target and the schedule do."""
    cache = AutotuneCache()
    first = tune_placement(msa.parse(TEXT), TARGET, cache=cache)
    assert (len(first.trials), first.cached) == (4, False)
    renamed = msa.parse(TEXT.replace("sine(n)", "sine(nn)").replace(" n =", " nn ="))
    again = tune_placement(renamed, TARGET, cache=cache, overlaps=())
    assert (again.options, again.seconds) == (first.options, first.seconds)
    assert again.cached
    for change in ({"alternate_memory_bytes": "8MiB"}, {"alignment_bytes": 64}):
        other = tune_placement(msa.parse(TEXT), TARGET.replace(**change), cache=cache)
        assert not other.cached
    assert not tune_placement(
        msa.parse(TEXT), TARGET, cache=cache, options=msa.Options(max_retries=2)
    ).cached


def test_bad_requests_are_refused_PT12() -> None:
    module, cache = msa.parse(TEXT), AutotuneCache()
    with pytest.raises(OptionsError, match="there is none"):
        tune_placement(module, TARGET, cache=cache, overlaps=())
    count = msa.Options(prefetch_interval_picker=InstructionCountPicker(1, 5))
    with pytest.raises(OptionsError, match="CostAnalysisPicker"):
        tune_placement(module, TARGET, cache=cache, options=count)
