"""The words for a stay of a value in one memory."""

from __future__ import annotations

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
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.assignment.assignment import Assignment


def stay_text(plan: Assignment, allocation: Allocation) -> str:
    """One stay: where, when, and how it came there."""
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
    return f"{text}; next read from slow memory: {use_text(plan, reads[0])}"


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


def use_text(plan: Assignment, use: Use) -> str:
    """A use and its step."""
    return f"{plan.problem.describe_use(use)} (step {use.step})"
