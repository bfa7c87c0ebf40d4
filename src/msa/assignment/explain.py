"""Where a value lives and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.assignment.allocation import Allocation
from msa.assignment.explain_names import find_values
from msa.assignment.explain_stays import stay_text, use_text
from msa.assignment.explanation import ExplainedValue, Explanation, SlowUse, Stay
from msa.assignment.finding import Finding
from msa.assignment.problem import Value
from msa.assignment.reason import Reason
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.assignment.assignment import Assignment


def explain(plan: Assignment, name: str) -> Explanation:
    """One paragraph per value at `name`: its places over time and its uses."""
    values = tuple(explained(plan, value) for value in find_values(plan, name))
    text = "\n\n".join(_told(value) for value in values)
    return Explanation.of(
        text, "explain", name, plan.original.name, plan.target.name, values
    )


def why_not(plan: Assignment, name: str) -> Explanation:
    """What kept values at `name` out of fast memory."""
    values = tuple(explained(plan, value) for value in find_values(plan, name))
    text = "\n".join(_missed(value) for value in values)
    return Explanation.of(
        text, "why_not", name, plan.original.name, plan.target.name, values
    )


def explained(plan: Assignment, value: Value) -> ExplainedValue:
    """Everything about one value."""
    reason, slow = reason_of(plan, value)
    return ExplainedValue(
        plan.problem.describe(value.position),
        value.size,
        *value.live,
        tuple(_stay(plan, a) for a in plan.allocations if a.value == value.id),
        reason,
        reason.sentence,
        slow,
    )


def reason_of(plan: Assignment, value: Value) -> tuple[Reason, tuple[SlowUse, ...]]:
    """Why a value is where it is: as a whole, and per use that reads slow memory."""
    reason = plan._judge.of_value(value)
    slow = () if reason in _WHOLE else _slow_uses(plan, value)
    if reason is None:
        reason = slow[0].reason if slow else Reason.FAST
    return reason, slow


_WHOLE = frozenset(
    {
        Reason.NOT_PLACEABLE,
        Reason.TOO_LARGE,
        Reason.ROOM_RESERVED,
        Reason.FIXED,
        Reason.FETCHED_AHEAD,
        Reason.RESULT,
        Reason.NOT_READ,
    }
)
"""Reasons that concern all uses of a value alike."""


def _stay(plan: Assignment, allocation: Allocation) -> Stay:
    return Stay(
        allocation.is_alternate,
        allocation.start,
        allocation.end,
        -1 if allocation.chunk is None else allocation.chunk.offset,
        stay_text(plan, allocation),
        tuple(use_text(plan, use) for use in allocation.uses),
    )


def _slow_uses(plan: Assignment, value: Value) -> tuple[SlowUse, ...]:
    """Uses that read slow memory, those alike together; what reads bytes first."""
    groups: dict[tuple[int, tuple[Finding, ...]], list[str]] = {}
    for use in sorted(value.uses):
        findings = plan._judge.of_use(value, use)
        if findings[0].reason is not Reason.FAST:
            name = plan.problem.describe_use(use)
            groups.setdefault((use.step, findings), []).append(name)
    found = [SlowUse(tuple(u), step, f) for (step, f), u in groups.items()]
    found.sort(key=lambda use: use.reason is Reason.HANDED_ON)
    return tuple(found)


def _told(value: ExplainedValue) -> str:
    span = f"live in steps {value.start} to {value.end}"
    lines = [f"{value.value}: {format_bytes(value.bytes)}, {span}"]
    for stay in value.stays:
        lines.append(f"  {stay.text}")
        lines += [f"    read by {use}" for use in stay.uses]
    if not value.stays:
        why = "" if value.slow else f": {value.sentence}"
        lines.append(f"  in slow memory all the time{why}")
    elif value.reason in _WHOLE:
        lines.append(f"  {value.sentence}")
    lines += [f"  {line}" for use in value.slow for line in use.lines()]
    return "\n".join(lines)


def _missed(value: ExplainedValue) -> str:
    lines = [line for use in value.slow for line in use.lines()]
    if not lines:
        fast = value.reason is Reason.FAST
        lines = ["all its uses read from fast memory" if fast else value.sentence]
    return "\n  ".join([f"{value.value}, {format_bytes(value.bytes)}:", *lines])
