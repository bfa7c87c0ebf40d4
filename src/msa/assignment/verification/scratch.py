"""Scratch of instructions, and when it may be written."""

from __future__ import annotations

from msa.analysis.async_chains import chain_done
from msa.assignment.verification.occupants import Occupant
from msa.assignment.verification.storage import Storage
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction


def scratch_occupants(storage: Storage) -> list[Occupant]:
    """Scratch while it may be written. O(n log n).

    An asynchronous computation runs at any time from its start to its done, and its
    instructions one after the other: their scratches may lie over each other, and
    count as one where they do.
    """
    found: list[Occupant] = []
    asynchronous: dict[Computation, list[Occupant]] = {}
    for instruction, offset, size in storage.scratch:
        start, stop = _stay(storage, instruction)
        name = f"scratch of {instruction.name}"
        occupant = Occupant(offset, offset + size, start, stop, name, ())
        context = storage.analyses.schedule.async_context.get(instruction.computation)
        if context is None:
            found.append(occupant)
        else:
            asynchronous.setdefault(context, []).append(occupant)
    for occupants in asynchronous.values():
        found += _united(occupants)
    return found


def _stay(storage: Storage, instruction: Instruction) -> tuple[int, int]:
    """Half-open steps: its own, or all in which the computation may run."""
    analyses = storage.analyses
    schedule = analyses.schedule
    start = schedule.time_of(instruction)
    stop = start + 1
    context = schedule.async_context.get(instruction.computation)
    while context is not None:
        caller = analyses.call_graph.parent_call(context)
        if caller is None:
            return 0, schedule.end
        done = chain_done(caller)
        start = min(start, schedule.span_of(context)[0])
        if done is None:  # out of reach: at least as long as what it starts in
            stop = max(stop, schedule.span_of(caller.computation)[1])
        else:
            stop = max(stop, schedule.time_of(done) + 1)
        context = schedule.async_context.get(caller.computation)
    return start, stop


def _united(occupants: list[Occupant]) -> list[Occupant]:
    """Those of one computation, with overlapping address ranges joined."""
    joined: list[Occupant] = []
    for one in sorted(occupants, key=lambda o: (o.offset, o.end)):
        if joined and one.offset < joined[-1].end:
            last = joined[-1]
            joined[-1] = Occupant(
                last.offset,
                max(last.end, one.end),
                min(last.start, one.start),
                max(last.stop, one.stop),
                last.name,
                (),
            )
        else:
            joined.append(one)
    return joined
