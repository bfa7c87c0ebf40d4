"""Deciding for one iteration what is in alternate memory, and when."""

from __future__ import annotations

from msa.assignment.allocation import (
    CopyAllocation,
    MemorySpace,
    PinnedAllocation,
    Position,
    Use,
)
from msa.assignment.costs import CostModel
from msa.assignment.loop_optimizer.detect import Loop
from msa.assignment.loop_optimizer.heap import LoopHeap
from msa.assignment.loop_optimizer.prefetches import allocate_prefetches
from msa.assignment.loop_optimizer.timing import execution_seconds
from msa.assignment.loop_optimizer.values import LoopValue, ValueType, loop_values
from msa.assignment.options import MemoryBoundLoopOptimizerOptions
from msa.assignment.problem import Problem


class LoopOptimizer:
    """The decisions for the second iteration of a loop.

    Attributes:
        values: what the iteration touches, the most worthwhile first.
        heap: room taken in four modelled iterations.
    """

    __slots__ = (
        "_costs",
        "_fast_reads",
        "_fast_writes",
        "_first",
        "heap",
        "loop",
        "options",
        "problem",
        "values",
    )

    def __init__(
        self,
        problem: Problem,
        costs: CostModel,
        loop: Loop,
        capacity: int,
        alignment: int,
        options: MemoryBoundLoopOptimizerOptions,
        scratch: dict[int, int] | None = None,
    ) -> None:
        self.problem = problem
        self.loop = loop
        self.options = options
        self._costs = costs
        self._first = loop.start + loop.size
        self._fast_reads: dict[int, dict[Use, float]] = {}
        self._fast_writes: dict[int, dict[Position, float]] = {}
        self.heap = LoopHeap(loop.size, capacity, alignment)
        for step, size in (scratch or {}).items():
            index = step - self._first
            if 0 <= index < loop.size and size > 0:
                self.heap.allocate_same(index, index, min(size, capacity))
        self.values = loop_values(problem, loop)

    def optimize(self) -> None:
        """Decide everything: temporaries, then pinned values, then prefetches."""
        self.values.sort(key=lambda v: -v.savings_per_byte)
        prefetches = []
        for value in self.values:
            if value.kind is ValueType.TEMPORARY:
                self._allocate_temporary(value)
            elif value.kind is ValueType.PINNED and value.savings > 0:
                self._allocate_pinned(value)
            elif value.kind is ValueType.PREFETCH:
                prefetches.append(value)
        allocate_prefetches(self, prefetches)
        for value in self.values:
            self._finish(value)

    # -- single values ---------------------------------------------------------------

    def _allocate_temporary(self, value: LoopValue) -> None:
        if value.value_count > 1:
            return
        size = self.loop.size
        begin = value.positions[0][0]
        if value.next_uses:
            end = value.next_uses[-1][0] + size
        else:
            end = value.uses[-1][0]
        if self.heap.allocate_same(begin, end, value.size) is None:
            return
        uses = [use for _, use in value.uses]
        # Reads of the next iteration are this iteration's instruction at that index.
        uses += [
            Use(use.step - size, use.operand, use.index) for _, use in value.next_uses
        ]
        self._pin(value, value.positions[0][1], begin, end, uses)
        for _, position in value.positions:
            self._write_fast(position)

    def _allocate_pinned(self, value: LoopValue) -> None:
        size = self.loop.size
        if self.heap.allocate_same(0, size - 1, value.size) is None:
            return
        assert value.header is not None
        self._pin(value, value.header, 0, size, [use for _, use in value.uses])

    def _pin(
        self,
        value: LoopValue,
        position: Position,
        begin: int,
        end: int,
        uses: list[Use],
    ) -> None:
        value.allocations.append(
            PinnedAllocation(
                value=value.value,
                position=position,
                space=MemorySpace.ALTERNATE,
                chunk=None,
                start=begin,
                end=end,
                uses=uses,
            )
        )
        for use in uses:
            self.read_fast(use)

    def copy(
        self, value: LoopValue, start_after: int, done_before: int, end: int
    ) -> None:
        """Decide for a prefetch; times are indices of the iteration."""
        assert value.header is not None
        source = PinnedAllocation(
            value=value.value,
            position=value.header,
            space=MemorySpace.DEFAULT,
            chunk=None,
            start=0,
            end=self.loop.size,
        )
        uses = [use for _, use in value.uses]
        size = self.loop.size
        uses += [
            Use(use.step - size, use.operand, use.index) for _, use in value.next_uses
        ]
        value.allocations += [
            source,
            CopyAllocation(
                value=value.value,
                position=value.header,
                space=MemorySpace.ALTERNATE,
                chunk=None,
                start=start_after + 1,
                end=end,
                uses=uses,
                source=source,
                start_after=start_after,
                done_before=done_before,
            ),
        ]

    def _finish(self, value: LoopValue) -> None:
        """What has no allocation is read from default memory."""
        served = {use for a in value.allocations for use in a.uses}
        left = [use for _, use in value.uses if use not in served]
        taken = {index for index, _ in value.uses}
        size = self.loop.size
        left += [
            Use(use.step - size, use.operand, use.index)
            for index, use in value.next_uses
            if index not in taken
            and Use(use.step - size, use.operand, use.index) not in served
        ]
        if left:
            value.allocations.append(
                PinnedAllocation(
                    value=value.value,
                    position=self.problem.values[value.value].position,
                    space=MemorySpace.DEFAULT,
                    chunk=None,
                    start=0,
                    end=size,
                    uses=left,
                )
            )

    # -- times -------------------------------------------------------------------------

    def read_fast(self, use: Use) -> None:
        """The use reads alternate memory."""
        operand = self.problem.operands[use.step][use.operand]
        value = self.problem.value_at.get(Position(operand, use.index))
        size = 0.0
        if value is not None:
            facts = self.problem.values[value]
            sizes = dict(zip(facts.uses, facts.use_bytes, strict=False))
            size = sizes.get(use, 0.0)
        self._fast_reads.setdefault(use.step - self._first, {})[use] = size

    def _write_fast(self, position: Position) -> None:
        value = self.problem.values[self.problem.value_at[position]]
        sizes = dict(zip(value.positions, value.position_bytes, strict=False))
        row = self._fast_writes.setdefault(position.step - self._first, {})
        row[position] = sizes.get(position, 0.0)

    def _fast(self, index: int, extra: dict[int, float]) -> tuple[float, float]:
        read = sum(self._fast_reads.get(index, {}).values()) + extra.get(index, 0.0)
        return read, sum(self._fast_writes.get(index, {}).values())

    def fast_bytes(self, index: int) -> tuple[float, float]:
        """Bytes that the instruction at the index reads from and writes to fast memory."""
        return self._fast(index, {})

    def idle_seconds(self, extra: dict[int, float]) -> list[float]:
        """Per index, seconds in which default memory is idle.

        `extra`: bytes per index that are read from alternate memory besides what is
        decided.
        """
        return [
            self._costs.idle_seconds(self._first + i, *self._fast(i, extra))
            for i in range(self.loop.size)
        ]

    def elapsed(self, index: int) -> float:
        """Seconds of the instruction at the index, as decided."""
        read, written = self._fast(index, {})
        return self._costs.elapsed_with(self._first + index, read, written)

    def copy_seconds(self, value: LoopValue) -> float:
        """Seconds of the value's copy."""
        return self._costs.copy_seconds(value.size)

    def read_bytes(self, value: LoopValue) -> dict[int, float]:
        """Bytes that the value's uses read, per index."""
        rows: dict[int, float] = {}
        for member in self.problem.buffers[value.buffer]:
            facts = self.problem.values[member]
            for use, size in zip(facts.uses, facts.use_bytes, strict=False):
                index = use.step - self._first
                if 0 <= index < self.loop.size:
                    rows[index] = rows.get(index, 0.0) + size
        return rows

    def execution_seconds(self) -> float:
        """Seconds of one iteration in the steady state."""
        copies = [
            (self.copy_seconds(value), a)
            for value in self.values
            for a in value.allocations
            if isinstance(a, CopyAllocation)
        ]
        return execution_seconds(
            self.loop.size,
            [self.elapsed(i) for i in range(self.loop.size)],
            self.idle_seconds({}),
            copies,
        )
