"""What happens when a result runs, as rows for the simulated machine.

The rows of instructions stay between runs that differ in a few steps or in their
copies; the rows of copies are made anew and merged with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msa.analysis.memory_boundedness import EXCLUDED
from msa.analysis.simulation.engine import DONE, ENTER, LEAVE, RUN, START, EventRow
from msa.analysis.simulation.machine import TO_ALTERNATE, TO_DEFAULT
from msa.assignment.allocation import CopyAllocation, Slice, SlicedCopyAllocation
from msa.assignment.copy_times import CopyTimes
from msa.assignment.problem import Problem

#: Instructions that take no time themselves.
FREE = EXCLUDED | {"while"}

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[Any]
"""Event rows, each a tuple."""


class Loop(NamedTuple):
    """A loop whose parts lie right before it: steps `start` up to `step`, exclusive."""

    start: int
    step: int
    trips: float


def loops_of(problem: Problem) -> list[Loop]:
    """The loops that run their steps several times, by step of the `while`."""
    found = []
    for step, called in sorted(problem.called.items()):
        if problem.opcodes[step] != "while":
            continue
        regions = [problem.regions[number] for number in called]
        first, last = sorted(regions, key=lambda r: r.start)
        if first.end == last.start and last.end == step:
            trips = max(region.trip_count for region in regions)
            found.append(Loop(first.start, step, trips))
    return found


class Frame:
    """Events of a problem's steps, without those of copies.

    Attributes:
        kind, step, amount: of each event.
        runs: events that run an instruction; `ran` are their steps.
        first: per step, its first event; one more for the end.
    """

    __slots__ = ("amount", "first", "kind", "ran", "runs", "step")

    def __init__(self, problem: Problem) -> None:
        loops = loops_of(problem)
        leaves = {loop.step for loop in loops}
        inside = problem.runs_asynchronously  # counted with the operation's start
        enters: dict[int, list[Loop]] = {}
        for loop in reversed(loops):  # the outer loop is the later instruction
            enters.setdefault(loop.start, []).append(loop)
        rows: list[tuple[int, int, float]] = []
        first: list[int] = []
        for step, opcode in enumerate(problem.opcodes[: problem.end]):
            first.append(len(rows))
            rows += ((ENTER, step, loop.trips) for loop in enters.get(step, ()))
            if opcode not in FREE and not inside[problem.region_of[step]]:
                rows.append((RUN, step, 0.0))
            if step in leaves:
                rows.append((LEAVE, step, 0.0))
        first.append(len(rows))
        self.first = np.asarray(first)
        self.kind = np.array([kind for kind, _, _ in rows], np.int64)
        self.step = np.array([step for _, step, _ in rows], np.int64)
        self.amount = np.array([amount for _, _, amount in rows], np.float64)
        self.runs = np.flatnonzero(self.kind == RUN)
        self.ran = self.step[self.runs]


class StepRows:
    """The events of steps as rows, with what each step takes."""

    __slots__ = ("_frame", "_idle", "_rows", "_seconds")

    def __init__(self, frame: Frame, seconds: Floats, idle: Floats, rows: Rows) -> None:
        self._frame = frame
        self._seconds = seconds
        self._idle = idle
        self._rows = rows

    @classmethod
    def of(cls, frame: Frame, seconds: Floats, idle: Floats) -> StepRows:
        """From seconds, and idle seconds of default memory, per step. Linear."""
        times = np.zeros((2, len(frame.kind)))
        times[:, frame.runs] = seconds[frame.ran], idle[frame.ran]
        rows = _rows(frame.kind, frame.step, times[0], times[1], frame.amount)
        return cls(frame, seconds, idle, rows)

    def with_times(self, seconds: Floats, idle: Floats) -> StepRows:
        """The rows where steps take something else."""
        frame, ran = self._frame, self._frame.ran
        changed = np.flatnonzero(
            (seconds[ran] != self._seconds[ran]) | (idle[ran] != self._idle[ran])
        )
        places, steps = frame.runs[changed], ran[changed]
        rows = self._rows.copy()
        rows[places] = _rows(
            frame.kind[places], steps, seconds[steps], idle[steps], frame.amount[places]
        )
        return StepRows(frame, seconds, idle, rows)

    def merged(self, transfers: Transfers) -> list[EventRow]:
        """All events in the order in which they happen.

        Between two steps, ends of copies come before starts; but an end needs its
        start.
        """
        frame = self._frame
        start, done, end, size, direction = transfers
        count = len(start)
        numbers = np.arange(count)
        boundary = np.concatenate((start + 1, end))
        asked = np.concatenate((start + 1, done))
        late = np.concatenate((start + 1 != done, np.zeros(count, np.bool_)))
        ties = np.concatenate((2 * numbers, 2 * numbers + 1))
        order = np.lexsort((ties, late, asked, boundary))
        order = order[boundary[order] < len(frame.first)]
        boundary = boundary[order]
        # Events of copies come before those of the step behind their boundary.
        places = frame.first[boundary] + np.arange(len(order))
        others = np.arange(len(frame.kind))
        others += np.searchsorted(boundary, frame.step, side="right")
        nothing = np.zeros(len(order))
        events: Rows = np.empty(len(others) + len(order), object)
        events[others] = self._rows
        events[places] = _rows(
            np.repeat((START, DONE), count)[order],
            np.concatenate((np.maximum(start, 0), done))[order],
            nothing,
            nothing,
            np.concatenate((size, np.zeros(count)))[order],
            np.tile(numbers, 2)[order],
            np.tile(direction, 2)[order],
        )
        merged: list[EventRow] = events.tolist()
        return merged


def _rows(
    kind: Ints,
    step: Ints,
    seconds: Floats,
    idle: Floats,
    amount: Floats,
    copy: Ints | None = None,
    direction: Ints | None = None,
) -> Rows:
    """Columns as rows; -1 and `TO_ALTERNATE` if there are no copies."""
    rows = zip(
        kind.tolist(),
        step.tolist(),
        seconds.tolist(),
        idle.tolist(),
        amount.tolist(),
        repeat(-1) if copy is None else copy.tolist(),
        repeat(TO_ALTERNATE) if direction is None else direction.tolist(),
        strict=False,
    )
    return np.fromiter(rows, object, len(kind))


class Transfers(NamedTuple):
    """Copies: after and before which step they start and end, bytes, direction.

    `end` is the boundary where they end: before all that the step `done` runs.
    """

    start: Ints
    done: Ints
    end: Ints
    size: Floats
    direction: Ints


class CopyParts(NamedTuple):
    """Copies, and what they move: a part for each slice.

    Attributes:
        whole: the copies.
        parts: what starts: a copy itself, or its slice.
        owners: the number of each part's copy.
        steps: where what the parts copy is defined.
        sizes: bytes of the parts.
        directions: to which memory they go.
    """

    whole: Sequence[CopyAllocation | SlicedCopyAllocation]
    parts: Sequence[CopyAllocation | Slice]
    owners: Ints
    steps: Ints
    sizes: Floats
    directions: Ints

    @classmethod
    def of(
        cls,
        problem: Problem,
        copies: Sequence[CopyAllocation | SlicedCopyAllocation],
    ) -> CopyParts:
        """The parts of copies. Linear."""
        parts: list[CopyAllocation | Slice] = []
        owners: list[int] = []
        sizes: list[int] = []
        for number, copy in enumerate(copies):
            if isinstance(copy, CopyAllocation):
                owners.append(number)
                parts.append(copy)
                sizes.append(problem.values[copy.value].size)
            else:
                owners += repeat(number, len(copy.slices))
                parts += copy.slices
                sizes += (part.chunk.size for part in copy.slices)
        numbers = np.array(owners, np.int64)
        fast = np.array([copy.is_alternate for copy in copies], np.bool_)
        return cls(
            copies,
            parts,
            numbers,
            np.array([copy.position.step for copy in copies], np.int64)[numbers],
            np.array(sizes, np.float64),
            np.where(fast[numbers], TO_ALTERNATE, TO_DEFAULT),
        )

    def where(self, kept: Bools) -> CopyParts:
        """Those of the kept copies, which are numbered anew."""
        chosen = kept[self.owners]
        return CopyParts(
            list(compress(self.whole, kept.tolist())),
            list(compress(self.parts, chosen.tolist())),
            (np.cumsum(kept) - 1)[self.owners[chosen]],
            self.steps[chosen],
            self.sizes[chosen],
            self.directions[chosen],
        )

    def queue_order(self) -> Ints:
        """The parts in the order of their queues.

        Evictions are scheduled before prefetches, each by (end, start).
        """
        starts = np.array([part.start_after for part in self.parts], np.int64)
        ends = np.array([copy.done_before for copy in self.whole], np.int64)
        order: Ints = np.lexsort((starts, ends[self.owners], -self.directions))
        return order

    def transfers(self, times: CopyTimes) -> Transfers:
        """When they start and end now, in the order of their queues."""
        starts = np.array([part.start_after for part in self.parts], np.int64)
        ends = np.array([copy.done_before for copy in self.whole], np.int64)
        dones = ends[self.owners]
        order = self.queue_order()
        return Transfers(
            times.started(starts, self.steps)[order],
            dones[order],
            times.landed(dones, self.steps)[order],
            self.sizes[order],
            self.directions[order],
        )
