"""What no choice of actions can go below, and what stands in the way.

Actions only place instructions later, and only ones that may be computed again. The
others keep their order, and what they create is live from there to its last reader.
So every step needs what it reads and creates, and a step that stays where it is also
needs what the others left alive across it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.passes.rematerialization.options import RematerializationOptions
from msa.passes.rematerialization.rules import why_not_recomputable
from msa.passes.rematerialization.storage import Buffer, Storage
from msa.passes.rematerialization.tracker import called_peak


@dataclass(frozen=True, slots=True)
class Blocker:
    """A value that is live at the lowest possible peak, and why it has to be."""

    name: str
    bytes: int
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.bytes} bytes, {self.reason}"


@dataclass(frozen=True, slots=True)
class Floor:
    """A lower bound of the peak under any choice of actions.

    Attributes:
        bytes: the bound.
        instruction: name of the step that needs it.
        blockers: what is live there, largest first; together they have `bytes`.
    """

    bytes: int
    instruction: str
    blockers: tuple[Blocker, ...]


def floor_of(
    computation: Computation,
    options: RematerializationOptions,
    floors: Mapping[Computation, int],
) -> Floor:
    """The bound for one scheduled computation; linear.

    Args:
        computation: scheduled.
        options: what may be done.
        floors: bounds of the computations that it calls.
    """
    schedule = computation.module.schedule
    assert schedule is not None
    sequence = schedule.sequence(computation)
    host = options.host.space if options.host else None
    storage = Storage(sequence, computation.root, options.size_of, host)
    steps = {x: t for t, x in enumerate(sequence)}
    held = np.zeros(len(sequence) + 1, dtype=np.int64)
    spans: dict[int, tuple[int, int]] = {}
    for number, buffer in enumerate(storage.buffers):
        span = _pinned_span(buffer, steps) if buffer.counted else None
        if span is not None:
            spans[number] = span
            held[span[0]] += buffer.counted
            held[span[1] + 1] -= buffer.counted
    held = np.cumsum(held)
    best, where = 0, 0
    for t, x in enumerate(sequence):
        stays = bool(why_not_recomputable(x))
        touched = {*storage.used[x], *storage.defined[x]}
        need = called_peak(x, floors) + (int(held[t]) if stays else 0)
        need += sum(
            storage.buffers[n].counted
            for n in touched
            if not (stays and n in spans and spans[n][0] <= t <= spans[n][1])
        )
        if need > best:
            best, where = need, t
    at = sequence[where] if sequence else computation.root
    return Floor(best, at.name, _blockers(storage, steps, spans, at, floors))


def _pinned_span(
    buffer: Buffer, steps: Mapping[Instruction, int]
) -> tuple[int, int] | None:
    """First and last step where a buffer is live whatever is done, or None.

    What cannot be created twice, but later, lives from the first to the last of its
    readers that stay where they are.
    """
    if not _why_pinned(buffer):
        return None
    if why_not_recomputable(buffer.creator):
        start = steps[buffer.creator]
        return start, max((steps[u.user] for u in buffer.uses), default=start)
    fixed = [steps[u.user] for u in buffer.uses if why_not_recomputable(u.user)]
    return (min(fixed), max(fixed)) if fixed else None


def _why_pinned(buffer: Buffer) -> str:
    reason = why_not_recomputable(buffer.creator)
    if not reason and buffer.indirect:
        reason = "it is used through a name that cannot be made again"
    if not reason and len(buffer.index) > 1:
        reason = "it is nested in a tuple of tuples"
    return reason


def _blockers(
    storage: Storage,
    steps: Mapping[Instruction, int],
    spans: Mapping[int, tuple[int, int]],
    at: Instruction,
    floors: Mapping[Computation, int],
) -> tuple[Blocker, ...]:
    t = steps[at]
    stays = bool(why_not_recomputable(at))
    rows = []
    for n in {*storage.used[at], *storage.defined[at]}:
        buffer = storage.buffers[n]
        if buffer.counted:
            verb = "creates" if n in storage.defined[at] else "reads"
            reason = f"{at.name} {verb} it"
            rows.append(Blocker(_name(buffer), buffer.counted, reason))
    touched = {*storage.used[at], *storage.defined[at]}
    for n, (start, end) in spans.items():
        buffer = storage.buffers[n]
        if stays and n not in touched and start <= t <= end:
            rows.append(Blocker(_name(buffer), buffer.counted, _why_pinned(buffer)))
    inside = called_peak(at, floors)
    if inside:
        rows.append(Blocker(at.name, inside, "the computations that it runs need it"))
    return tuple(sorted(rows, key=lambda r: (-r.bytes, r.name)))


def _name(buffer: Buffer) -> str:
    index = ",".join(map(str, buffer.index))
    return f"{buffer.creator.name}{{{index}}}"
