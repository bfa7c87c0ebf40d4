"""What is done for wide programs grows as they do, not with the square."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from benchmarks import wide_programs as wide

import msa
from msa.analysis.costs import InstructionCosts
from msa.assignment import build_problem, costs
from msa.assignment.allocation import Use
from msa.assignment.allocation_values import create_allocation_values
from msa.assignment.judge import Judge
from msa.assignment.options import Options
from msa.assignment.problem import Value
from msa.assignment.required import RequiredAssignments
from msa.assignment.segments import segment
from msa.assignment.state import State
from msa.testing import random_module

TARGET = msa.Target.preset("tpu_v5e")


def calls_of(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, action: Callable[[], object]
) -> int:
    """How often something is called during an action."""
    count = 0
    original = getattr(owner, name)

    def counted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, counted)
        action()
    return count


def plan_and_verify(module: msa.Module) -> msa.Assignment:
    plan = msa.assign(module, TARGET)
    plan.verify()
    return plan


@pytest.mark.parametrize(
    ("make", "owner", "name"),
    [
        pytest.param(wide.loops_in_a_row, costs, "single", id="benefits of one buffer"),
        pytest.param(
            wide.one_value_for_all_branches,
            RequiredAssignments,
            "at",
            id="requirements of branches",
        ),
        pytest.param(
            wide.one_value_for_all_branches,
            segment.Required,
            "agrees",
            id="agreement of branches",
        ),
    ],
)
def test_near_linear(
    monkeypatch: pytest.MonkeyPatch, make: Any, owner: Any, name: str
) -> None:
    few, many = msa.parse(make(40)), msa.parse(make(160))
    less = calls_of(monkeypatch, owner, name, lambda: plan_and_verify(few))
    more = calls_of(monkeypatch, owner, name, lambda: plan_and_verify(many))
    assert 0 < more <= 5 * less


def plain_boundedness(model: costs.CostModel, value: Value, size: int) -> float:
    """What the value's buffer is worth, added up use by use."""
    problem = model.problem
    total = model._position_benefit[value.id]
    for member in problem.buffers[value.buffer]:
        for number, use in enumerate(problem.values[member].uses):
            if problem.opcodes[use.step] in ("while", "conditional"):
                continue
            benefit = model._use_benefit[model._first_use[member] + number]
            if total > 0 and benefit > 0:
                total = costs.single(total + benefit)
            elif benefit > total:
                total = benefit
    return costs.single(total / math.sqrt(size)) if size else total


@pytest.mark.parametrize("seed", range(10))
def test_boundedness_is_that_of_each_value_by_itself(seed: int) -> None:
    problem = build_problem(msa.schedule(random_module(seed, size=60)), TARGET)
    model = costs.CostModel(problem, Options())
    for value in problem.values:
        assert model.memory_boundedness(value, value.size) == plain_boundedness(
            model, value, value.size
        )


def test_operands_of_one_conditional_share_their_aliases() -> None:
    problem = build_problem(msa.parse(wide.one_value_for_all_branches(3)), TARGET)
    state = State(problem, Options())
    (step,) = problem.called
    value = next(v for v in problem.values if sum(u.step == step for u in v.uses) == 3)
    interval = state.intervals[value.id]
    assert interval is not None
    created = create_allocation_values([interval], problem, state.times)
    uses = [use for item in created for use in item.uses if use.use.step == step]
    assert len({id(use.aliases) for use in uses}) == 1
    parameters = [problem.regions[r].parameters[0] for r in problem.called[step]]
    assert [place.step for place in uses[0].aliases] == parameters


def test_loops_may_be_nested_as_deep_as_anybody_likes() -> None:
    # 5 to the power of 500, the assumed runs, is no single, nor 3 to that of 500.
    plan = plan_and_verify(msa.parse(wide.loops_in_loops(120)))
    assert math.isfinite(plan.estimate.after_seconds)
    plan_and_verify(msa.parse(wide.loops_in_loops(500, trips=1)))


@pytest.mark.parametrize("seed", range(10))
def test_elements_that_are_moved(seed: int) -> None:
    module = random_module(seed, size=60)
    model = InstructionCosts.run(module)
    for x in (x for c in module.computations for x in c.instructions):
        read = {
            (number, index): model.operand_bytes(x, number, index)
            for number, operand in enumerate(x.operands)
            for index, leaf in operand.shape.leaves()
            if leaf.is_array and operand.shape.is_tuple
        }
        written = {
            (-1, index): model.output_bytes(x, index)
            for index, leaf in x.shape.leaves()
            if leaf.is_array and x.shape.is_tuple
        }
        moved = sorted(size for size in (*read.values(), *written.values()) if size)
        assert sorted(size for _, _, size in model.moved_elements(x)) == moved


def test_what_is_read_of_a_wide_tuple_is_found_at_once() -> None:
    module = msa.parse(wide.loop_over_many(500))
    model = InstructionCosts.run(module)
    elements = [
        x
        for computation in module.computations
        for x in computation.instructions
        if x.opcode == "get-tuple-element"
    ]
    assert sum(len(list(model.moved_elements(x))) for x in elements) == 0
    assert max(len(model.properties(x).keyed) for x in elements) < 5


def test_who_stands_in_the_way_of_many_does_not_take_long() -> None:
    """One second; looking at each holder by itself took more than a minute."""
    target = TARGET.replace(alternate_memory_bytes=1000 * 4 * 8192)
    plan = msa.assign(msa.parse(wide.live_at_once(2000)), target)
    begin = time.process_time()
    reasons = Counter(d.reason for d in plan.decisions)
    assert time.process_time() - begin < 12.0
    assert reasons[msa.Reason.NO_ROOM] > 900


class Counted(tuple[Use, ...]):
    """Uses that count how often somebody goes through them."""

    passes = 0

    def __iter__(self) -> Iterator[Use]:
        Counted.passes += 1
        return super().__iter__()

    def index(self, *arguments: Any) -> int:
        Counted.passes += 1
        return super().index(*arguments)


def test_reasons_go_through_the_uses_of_a_value_once_not_for_every_use() -> None:
    problem = build_problem(msa.parse(wide.one_value_read_often(100)), TARGET)
    value = max(problem.values, key=lambda v: len(v.uses))
    counted = replace(value, uses=Counted(value.uses))
    judge = Judge(problem, (), Options())
    Counted.passes = 0
    for use in value.uses:
        judge.of_use(counted, use)
    assert 0 < Counted.passes < 5
