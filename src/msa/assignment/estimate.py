"""What a result would take to run, without lowering it.

The problem's steps run one after another on the simulated machine of
`msa.analysis.simulation`, with accesses where the allocations put them and their
copies in flight: the figure that `msa.simulate` gives for the lowered module, at a
fraction of the cost. Searches compare candidates by it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msa.analysis.simulation.engine import EventRow, Run, run
from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    ScopedAllocation,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)
from msa.assignment.copy_times import CopyTimes
from msa.assignment.dead_steps import DeadSteps
from msa.assignment.flow_events import FREE as FREE
from msa.assignment.flow_events import CopyParts, Frame, StepRows
from msa.assignment.flow_events import Loop as Loop
from msa.assignment.flow_events import loops_of as loops_of
from msa.assignment.problem import Machine, Problem
from msa.assignment.running import Running
from msa.hlo.opcode import RUNNING_OPCODES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_WITHOUT_ACCESSES: Final = frozenset({ScopedAllocation, WindowPrefetchedAllocation})
"""Kinds whose bytes are not among those that the cost analysis counts."""


class Estimator:
    """Times results of one problem.

    Everything that does not depend on the result is prepared once; `seconds` is
    linear in steps and allocations.

    Args:
        problem: what is planned.
        kept: steps that are known not to be removed; see `DeadSteps`.
    """

    __slots__ = (
        "bytes",
        "copy_rate",
        "copy_times",
        "dead",
        "frame",
        "problem",
        "runs_regions",
    )

    def __init__(self, problem: Problem, kept: Collection[int] = ()) -> None:
        self.problem = problem
        machine = problem.machine
        self.dead = DeadSteps(problem, kept)
        self.runs_regions = Running(problem).matters
        self.copy_rate = machine.default_bandwidth * machine.copy_scaling
        self.bytes = bytes_of_places(problem)
        self.frame = Frame(problem)
        self.copy_times = CopyTimes(problem)

    def seconds(self, allocations: Iterable[Allocation]) -> float:
        """Seconds of one run of the program with these allocations."""
        return self.run(allocations).seconds

    def run(self, allocations: Iterable[Allocation]) -> Run:
        """The simulated run: seconds, stalls and where they happen."""
        return Flow.of(self, allocations).run()


class Flow:
    """One result, ready to be timed.

    What each allocation accesses is as it was when the flow was made; when copies
    start and end is read anew for each run.
    """

    __slots__ = ("_copies", "_reads", "_rows", "_writes", "estimator")

    def __init__(
        self,
        estimator: Estimator,
        copies: CopyParts,
        reads: Accesses,
        writes: Accesses,
        like: StepRows | None = None,
    ) -> None:
        self.estimator = estimator
        self._copies = copies
        self._reads = reads
        self._writes = writes
        times = self._steps()
        self._rows = (
            StepRows.of(estimator.frame, *times)
            if like is None
            else like.with_times(*times)
        )

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
        parts = CopyParts.of(estimator.problem, copies)
        return cls(estimator, parts, Accesses.of(reads), Accesses.of(writes))

    def without(self, gone: Container[Allocation]) -> Flow:
        """The flow without some copies, whose readers read slow memory instead."""
        kept = np.array([copy not in gone for copy in self._copies.whole], np.bool_)
        return Flow(
            self.estimator,
            self._copies.where(kept),
            self._reads.of_owners(kept),
            self._writes,
            self._rows,
        )

    def run(self) -> Run:
        """The simulated run: seconds, stalls and where they happen."""
        estimator = self.estimator
        return run(self.events(), estimator.problem.end + 1, estimator.copy_rate)

    def events(self) -> list[EventRow]:
        """What happens, in order; copies have their numbers in `copies`."""
        return self._rows.merged(self._copies.transfers(self.estimator.copy_times))

    @property
    def copies(self) -> list[CopyAllocation | SlicedCopyAllocation]:
        """What the parts of copies belong to, in the order of their queues."""
        owners = self._copies.owners[self._copies.queue_order()]
        return [self._copies.whole[owner] for owner in owners.tolist()]

    def loads(self) -> Loads:
        """What each step has to do."""
        compute, total = _step_costs(self.estimator, self._copies.whole)
        count = len(total)
        read, written = self._reads.per_step(count), self._writes.per_step(count)
        return Loads(compute, total, read, written)

    def _steps(self) -> tuple[Floats, Floats]:
        """Seconds of each step, and those that leave default memory idle."""
        loads = self.loads()
        slow, memory = loads.memory(self.estimator.problem.machine)
        seconds = np.maximum(loads.compute, memory)
        dead = loads.total < 0.0
        seconds[dead] = slow[dead] = 0.0
        return seconds, seconds - slow


class Loads(NamedTuple):
    """Per step: seconds of arithmetic, bytes in all, bytes read and written fast.

    Steps that are removed have -1 bytes in all.
    """

    compute: Floats
    total: Floats
    read: Floats
    written: Floats

    def memory(self, machine: Machine) -> tuple[Floats, Floats]:
        """Per step, seconds of default memory, and of all traffic."""
        slow = np.maximum(self.total - self.read - self.written, 0.0)
        slow /= machine.default_bandwidth
        memory = (
            self.read / machine.alternate_read_bandwidth
            + self.written / machine.alternate_write_bandwidth
            + slow
        )
        return slow, memory


def _step_costs(
    estimator: Estimator, copies: Sequence[CopyAllocation | SlicedCopyAllocation]
) -> tuple[Floats, Floats]:
    """Seconds of arithmetic and bytes of each step; -1 of those that are removed."""
    problem = estimator.problem
    compute, total = (np.array(x, np.float64) for x in problem.simulated)
    dead = estimator.dead.of(copies)
    if estimator.runs_regions:
        running = Running(problem, dead)
        for copy in copies:
            size = float(problem.values[copy.value].size)
            running.copy(copy.position.step, size, 1.0)
        for step in running.steps():
            compute[step], total[step] = running.costs(step)
    total[list(dead)] = -1.0
    return compute, total


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


def bytes_of_places(problem: Problem) -> dict[object, float]:
    """Bytes moved per use and per position, by the instruction there."""
    sizes: dict[object, float] = {}
    fast = [opcode not in RUNNING_OPCODES for opcode in problem.opcodes]
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
