"""The words for a lack of room: bytes missing, who holds them, what would help."""

from __future__ import annotations

from typing import Final

from msa.assignment.crowding import Crowding, Holder
from msa.assignment.finding import Competitor
from msa.assignment.options import Options
from msa.assignment.problem import Problem
from msa.assignment.search_note import search_note
from msa.units import format_bytes

NAMED: Final = 6
"""Competitors that are named; how many more there are is said."""


def room_details(problem: Problem, found: Crowding) -> tuple[str, ...]:
    """What is missing, and who holds it, in the finished plan."""
    lines = [_shortfall(problem, found)]
    if found.holders:
        lines.append(f"held there by {_holders(found.holders)}")
    return tuple(lines)


def room_competitors(found: Crowding) -> tuple[Competitor, ...]:
    """The holders at the fullest step, as data."""
    return tuple(
        Competitor("room", h.name, h.chunk.size, h.start, h.end)
        for h in found.holders[:NAMED]
    )


def steps_text(start: int, end: int) -> str:
    """A span of steps, as people say it."""
    return f"step {start}" if start == end else f"steps {start} to {end}"


def _shortfall(problem: Problem, found: Crowding) -> str:
    name = problem.names[found.step] if found.step < problem.end else "the end"
    text = (
        f"it needs {format_bytes(found.needed)} in {steps_text(found.start, found.end)}"
        f"; at {name} (step {found.step}) {format_bytes(found.taken)} of "
        f"{format_bytes(found.capacity)} are taken"
    )
    if found.missing:
        return f"{text}: {exact(found.missing)} are missing"
    return (
        f"{text}: that leaves enough, but not in one piece for the whole span; the "
        f"largest hole is {exact(found.missing_in_one_piece)} too small"
    )


def exact(size: int) -> str:
    """Bytes as people say them, and all digits where that rounds."""
    text = format_bytes(size)
    return text if text.endswith(" B") else f"{text} ({size:,} B)"


def _holders(holders: tuple[Holder, ...]) -> str:
    named = [
        f"{h.name} ({format_bytes(h.chunk.size)}, steps {h.start} to {h.end})"
        for h in holders[:NAMED]
    ]
    return with_rest(named, [h.chunk.size for h in holders])


def with_rest(named: list[str], sizes: list[int]) -> str:
    """The first competitors as text, and how many more there are, of all `sizes`."""
    rest = sizes[NAMED:]
    more = [f"{len(rest)} more ({format_bytes(sum(rest))})"] if rest else []
    return ", ".join(named + more)


def room_change(problem: Problem, found: Crowding, options: Options) -> str:
    """What would have to change for room."""
    if found.enough:
        names = " or ".join(found.enough[:3])
        first = f"it would fit if {names} were not there"
    elif found.holders:
        first = "no single one of them leaves enough: several would have to go"
    else:
        first = "what takes the room is elsewhere in the span"
    parts = [first]
    if found.missing:
        parts.append(
            f"with all of them kept it takes {exact(found.taken + found.needed)} of "
            "fast memory (values decided before it may take such room first)"
        )
    else:
        parts.append("or if its neighbours lay closer together")
    did, does = "found no better exchange", "tries such exchanges"
    parts.append(search_note(problem, options, did, does))
    return "; ".join(parts)
