"""Differences of plans: every row shows what differs."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import msa
from msa.report import PlanDiff, capture_plan, compare
from msa.report.capture import PlanCapture

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt2_small_forward.hlo.gz"
TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="16MiB")


@pytest.fixture(scope="module")
def plan() -> msa.Assignment:
    return msa.assign(msa.load(EXAMPLE), TARGET)


@pytest.fixture
def captures(plan: msa.Assignment) -> tuple[PlanCapture, PlanCapture]:
    one = capture_plan(plan)
    return one, copy.deepcopy(one)


def shows_what_differs(difference: PlanDiff) -> None:
    for change in difference.changes:
        assert change.before != change.after, change
    cells = [line.split("  ") for line in str(difference).splitlines()]
    assert all(len(row) < 3 or row[-3:-1] != row[-2:] for row in cells)


@pytest.mark.parametrize(
    "other",
    [
        {"alternate_memory_bytes": "32MiB"},
        {"alternate_memory_bytes": "12MiB"},
        {"alignment_bytes": 4096},
        {"default_memory_bandwidth": "400GB/s"},
    ],
    ids=str,
)
def test_rows_of_real_plans_differ(plan: msa.Assignment, other: dict[str, str]) -> None:
    difference = plan.diff(msa.assign(plan.original, TARGET.replace(**other)))
    assert difference.changes
    shows_what_differs(difference)


def test_rows_of_two_strategies_differ(plan: msa.Assignment) -> None:
    options = msa.Options(strategy="search", effort=1)
    shows_what_differs(plan.diff(msa.assign(plan.original, TARGET, options)))


def test_another_address_is_a_difference(
    captures: tuple[PlanCapture, PlanCapture],
) -> None:
    one, two = captures
    row = two["buffers"][0]
    old, row["offset"] = row["offset"], row["offset"] + 4096
    (change,) = compare(one, two).changes
    assert change.value == row["value"]
    assert f"at {old}" in change.before
    assert f"at {old + 4096}" in change.after


def test_another_start_of_a_copy_is_told_by_an_instruction_of_both(
    captures: tuple[PlanCapture, PlanCapture],
) -> None:
    """Two instructions earlier that are no copies: the anchor changes."""
    one, two = captures
    moved = next(x for x in two["copies"] if x["kind"] == "prefetch")
    made = {name for x in two["copies"] for name in (x["start"], x["done"])}
    names = two["steps"]["names"]
    anchors = [n for n, name in enumerate(names) if name not in made]
    before = [n for n in anchors if n <= moved["start_step"]]
    moved["start_step"] = before[-3]
    (change,) = compare(one, two).changes
    assert change.value == moved["value"]
    assert f"copy starts after {names[before[-1]]}" in change.before
    assert f"copy starts after {names[before[-3]]}" in change.after


def test_a_missing_eviction_is_a_difference(
    captures: tuple[PlanCapture, PlanCapture],
) -> None:
    one, two = captures
    gone = next(x for x in two["copies"] if x["kind"] == "eviction")
    gone["kind"] = "prefetch"
    changes = {change.value: change for change in compare(one, two).changes}
    change = changes[gone["value"]]
    assert "eviction" in change.before
    assert "eviction" not in change.after


def test_what_lies_and_moves_as_before_is_not_listed(
    captures: tuple[PlanCapture, PlanCapture],
) -> None:
    """Even if its readers gain more because of what else they read."""
    one, two = captures
    two["buffers"][0]["seconds"] += 1e-3
    assert compare(one, two).changes == ()


def test_numbers_of_copies_do_not_matter(
    captures: tuple[PlanCapture, PlanCapture],
) -> None:
    """Steps shift when copies are inserted elsewhere; anchors do not."""
    one, two = captures
    names = two["steps"]["names"]
    for column in two["steps"].values():
        column.insert(0, column[0])  # type: ignore[attr-defined]
    names[0] = "something.else"
    for row in two["buffers"]:
        row["start"] += 1
        row["end"] += 1
    for x in two["copies"]:
        x["start_step"] += 1
        x["done_step"] += 1
    assert compare(one, two).changes == ()
