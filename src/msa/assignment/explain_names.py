"""Values by the names that people give: of an instruction, or a node of its result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msa.assignment.problem import Value
from msa.errors import PlanError, did_you_mean
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.assignment.assignment import Assignment

_LISTING = "plan.problem.names has all; `msa explain MODULE` without a name lists them"
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
        raise PlanError(
            f"no scheduled instruction is named {wanted!r}",
            hint=did_you_mean(wanted, plan.problem.names, _LISTING),
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
        nodes = sorted(
            position.index
            for position in plan.problem.value_at
            if position.step in steps
        )
        known = ", ".join(f"{{{','.join(map(str, node))}}}" for node in nodes)
        raise PlanError(
            f"{wanted} has no node {{{index_text}}}", hint=f"one of {known}"
        )
    values = [plan.problem.values[number] for number in found]
    arrays = [value for value in values if not value.is_tuple]
    return arrays or values


def value_rows(plan: Assignment) -> list[tuple[str, str, str, str]]:
    """All values that can be explained, largest first: name, size, steps, place."""
    problem = plan.problem
    fast = {a.value for a in plan.allocations if a.is_alternate}
    slow = {a.value for a in plan.allocations if not a.is_alternate}
    rows = []
    for value in sorted(problem.values, key=lambda v: (-v.size, v.position)):
        if value.is_tuple:
            continue
        place = "slow memory"
        if value.id in fast:
            place = "both in turn" if value.id in slow else "fast memory"
        first, last = value.live
        rows.append(
            (
                problem.describe(value.position),
                format_bytes(value.size),
                f"steps {first} to {last}",
                place,
            )
        )
    return rows
