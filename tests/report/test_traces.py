"""Traces against the Chrome trace event format, plans against their JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.assignment import SavedPlan
from msa.errors import FileFormatError, PlanError
from msa.testing import random_module

TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="1MiB")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt2_small_forward.hlo.gz"

# What the trace event format demands of each phase that is used, by its letter.
NEEDED: dict[str, dict[str, tuple[type, ...]]] = {
    "X": {"name": (str,), "pid": (int,), "tid": (int,), "ts": (int, float), "dur": (int, float)},
    "b": {"name": (str,), "cat": (str,), "id": (int, str), "pid": (int,), "tid": (int,), "ts": (int, float)},
    "e": {"name": (str,), "cat": (str,), "id": (int, str), "pid": (int,), "tid": (int,), "ts": (int, float)},
    "C": {"name": (str,), "pid": (int,), "ts": (int, float), "args": (dict,)},
    "M": {"name": (str,), "pid": (int,), "args": (dict,)},
}  # fmt: skip
METADATA = {"process_name", "thread_name", "process_labels", "thread_sort_index"}


def check_trace(text: str) -> list[dict[str, Any]]:
    """Fails unless the text is a trace that viewers of the format open."""

    def no_constants(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    data = json.loads(text, parse_constant=no_constants)
    assert set(data) <= {"traceEvents", "displayTimeUnit", "otherData", "metadata"}
    assert data.get("displayTimeUnit", "ms") in ("ms", "ns")
    open_pairs: dict[tuple[Any, ...], float] = {}
    lanes: dict[tuple[int, int], float] = {}
    for event in data["traceEvents"]:
        needed = NEEDED[event["ph"]]
        for field, kinds in needed.items():
            assert isinstance(event[field], kinds), (event, field)
        if "ts" in needed:
            assert event["ts"] >= 0
        key = (event["pid"], event.get("cat"), event.get("id"), event.get("name"))
        if event["ph"] == "X":
            assert event["dur"] >= 0
            lane = (event["pid"], event["tid"])
            # Slices of one lane follow each other.
            assert event["ts"] >= lanes.get(lane, 0.0) - 1e-6
            lanes[lane] = event["ts"] + event["dur"]
        elif event["ph"] == "b":
            assert key not in open_pairs
            open_pairs[key] = event["ts"]
        elif event["ph"] == "e":
            assert event["ts"] >= open_pairs.pop(key)
        elif event["ph"] == "C":
            assert all(isinstance(v, (int, float)) for v in event["args"].values())
        elif event["ph"] == "M":
            assert event["name"] in METADATA
    assert not open_pairs
    events: list[dict[str, Any]] = data["traceEvents"]
    return events


def test_the_trace_of_a_real_plan() -> None:
    target = TARGET.replace(alternate_memory_bytes="16MiB")
    plan = msa.assign(msa.load(EXAMPLE), target)
    events = check_trace(plan.to_perfetto())
    assert sum(e["ph"] == "b" for e in events) == len(plan.copies)
    last = max(e["ts"] + e.get("dur", 0.0) for e in events if "ts" in e)
    assert last == pytest.approx(plan.estimate.after_seconds * 1e6, rel=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_traces_and_plans_of_random_modules(seed: int) -> None:
    plan = msa.assign(random_module(seed, size=40), TARGET)
    check_trace(plan.to_perfetto())
    text = plan.to_json()
    saved = SavedPlan.from_json(text)
    assert saved.to_json() == text
    assert (saved.chunks, saved.copies) == (plan.chunks, tuple(plan.copies))
    assert saved.decisions == tuple(plan.decisions)
    assert saved.estimate == plan.estimate
    assert saved.target == plan.target
    saved.verify(plan.original, plan.module)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda events: events.append({"ph": "X", "name": "x", "pid": 1, "tid": 1}),
        lambda events: events.append(
            {"ph": "b", "name": "x", "cat": "c", "id": 9, "pid": 1, "tid": 1, "ts": 0}
        ),
        lambda events: events.append({"ph": "?", "name": "x", "pid": 1}),
        lambda events: next(e for e in events if e["ph"] == "X").update(dur=-1),
        lambda events: next(e for e in events if e["ph"] == "X").update(ts="0"),
    ],
)
def test_the_checker_sees_broken_traces(break_it) -> None:
    plan = msa.assign(random_module(3, size=40), TARGET)
    data = json.loads(plan.to_perfetto())
    break_it(data["traceEvents"])
    with pytest.raises((AssertionError, KeyError)):
        check_trace(json.dumps(data))


def test_saved_plans_as_files(tmp_path: Path) -> None:
    plan = msa.assign(random_module(5, size=40), TARGET)
    path = tmp_path / "plan.json"
    text = plan.to_json(path)
    saved = SavedPlan.load(path)
    assert saved.to_json(tmp_path / "again.json") == text
    assert (tmp_path / "again.json").read_text() == path.read_text()
    with pytest.raises(FileFormatError):
        SavedPlan.load(tmp_path / "missing.json")


def test_a_saved_plan_that_was_edited_is_caught() -> None:
    plan = msa.assign(msa.load(EXAMPLE), TARGET.replace(alternate_memory_bytes="16MiB"))
    data = json.loads(plan.to_json())
    name = next(iter(data["chunks"]))
    data["chunks"][name][0] += 1
    with pytest.raises(PlanError):
        SavedPlan.from_json(json.dumps(data)).verify(plan.original, plan.module)


def test_a_plan_saved_before_decisions_had_reasons_is_refused_by_its_schema() -> None:
    plan = msa.assign(msa.load(EXAMPLE), TARGET)
    data = json.loads(plan.to_json())
    data["schema"] = "msa.assignment/1"
    for row in data["decisions"]:
        for name in ("reason", "competitors", "change"):
            del row[name]
    with pytest.raises(FileFormatError, match="'msa.assignment/1', not") as caught:
        SavedPlan.from_json(json.dumps(data))
    assert "write it again" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "msa.assignment/0"}',
        '{"schema": "msa.assignment/1"}',
        '{"schema": "msa.assignment/2"}',
        '{"schema": "msa.assignment/2", "estimate": {}, "module": 1}',
    ],
)
def test_other_texts_are_no_plans(text: str) -> None:
    with pytest.raises(FileFormatError):
        SavedPlan.from_json(text)
