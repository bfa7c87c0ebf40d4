"""Where a value lives and why, in words."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MirroredAllocation,
)
from msa.assignment.plan_decisions import PlanDecision
from msa.assignment.problem import Value
from msa.errors import PlanError
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.assignment.assignment import Assignment

_POSITION = re.compile(r"(?P<name>.*?)(?:\{(?P<index>[0-9, ]*)\})?\Z", re.DOTALL)


def find_values(plan: Assignment, name: str) -> list[Value]:
    """Values that appear at an instruction, or at one node of its result.

    Raises:
        PlanError: there are none; the nearest name is suggested.
    """
    match = _POSITION.match(name.strip().lstrip("%"))
    assert match is not None  # the pattern matches any text
    wanted, index_text = match["name"], match["index"]
    steps = [i for i, known in enumerate(plan.problem.names) if known == wanted]
    if not steps:
        close = difflib.get_close_matches(wanted, plan.problem.names, 1, 0.4)
        raise PlanError(
            f"no scheduled instruction is named {wanted!r}",
            hint=f"did you mean {close[0]!r}?" if close else "",
        )
    index = None
    if index_text is not None:
        index = tuple(int(part) for part in index_text.split(",") if part.strip())
    found = {
        value: None
        for step in steps
        for position, value in plan.problem.value_at.items()
        if position.step == step and (index is None or position.index == index)
    }
    if not found:
        raise PlanError(f"{wanted} has no node {{{index_text}}}")
    values = [plan.problem.values[number] for number in found]
    arrays = [value for value in values if not value.is_tuple]
    return arrays or values


def explain(plan: Assignment, name: str) -> str:
    """One paragraph per value at `name`: its places over time and its uses."""
    return "\n\n".join(_explain(plan, value) for value in find_values(plan, name))


def _explain(plan: Assignment, value: Value) -> str:
    problem = plan.problem
    lines = [
        (
            f"{problem.describe(value.position)}: {format_bytes(value.size)}, live in steps "
            f"{value.live[0]} to {value.live[1]}"
        )
    ]
    mine = [a for a in plan.allocations if a.value == value.id]
    for allocation in mine:
        lines.append(f"  {_place(plan, allocation)}")
        lines += [f"    read by {_use(plan, use)}" for use in allocation.uses]
    if not mine:
        lines.append("  in slow memory all the time")
    for decision in _decisions(plan, value):
        if not decision.fast:
            lines.append(f"  {_why(decision)}")
    return "\n".join(lines)


def _place(plan: Assignment, allocation: Allocation) -> str:
    steps = f"steps {allocation.start} to {allocation.end}"
    where = "slow memory"
    if allocation.chunk is not None:
        where = f"fast memory at {allocation.chunk.offset}"
    if isinstance(allocation, CopyAllocation):
        what = "prefetched" if allocation.is_alternate else "evicted"
        after = (
            "at the start"
            if allocation.start_after < 0
            else f"after {plan.problem.names[allocation.start_after]}"
        )
        return (
            f"{what} to {where}, {steps}: the copy starts {after} and is needed before "
            f"step {allocation.done_before}"
        )
    if isinstance(allocation, MirroredAllocation):
        return f"the same storage again in {where}, {steps}"
    position = plan.problem.describe(allocation.position)
    return f"{position} in {where}, {steps}"


def _use(plan: Assignment, use: object) -> str:
    from msa.assignment.allocation import Use

    assert isinstance(use, Use)
    return f"{plan.problem.describe_use(use)} (step {use.step})"


def _decisions(plan: Assignment, value: Value) -> list[PlanDecision]:
    """The last attempt's decisions of a value, and those about it as a whole."""
    name = plan.problem.describe(value.position)
    mine = [decision for decision in plan.decisions if decision.value == name]
    last = {decision.use: decision for decision in mine}
    return list(last.values())


def _why(decision: PlanDecision) -> str:
    what = decision.use or decision.value
    reasons = "; ".join(decision.reasons) or "nothing stood in the way"
    return f"{what} is {decision.served}: {reasons}"


def why_not(plan: Assignment, name: str) -> str:
    """What kept values at `name` out of fast memory."""
    parts = []
    for value in find_values(plan, name):
        text = plan.problem.describe(value.position)
        lines = []
        if not value.is_tuple:
            slow = [d for d in _decisions(plan, value) if not d.fast]
            lines = [_why(decision) for decision in slow]
        if not lines:
            lines = [_without_decision(plan, value)]
        parts.append("\n  ".join([f"{text}, {format_bytes(value.size)}:", *lines]))
    return "\n".join(parts)


def _without_decision(plan: Assignment, value: Value) -> str:
    problem = plan.problem
    placed = [a for a in plan.allocations if a.value == value.id and a.is_alternate]
    if placed:
        return "all its uses read from fast memory"
    if value.is_tuple:
        return "tuples are tables of addresses and stay in slow memory"
    if not value.placeable:
        return "scalars and values of other memory spaces stay where they are"
    if value.size > problem.machine.capacity:
        return "it is larger than fast memory"
    if not value.uses:
        return "nothing reads it, so fast memory would not help"
    return "it shares storage with a value that stays in slow memory"
