"""The state of one run of the algorithm: frozen inputs, and the ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.assignment.allocation import (
    AliasedOffset,
    Allocation,
    AllocationSequence,
    CopyAllocation,
    Index,
    MemorySpace,
    Use,
)
from msa.assignment.conversions import Conversions
from msa.assignment.costs import CostModel
from msa.assignment.intervals import MsaBufferInterval, create_buffer_intervals
from msa.assignment.ledgers.edges import Edges
from msa.assignment.ledgers.free_space import FreeSpace
from msa.assignment.ledgers.idle import IdleBandwidth
from msa.assignment.ledgers.lane import CopyLane
from msa.assignment.ledgers.ordering import CopyOrdering
from msa.assignment.ledgers.transaction import Transaction
from msa.assignment.options import CostAnalysisPicker, Options
from msa.assignment.outcomes import BufferDecision, Decision
from msa.assignment.overrides import PreferredPrefetchOverrides
from msa.assignment.pickers.cost_analysis import CostAnalysisPrefetchIntervalPicker
from msa.assignment.pickers.instruction_count import (
    InstructionCountPrefetchIntervalPicker,
)
from msa.assignment.pickers.interface import PrefetchIntervalPicker
from msa.assignment.problem import Problem, Value
from msa.assignment.repacking import Repacking
from msa.assignment.required import RequiredAssignments
from msa.assignment.times import UseTimes
from msa.errors import OptionsError
from msa.heap.chunk import Chunk

if TYPE_CHECKING:
    from msa.assignment.coloring import Coloring
    from msa.assignment.loop_optimizer import LoopDecision
    from msa.assignment.splitting import SplitTree

#: Seconds that a copy is taken to need when there is no cost analysis.
NOMINAL_COPY_SECONDS = 0.1


class State:
    """What the stages of the algorithm share.

    Attributes:
        problem, options: the inputs.
        capacity, alignment: bytes.
        costs: estimates, or None without cost analysis.
        idle: what steps leave of the bandwidth; None for faithful plans.
        picker: chooses copy starts.
        times: corrected times of uses.
        intervals: per value id; None for empty values.
        transaction: takes back what the current joint proposal did.
        space, required, prefetches, evictions, ordering: the ledgers.
        finalized: per value id, whether nothing more is decided about it.
        allocations: finished allocations, in order of decision.
        decisions, buffer_decisions: the log.
        edges: steps right before or after finished alternate allocations.
        default_uses: uses that were left in default memory, in order.
        alternate_operands, alternate_outputs: what each step reads from and writes to
            alternate memory, as far as decided.
        coloring: what the user wants where, or None.
        conversions: synchronous copies and slices that may be replaced.
        repacking: blocks of what is placed, if repacking is on.
        loop_decisions: what the loop optimizer wants for uses.
        overrides: of preferred prefetch starts.
        split_tree: per instruction and node, the dimension that is split.
        reserved: bytes of alternate memory that the program fixed itself.
        cross_program_values: values that are fetched before the program starts.
    """

    __slots__ = (
        "_read_bytes",
        "alignment",
        "allocations",
        "alternate_operands",
        "alternate_outputs",
        "buffer_decisions",
        "capacity",
        "coloring",
        "conversions",
        "costs",
        "cross_program_values",
        "decisions",
        "default_uses",
        "edges",
        "evictions",
        "finalized",
        "idle",
        "intervals",
        "loop_decisions",
        "options",
        "ordering",
        "overrides",
        "picker",
        "prefetches",
        "problem",
        "repacking",
        "required",
        "reserved",
        "space",
        "split_tree",
        "times",
        "transaction",
    )

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem = problem
        self.options = options
        self.capacity = options.max_size_in_bytes or problem.machine.capacity
        if options.reserved_bytes_for_block_prefetches > self.capacity:
            raise OptionsError(
                "reserved_bytes_for_block_prefetches "
                f"({options.reserved_bytes_for_block_prefetches}) exceed the capacity "
                f"({self.capacity} bytes)",
                hint="reserve less, or give more alternate memory",
            )
        self.alignment = options.alignment_in_bytes or problem.machine.alignment
        self.costs = CostModel(problem, options) if options.cost_analysis else None
        self.idle = (
            None
            if options.faithful or self.costs is None
            else IdleBandwidth(self.costs)
        )
        self.picker = _make_picker(options, self.costs, self.capacity)
        self.times = UseTimes(problem)
        if problem.views and not options.view_source_default_memory_only:
            self.times.extend_through_views()
        self.intervals: list[MsaBufferInterval | None] = create_buffer_intervals(
            problem
        )
        self.transaction = Transaction()
        self.space = FreeSpace(
            problem.end + 1, self.capacity, self.alignment, self.transaction
        )
        self.required = RequiredAssignments(problem, self.transaction)
        resources = _copy_resources(problem, self.costs)
        self.prefetches = CopyLane(
            resources, options.max_outstanding_prefetches, self.transaction
        )
        self.evictions = CopyLane(
            resources, options.max_outstanding_evictions, self.transaction
        )
        self.ordering = CopyOrdering(self.transaction)
        self.reserved = 0
        self.split_tree: SplitTree = {}
        self.finalized = bytearray(len(problem.values))
        self.allocations = AllocationSequence()
        self.decisions: list[Decision] = []
        self.buffer_decisions: list[BufferDecision] = []
        self.edges = Edges(problem.end + 2)
        self.default_uses: dict[Use, None] = {}
        self.alternate_operands: dict[int, set[tuple[int, Index]]] = {}
        self.alternate_outputs: dict[int, set[Index]] = {}
        self.coloring: Coloring | None = None
        self.conversions = Conversions(
            problem, self.intervals, self.finalized, self.available, _enabled(options)
        )
        self.repacking = (
            Repacking(self.capacity, self.alignment, options.repacker)
            if options.max_repacks > 0 or options.repack_after_every_allocation
            else None
        )
        self.loop_decisions: dict[Use, LoopDecision] = {}
        self.overrides = PreferredPrefetchOverrides(
            problem, options.preferred_prefetch_overrides
        )
        self.cross_program_values: set[int] = set()
        self._read_bytes: dict[int, dict[Use, float]] = {}

    @property
    def available(self) -> int:
        """Bytes of alternate memory that the program did not fix itself."""
        return self.capacity - self.reserved

    def copy_seconds(self, size: int) -> float:
        """Seconds of bandwidth that a copy takes."""
        if self.costs is None:
            return NOMINAL_COPY_SECONDS
        return self.costs.copy_seconds(size)

    def add_copy(self, copy: CopyAllocation) -> None:
        """Charge a copy to its direction's ledgers and share its offset."""
        if copy.space is MemorySpace.ALTERNATE:
            self.prefetches.add(copy.start_after, copy.done_before, copy.resource)
            if self.options.enforce_prefetch_fifo_order:
                self.ordering.add(copy.start_after, copy.done_before)
        else:
            self.evictions.add(copy.start_after, copy.done_before, copy.resource)

    def share_offset(
        self, allocation: Allocation, offset: AliasedOffset | None
    ) -> AliasedOffset:
        """Attach an alternate allocation to a shared offset, or to a new one."""
        assert allocation.chunk is not None
        if offset is None:
            offset = AliasedOffset(allocation.chunk.offset)
        allocation.aliased_offset = offset
        return offset

    def _note_idle(self, allocation: Allocation) -> None:
        """Steps that use the allocation leave more of the bandwidth to copies."""
        assert self.idle is not None
        value = self.problem.values[allocation.value]
        for use in allocation.uses:
            self.idle.place(use.step, self._bytes_read(value, use), 0.0)
        if not allocation.is_copy_like and allocation.position in value.positions:
            number = value.positions.index(allocation.position)
            if number < len(value.position_bytes):
                self.idle.place(
                    allocation.position.step, 0.0, value.position_bytes[number]
                )

    def _bytes_read(self, value: Value, use: Use) -> float:
        """Bytes that a use reads; O(1), also of a value with many uses."""
        uses = value.uses
        if len(uses) == 1 and uses[0] == use:
            return value.use_bytes[0] if value.use_bytes else 0.0
        known = self._read_bytes.get(value.id)
        if known is None:
            known = dict(zip(uses, value.use_bytes, strict=False))
            self._read_bytes[value.id] = known
        return known.get(use, 0.0)

    def hold(self, start: int, end: int, offset: int, size: int) -> Chunk:
        """Take `[offset, offset + size)` in `[start, end]`."""
        chunk = Chunk(offset, size)
        self.space.commit(start, end, chunk)
        return chunk

    def finish(self, allocation: Allocation) -> None:
        """Add a finished allocation to the result."""
        self.allocations.append(allocation)
        if allocation.space is MemorySpace.DEFAULT or allocation.kind == "scoped":
            return
        if self.idle is not None:
            self._note_idle(allocation)
        self.edges.add(allocation.start - 1)
        self.edges.add(allocation.end + 1)
        for use in allocation.uses:
            operands = self.alternate_operands.setdefault(use.step, set())
            operands.add((use.operand, use.index))
        if not allocation.is_copy_like and allocation.kind != "window":
            step, index = allocation.position
            self.alternate_outputs.setdefault(step, set()).add(index)


def _enabled(options: Options) -> set[str]:
    """Kinds of synchronous moves that may be replaced."""
    return {
        kind
        for kind, on in (
            ("copy", options.enable_sync_copy_replacement),
            ("slice", options.enable_sync_slice_replacement),
            ("fusion", options.enable_sync_custom_fusion_replacement),
        )
        if on
    }


def _make_picker(
    options: Options, costs: CostModel | None, capacity: int
) -> PrefetchIntervalPicker:
    choice = options.prefetch_interval_picker
    if isinstance(choice, CostAnalysisPicker):
        assert costs is not None  # options are checked for this
        return CostAnalysisPrefetchIntervalPicker(
            costs, choice, capacity, faithful=options.faithful
        )
    return InstructionCountPrefetchIntervalPicker(
        choice.min_overlap, choice.max_overlap
    )


def _copy_resources(problem: Problem, costs: CostModel | None) -> list[float]:
    """Seconds in which each step leaves the copy engine free."""
    if costs is None:
        resources = [1.0] * problem.end
    else:
        resources = costs.elapsed.tolist()
        for step in problem.called:
            if problem.opcodes[step] in ("while", "conditional"):
                resources[step] = 0.0
    factor, last = 1.0, -1
    for step in range(problem.end) if problem.copy_factors else ():
        # While an asynchronous operation runs, copies get a share of the bandwidth.
        if step in problem.copy_factors:
            factor, until = problem.copy_factors[step]
            last = max(last, until)
        if step <= last:
            resources[step] *= factor
    return resources
