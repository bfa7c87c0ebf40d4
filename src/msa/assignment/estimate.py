"""What a result would take to run, without lowering it.

The problem's steps run one after another on the simulated machine of
`msa.analysis.simulation`, with accesses where the allocations put them and their
copies in flight: the figure that `msa.simulate` gives for the lowered module, at a
fraction of the cost. Searches compare candidates by it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msa.analysis.simulation.engine import (
    DONE,
    ENTER,
    LEAVE,
    RUN,
    START,
    EventRow,
    Run,
    run,
)
from msa.analysis.simulation.machine import TO_ALTERNATE, TO_DEFAULT
from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    ScopedAllocation,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)
from msa.assignment.problem import Problem

#: Instructions whose traffic is that of the regions that they run.
_NEVER_FAST = frozenset({"call", "conditional", "while"})
#: Instructions that take no time themselves.
FREE = frozenset(
    {
        "all-gather-done",
        "all-gather-start",
        "all-reduce-done",
        "all-reduce-start",
        "async-done",
        "async-start",
        "collective-permute-done",
        "collective-permute-start",
        "copy-done",
        "copy-start",
        "while",
    }
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_WITHOUT_ACCESSES: Final = frozenset({ScopedAllocation, WindowPrefetchedAllocation})
"""Kinds whose bytes are not among those that the cost analysis counts."""


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


class Estimator:
    """Times results of one problem.

    Everything that does not depend on the result is prepared once; `seconds` is
    linear in steps and allocations.
    """

    __slots__ = ("bytes", "compute", "copy_rate", "frame", "problem", "total")

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        machine = problem.machine
        self.compute = np.asarray(problem.compute_seconds, np.float64)
        self.total = np.maximum(np.asarray(problem.total_bytes, np.float64), 0.0)
        self.copy_rate = machine.default_bandwidth * machine.copy_scaling
        self.bytes = bytes_of_places(problem)
        self.frame = Frame(problem)

    def seconds(self, allocations: Iterable[Allocation]) -> float:
        """Seconds of one run of the program with these allocations."""
        return self.run(allocations).seconds

    def run(self, allocations: Iterable[Allocation]) -> Run:
        """The simulated run: seconds, stalls and where they happen."""
        return Flow.of(self, allocations).run()


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


class Flow:
    """One result, ready to be timed.

    What each allocation accesses is as it was when the flow was made; when copies
    start and end is read anew for each run.
    """

    __slots__ = ("_copies", "_estimator", "_reads", "_writes")

    def __init__(
        self,
        estimator: Estimator,
        copies: Sequence[CopyAllocation | SlicedCopyAllocation],
        reads: Accesses,
        writes: Accesses,
    ) -> None:
        self._estimator = estimator
        self._copies = copies
        self._reads = reads
        self._writes = writes

    @classmethod
    def of(cls, estimator: Estimator, allocations: Iterable[Allocation]) -> Flow:
        """The flow of a result. Linear in allocations and uses."""
        sizes = estimator.bytes
        copies: list[CopyAllocation | SlicedCopyAllocation] = []
        reads: list[tuple[int, float, int]] = []
        writes: list[tuple[int, float, int]] = []
        for allocation in allocations:
            owner = -1
            if isinstance(allocation, (CopyAllocation, SlicedCopyAllocation)):
                owner = len(copies)
                copies.append(allocation)
            if not allocation.is_alternate or type(allocation) in _WITHOUT_ACCESSES:
                continue
            reads += (
                (use.step, sizes[use], owner) for use in allocation.uses if use in sizes
            )
            place = allocation.position
            if owner < 0 and place in sizes:
                writes.append((place.step, sizes[place], owner))
        return cls(estimator, copies, Accesses.of(reads), Accesses.of(writes))

    def without(self, gone: Container[Allocation]) -> Flow:
        """The flow without some copies, whose readers read slow memory instead."""
        kept = np.array([copy not in gone for copy in self._copies], np.bool_)
        copies = [copy for copy, keep in zip(self._copies, kept, strict=True) if keep]
        reads = self._reads.of_owners(kept)
        return Flow(self._estimator, copies, reads, self._writes)

    def run(self) -> Run:
        """The simulated run: seconds, stalls and where they happen."""
        estimator = self._estimator
        events = _merged(estimator.frame, *self._steps(), self._transfers())
        return run(events, estimator.problem.end + 1, estimator.copy_rate)

    def _steps(self) -> tuple[Floats, Floats]:
        """Seconds of each step, and those that leave default memory idle."""
        estimator = self._estimator
        machine = estimator.problem.machine
        read = self._reads.per_step(len(estimator.total))
        written = self._writes.per_step(len(estimator.total))
        slow = np.maximum(estimator.total - read - written, 0.0)
        slow /= machine.default_bandwidth
        memory = (
            read / machine.alternate_read_bandwidth
            + written / machine.alternate_write_bandwidth
            + slow
        )
        seconds = np.maximum(estimator.compute, memory)
        return seconds, seconds - slow

    def _transfers(self) -> Transfers:
        """The copies, one row for each slice, in the order of their queues.

        Evictions are scheduled before prefetches, each by (end, start).
        """
        values = self._estimator.problem.values
        done: list[int] = []
        start: list[int] = []
        fast: list[bool] = []
        size: list[int] = []
        for copy in self._copies:
            if isinstance(copy, CopyAllocation):
                start.append(copy.start_after)
                size.append(values[copy.value].size)
                parts = 1
            else:
                start += (part.start_after for part in copy.slices)
                size += (part.chunk.size for part in copy.slices)
                parts = len(copy.slices)
            done += (copy.done_before,) * parts
            fast += (copy.is_alternate,) * parts
        starts = np.array(start, np.int64)
        dones = np.array(done, np.int64)
        sizes = np.array(size, np.float64)
        towards = np.where(np.array(fast, np.bool_), TO_ALTERNATE, TO_DEFAULT)
        order = np.lexsort((starts, dones, -towards))
        return Transfers(starts[order], dones[order], sizes[order], towards[order])


class Accesses(NamedTuple):
    """Bytes moved fast: at which step, how many, and the number of the copy or -1."""

    steps: Ints
    amounts: Floats
    owners: Ints

    @classmethod
    def of(cls, rows: Sequence[tuple[int, float, int]]) -> Accesses:
        """From (step, bytes, owner) rows."""
        return cls(
            np.array([step for step, _, _ in rows], np.int64),
            np.array([amount for _, amount, _ in rows], np.float64),
            np.array([owner for _, _, owner in rows], np.int64),
        )

    def of_owners(self, kept: Bools) -> Accesses:
        """Those of no copy or of a kept one; copies are numbered anew."""
        chosen = np.append(kept, True)[self.owners]
        numbers = np.append(np.cumsum(kept) - 1, -1)[self.owners]
        return Accesses(self.steps[chosen], self.amounts[chosen], numbers[chosen])

    def per_step(self, count: int) -> Floats:
        """Bytes of each step, added up in the order of the rows."""
        sums: Floats = np.zeros(count)
        np.add.at(sums, self.steps, self.amounts)
        return sums


class Transfers(NamedTuple):
    """Copies: after and before which step they start and end, bytes, direction."""

    start: Ints
    done: Ints
    size: Floats
    direction: Ints


def _merged(
    frame: Frame, seconds: Floats, idle: Floats, transfers: Transfers
) -> list[EventRow]:
    """All events in the order in which they happen.

    Between two steps, ends of copies come before starts; but an end needs its start.
    """
    start, done, size, direction = transfers
    count = len(start)
    numbers = np.arange(count)
    boundary = np.concatenate((start + 1, done))
    late = np.concatenate((start + 1 != done, np.zeros(count, np.bool_)))
    order = np.lexsort((np.concatenate((2 * numbers, 2 * numbers + 1)), late, boundary))
    order = order[boundary[order] < len(frame.first)]
    boundary = boundary[order]
    # Events of copies come before those of the step behind their boundary.
    places = frame.first[boundary] + np.arange(len(order))
    others = np.arange(len(frame.kind))
    others += np.searchsorted(boundary, frame.step, side="right")

    def column(ours: Any, theirs: Any, dtype: type) -> list[Any]:
        merged: NDArray[Any] = np.zeros(len(others) + len(order), dtype)
        merged[others] = ours
        merged[places] = theirs
        whole: list[Any] = merged.tolist()
        return whole

    step = np.concatenate((np.maximum(start, 0), done))[order]
    kind = np.repeat((START, DONE), count)[order]
    amount = np.concatenate((size, np.zeros(count)))[order]
    times = np.zeros((2, len(frame.kind)))
    times[:, frame.runs] = seconds[frame.ran], idle[frame.ran]
    return list(
        zip(
            column(frame.kind, kind, np.int64),
            column(frame.step, step, np.int64),
            column(times[0], 0.0, np.float64),
            column(times[1], 0.0, np.float64),
            column(frame.amount, amount, np.float64),
            column(-1, np.tile(numbers, 2)[order], np.int64),
            column(TO_ALTERNATE, np.tile(direction, 2)[order], np.int64),
            strict=True,
        )
    )


def bytes_of_places(problem: Problem) -> dict[object, float]:
    """Bytes moved per use and per position, by the instruction there."""
    sizes: dict[object, float] = {}
    fast = [opcode not in _NEVER_FAST for opcode in problem.opcodes]
    for value in problem.values:
        sizes.update(
            (use, size)
            for use, size in zip(value.uses, value.use_bytes, strict=False)
            if size > 0 and fast[use.step]
        )
        sizes.update(
            (place, size)
            for place, size in zip(value.positions, value.position_bytes, strict=False)
            if size > 0 and fast[place.step]
        )
    return sizes
