"""The words for a lack of room: bytes missing, who holds them, what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msa.assignment.crowding import Crowding, Holder, crowding
from msa.assignment.problem import Value
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.assignment.assignment import Assignment

_NAMED: Final = 6
"""Holders that are named; how many more there are is said."""


def describe_room(plan: Assignment, value: Value, start: int, end: int) -> list[str]:
    """Lines on the room that a value would need in a span of steps (inclusive).

    They speak of the finished plan: what lies where once everything was decided.
    """
    found = crowding(plan.problem, plan.allocations, value, start, end)
    lines = [_shortfall(plan, found)]
    if found.missing or found.missing_in_one_piece:
        if found.holders:
            lines.append(f"held there by {_holders(found.holders)}")
        lines.append(_remedy(plan, found))
    return lines


def _shortfall(plan: Assignment, found: Crowding) -> str:
    where = f"{plan.problem.names[found.step]} (step {found.step})"
    span = f"steps {found.start} to {found.end}"
    if found.start == found.end:
        span = f"step {found.start}"
    text = (
        f"it needs {format_bytes(found.needed)} in {span}; at {where} "
        f"{format_bytes(found.taken)} of {format_bytes(found.capacity)} are taken"
    )
    if found.missing:
        return f"{text}: {_exact(found.missing)} are missing"
    if found.missing_in_one_piece:
        return (
            f"{text}: that leaves enough, but not in one piece for the whole span; the "
            f"largest hole is {_exact(found.missing_in_one_piece)} too small"
        )
    return (
        f"{text}: the finished plan has a hole for it there, which was taken or needed "
        "for longer when this was decided"
    )


def _exact(size: int) -> str:
    """Bytes as people say them, and all digits where that rounds."""
    text = format_bytes(size)
    return text if text.endswith(" B") else f"{text} ({size:,} B)"


def _holders(holders: tuple[Holder, ...]) -> str:
    named = [
        f"{h.name} ({format_bytes(h.chunk.size)}, steps {h.start} to {h.end})"
        for h in holders[:_NAMED]
    ]
    rest = holders[_NAMED:]
    if rest:
        size = format_bytes(sum(h.chunk.size for h in rest))
        named.append(f"{len(rest)} more ({size})")
    return ", ".join(named)


def _remedy(plan: Assignment, found: Crowding) -> str:
    """What would have to change."""
    if found.enough:
        names = " or ".join(found.enough[:3])
        first = f"it would fit if {names} were not there"
    elif found.holders:
        first = "no single one of them leaves enough: several would have to go"
    else:
        first = "what takes the room is elsewhere in the span"
    least = found.taken + found.needed
    parts = [first]
    if found.missing:
        parts.append(
            f"with all of them kept it takes {_exact(least)} of fast memory"
            " (values decided before it may take such room first)"
        )
    else:
        parts.append("or if its neighbours lay closer together")
    if plan.options.strategy == "search":
        parts.append(
            f"the search (effort {plan.options.effort}) found no better exchange"
        )
    else:
        parts.append('strategy="search" tries such exchanges')
    return "; ".join(parts)
