"""Where a value lives and why, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MirroredAllocation,
    SlicedCopyAllocation,
    Use,
    WindowPrefetchedAllocation,
)
from msa.assignment.crowding import holder_name
from msa.assignment.explain_room import describe_room
from msa.assignment.outcomes import Outcome, Skip
from msa.assignment.plan_decisions import REASONS, PlanDecision
from msa.assignment.problem import Problem, Value
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
    decisions = _decisions(plan, value)
    if not mine:
        why = "" if decisions else f": {_without_decision(plan, value)}"
        lines.append(f"  in slow memory all the time{why}")
    for decision in decisions:
        if not decision.fast:
            lines.append(f"  {_why(decision)}")
            lines += [f"    {line}" for line in _room(plan, value, decision)]
    return "\n".join(lines)


def _place(plan: Assignment, allocation: Allocation) -> str:
    steps = f"steps {allocation.start} to {allocation.end}"
    where = "slow memory"
    if allocation.chunk is not None:
        where = f"fast memory at {allocation.chunk.offset}"
    if isinstance(allocation, CopyAllocation) and not allocation.is_alternate:
        return _eviction(plan, allocation)
    if isinstance(
        allocation, CopyAllocation | SlicedCopyAllocation | WindowPrefetchedAllocation
    ):
        return _prefetch(plan, allocation, where)
    if isinstance(allocation, MirroredAllocation):
        return f"the same storage again in {where}, {steps}"
    position = plan.problem.describe(allocation.position)
    return f"{position} in {where}, {steps}"


def _prefetch(
    plan: Assignment,
    copy: CopyAllocation | SlicedCopyAllocation | WindowPrefetchedAllocation,
    where: str,
) -> str:
    """A way into fast memory: its start, its end because of whom, its stay."""
    what = "prefetched"
    if isinstance(copy, SlicedCopyAllocation):
        what = f"prefetched in {len(copy.slices)} slices"
        start = min(part.start_after for part in copy.slices)
    else:
        start = copy.start_after
        if isinstance(copy, WindowPrefetchedAllocation):
            what = f"its first {format_bytes(copy.window_bytes)} prefetched"
    done = copy.done_before
    text = (
        f"{what} to {where}: the copy starts {_after(plan, start)} and must be finished "
        f"before {_step(plan, done)}"
    )
    first = min((use.step for use in copy.uses), default=None)
    if first == done:
        text += ", which reads it"
    elif first is not None:
        text += f"; first read by {_step(plan, first)}"
    return f"{text}; there until step {copy.end}"


def _eviction(plan: Assignment, copy: CopyAllocation) -> str:
    """A way out: its start, its end because of whom, and the next read."""
    done = copy.done_before
    reads = sorted(copy.uses)
    text = (
        f"evicted to slow memory: the copy starts {_after(plan, copy.start_after)} and "
        f"must be finished before {_step(plan, done)}, "
    )
    if reads and reads[0].step <= done:
        return f"{text}which reads it from slow memory"
    text += _room_given_up(plan, copy)
    if not reads:
        return f"{text}; nothing reads it from slow memory by itself"
    return f"{text}; next read from slow memory: {_use(plan, reads[0])}"


def _room_given_up(plan: Assignment, copy: CopyAllocation) -> str:
    """Who gets the bytes that an eviction frees, in words."""
    chunk, last = copy.source.chunk, copy.source.end
    text = f"because its room in fast memory is kept until step {last} only"
    if chunk is None:
        return text
    heirs = [
        other
        for other in plan.allocations
        if other.is_alternate
        and other.chunk is not None
        and other.start >= last
        and other is not copy.source
        and other.chunk.overlaps(chunk)
    ]
    if not heirs:
        return text
    heir = min(heirs, key=lambda other: (other.start, other.chunk or chunk))
    return f"{text}; {holder_name(plan.problem, heir)} is there from step {heir.start}"


def _after(plan: Assignment, step: int) -> str:
    return "at the start" if step < 0 else f"after {_step(plan, step)}"


def _step(plan: Assignment, step: int) -> str:
    """An instruction and its step."""
    names = plan.problem.names
    return f"{names[step]} (step {step})" if step < len(names) else "the end"


def _use(plan: Assignment, use: Use) -> str:
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


def _room(plan: Assignment, value: Value, decision: PlanDecision) -> list[str]:
    """Who holds the room and how much is missing, if that is what stands in the way."""
    if REASONS[Outcome.OUT_OF_MEMORY] not in decision.reasons:
        return []
    return describe_room(plan, value, decision.start, decision.end)


def why_not(plan: Assignment, name: str) -> str:
    """What kept values at `name` out of fast memory."""
    parts = []
    for value in find_values(plan, name):
        text = plan.problem.describe(value.position)
        lines: list[str] = []
        if not value.is_tuple:
            slow = [d for d in _decisions(plan, value) if not d.fast]
            for decision in slow:
                lines.append(_why(decision))
                lines += [f"  {line}" for line in _room(plan, value, decision)]
        if not lines:
            lines = [_without_decision(plan, value)]
        parts.append("\n  ".join([f"{text}, {format_bytes(value.size)}:", *lines]))
    return "\n".join(parts)


def _without_decision(plan: Assignment, value: Value) -> str:
    if any(a.value == value.id and a.is_alternate for a in plan.allocations):
        return "all its uses read from fast memory"
    return without_uses(plan.problem, value)


def without_uses(problem: Problem, value: Value) -> str:
    """Why a value is in slow memory of which no use had to be decided."""
    if value.is_tuple:
        return "tuples are tables of addresses and stay in slow memory"
    if not value.placeable:
        return "scalars and values of other memory spaces stay where they are"
    if value.size > problem.machine.capacity:
        return f"it is {Skip.TOO_LARGE.value}"
    if value.live_out:
        return "part of the result, which the caller expects in slow memory"
    if not value.uses:
        return "nothing reads it, so fast memory would not help"
    return "it shares storage with a value that stays in slow memory"
