"""Captures: what they say is what the module and the simulation say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import msa
from msa.errors import FileFormatError
from msa.report import (
    capture_from_json,
    capture_module,
    capture_plan,
    capture_to_json,
    compare,
    plan_diff,
)
from msa.report.capture import SCHEMA, PlanCapture
from msa.report.page import plan_page

MIB = 1 << 20
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt2_small_forward.hlo.gz"
TARGET = msa.Target.preset("tpu_v5e")
# Elementwise work on 4 MiB arrays: bound by memory, so places decide the time.
HAND_PLACED = """\
HloModule m, is_scheduled=true

ENTRY main {
  a = f32[1024,1024]{1,0} parameter(0)
  s = (f32[1024,1024]{1,0:S(1)}, f32[1024,1024]{1,0}, u32[]) copy-start(a)
  d = f32[1024,1024]{1,0:S(1)} copy-done(s)
  b = f32[1024,1024]{1,0:S(1)} negate(d), metadata={op_name="f/neg" source_file="f.py" source_line=7}
  ROOT c = f32[1024,1024]{1,0} exponential(b)
}
"""


@pytest.fixture(scope="module")
def placed() -> PlanCapture:
    chunks = {"d{}": (0, 4 * MIB), "b{}": (4 * MIB, 4 * MIB)}
    return capture_module(msa.parse(HAND_PLACED), TARGET, chunks=chunks)


@pytest.fixture(scope="module")
def plan() -> msa.Assignment:
    module = msa.load(EXAMPLE)
    return msa.assign(module, TARGET.replace(alternate_memory_bytes="16MiB"))


def test_stays_offsets_and_sources(placed: PlanCapture) -> None:
    rows = {row["name"]: row for row in placed["buffers"]}
    assert set(rows) == {"d{}", "b{}"}
    # Steps: a 0, copy-start 1, copy-done 2, b 3, c 4. The copy writes from 1 on.
    assert (rows["d{}"]["start"], rows["d{}"]["end"]) == (1, 4)
    assert (rows["b{}"]["start"], rows["b{}"]["end"]) == (3, 5)
    assert rows["d{}"]["value"] == "a{}"
    assert rows["d{}"]["kind"] == "prefetch"
    assert rows["b{}"]["offset"] == 4 * MIB
    assert rows["b{}"]["source"] == "f.py:7"
    assert rows["d{}"]["uses"] == ["b"]


def test_the_copy(placed: PlanCapture) -> None:
    (copy,) = placed["copies"]
    assert (copy["start_step"], copy["done_step"]) == (1, 2)
    assert copy["bytes"] == 4 * MIB
    # Nothing runs between its start and its end: all of it is waited for.
    assert copy["stall"] == pytest.approx(4 * MIB / 819e9)


def test_wins_are_the_difference_that_slow_memory_would_make(
    placed: PlanCapture,
) -> None:
    slow, fast = 4 * MIB / 819e9, 4 * MIB / 8.19e12
    rows = {row["value"]: row for row in placed["wins"]}
    # b is written once and read once; a's copy is read once but waited for.
    assert rows["b{}"]["seconds"] == pytest.approx(2 * (slow - fast), rel=1e-6)
    assert rows["a{}"]["seconds"] == pytest.approx(-fast, rel=1e-5)
    (loss,) = [row for row in placed["losses"] if row["value"] == "c{}"]
    assert loss["seconds"] == pytest.approx(slow - fast, rel=1e-6)


def test_too_large_values_say_so() -> None:
    small = TARGET.replace(alternate_memory_bytes="1MiB")
    capture = capture_module(msa.parse(HAND_PLACED), small)
    assert {row["reason"] for row in capture["losses"]} == {
        "larger than the fast memory"
    }


def test_the_capture_of_a_plan_agrees_with_the_plan(plan: msa.Assignment) -> None:
    capture = capture_plan(plan)
    assert capture["schema"] == SCHEMA
    assert capture["alternate_peak_bytes"] == plan.alternate_peak_bytes
    assert capture["alternate_memory_bytes"] == 16 * MIB
    assert len(capture["copies"]) == len(plan.copies)
    assert capture["estimate"]["after_seconds"] == plan.estimate.after_seconds
    assert len(capture["occupancy"]) == len(capture["steps"]["names"])
    placed = {row["offset"]: row for row in capture["buffers"]}
    assert -1 not in placed
    total = 0.0
    steps = capture["steps"]
    for compute, memory, stall, trip in zip(
        steps["compute"], steps["memory"], steps["stall"], steps["trip"], strict=True
    ):
        total += (max(compute, memory) + stall) * trip
    assert total == pytest.approx(plan.estimate.after_seconds, rel=1e-9)


def test_buffers_of_a_plan_never_overlap(plan: msa.Assignment) -> None:
    rows = capture_plan(plan)["buffers"]
    steps = 1 + max(row["end"] for row in rows)
    for unit in range(0, 16 * MIB, 1024 * 512):
        taken = np.zeros(steps, np.int64)
        for row in rows:
            if row["offset"] <= unit < row["offset"] + row["size"]:
                taken[row["start"] : row["end"]] += 1
        # A result may be written over an operand that dies there: one shared step.
        assert taken.max(initial=0) <= 2


def test_captures_are_plain_and_deterministic(plan: msa.Assignment) -> None:
    first = json.dumps(capture_plan(plan))
    again = msa.assign(plan.original, plan.target, plan.options)
    assert json.dumps(capture_plan(again)) == first
    assert json.loads(first) == capture_plan(plan)


def test_a_plan_does_not_differ_from_itself(plan: msa.Assignment) -> None:
    difference = plan_diff(plan, plan)
    assert not difference
    assert str(difference) == "The plans are the same."


def test_a_difference_names_figures_and_values(plan: msa.Assignment) -> None:
    larger = plan.target.replace(alternate_memory_bytes="64MiB")
    difference = plan_diff(plan, msa.assign(plan.original, larger))
    assert difference
    assert ("fast memory", "16 MiB", "64 MiB") in difference.figures
    gains = [abs(change.seconds) for change in difference.changes]
    assert gains == sorted(gains, reverse=True)
    assert any(change.before == "slow" for change in difference.changes)
    page = difference.html()
    assert page.count("<svg") == 2


def test_captures_round_trip_as_json(plan: msa.Assignment) -> None:
    capture = capture_plan(plan)
    again = capture_from_json(capture_to_json(capture))
    assert again == capture
    assert not compare(capture, again)
    assert plan_page(again) == plan.html()


@pytest.mark.parametrize(
    "text", ["", "[1]", "{}", '{"schema": "other/1"}', '{"schema": "msa.plan/1"}']
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError):
        capture_from_json(text)
