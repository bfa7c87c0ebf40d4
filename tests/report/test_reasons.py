"""Every value in slow memory has a reason, also one of which nothing was decided."""

import json

import pytest

import msa
from assignment.crowded import CROWDED
from msa.report import capture_plan
from msa.testing import random_module

TEXT = """
HloModule m, is_scheduled=true

ENTRY main {
  a = f32[1024,1024]{1,0} parameter(0)
  b = f32[1024,1024]{1,0} negate(a)
  ROOT c = f32[1024,1024]{1,0} exponential(b)
}
"""


def test_the_result_is_said_to_lie_where_the_caller_expects_it() -> None:
    plan = msa.assign(msa.parse(TEXT), msa.Target.preset("tpu_v5e"))
    expected = "part of the result, which the caller expects in slow memory"
    losses = {row["value"]: row["reason"] for row in capture_plan(plan)["losses"]}
    assert losses["c{}"] == expected
    assert all(losses.values())
    assert str(plan.explain("c")).endswith(f"in slow memory all the time: {expected}")
    assert expected in str(plan.why_not("c"))


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_page_and_json_name_reason_competitors_and_change(strategy: str) -> None:
    """2048 B for `a` of 1024 B and `b` of 2048 B: one keeps the other out."""
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=2048)
    plan = msa.assign(msa.parse(CROWDED), target, msa.Options(strategy=strategy))
    kept = {
        plan.problem.describe(a.position) for a in plan.allocations if a.is_alternate
    }
    inside, outside = ("a{}", "b{}") if "a{}" in kept else ("b{}", "a{}")
    rows = {row["value"]: row for row in capture_plan(plan)["losses"]}
    row = rows[outside]
    assert (row["code"], row["competitors"]) == ("no_room", [inside])
    change = f"it would fit if {inside} were not there"
    assert any(change in line for line in row["details"])
    assert change in plan.html()
    decision = next(
        d for d in json.loads(plan.to_json())["decisions"] if d["value"] == outside
    )
    assert decision["reason"] == "no_room"
    assert [c["name"] for c in decision["competitors"]] == [inside]
    assert change in decision["change"]


def test_a_difference_says_why_a_value_is_slow_in_one_plan() -> None:
    """Without room for both, one of `a` and `b` is out; with 8 KiB neither is."""
    small = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=2048)
    large = small.replace(alternate_memory_bytes=8192)
    module = msa.parse(CROWDED)
    first, second = msa.assign(module, small), msa.assign(module, large)
    wider, narrower = first.diff(second), second.diff(first)
    outside = {x.value: x for x in wider.changes if x.before == "slow"}
    assert set(outside) & {"a{}", "b{}"}
    for change in outside.values():
        assert change.before_reason == msa.Reason.NO_ROOM
        assert change.after_reason == ""
        assert "no room" in wider.to_text()
        assert "no room" in wider.html()
        row = next(x for x in wider.to_dict()["changes"] if x["value"] == change.value)
        assert row["before_reason"] == change.before_reason
    assert {x.value: x.after_reason for x in narrower.changes if x.after == "slow"} == {
        name: change.before_reason for name, change in outside.items()
    }


@pytest.mark.parametrize("seed", [*range(30), 45])
def test_what_is_in_slow_memory_is_not_said_to_read_fast_memory(seed: int) -> None:
    """Values that are made in slow memory and fetched for all of their reads."""
    target = msa.Target.preset("tpu_v5e").replace(
        alternate_memory_bytes=8192, alignment_bytes=256
    )
    plan = msa.assign(random_module(seed, size=40, vector=1024), target)
    values = {plan.problem.describe(v.position): v for v in plan.problem.values}
    given = plan.problem.regions[0].parameters
    made = {name for name, v in values.items() if v.position.step not in given}
    for row in capture_plan(plan)["losses"]:
        assert row["code"] != "fast"
        assert "reads fast memory" not in row["reason"]
        if "in slow memory and" in row["reason"]:
            assert (row["value"] in made) == row["reason"].startswith("it is made")
            mine = [a for a in plan.allocations if a.value == values[row["value"]].id]
            assert not mine[0].is_alternate
            assert all(a.is_alternate for a in mine for _ in a.uses)
