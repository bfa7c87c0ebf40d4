"""The algorithm: buffers in order of benefit, each placed as well as still possible.

Reference: `MsaAlgorithm::Finish` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msa.assignment.allocation import AllocationSequence
from msa.assignment.blocks import allocate_blocks
from msa.assignment.coloring import process_colors
from msa.assignment.conditionals import require_conditional_outputs
from msa.assignment.conversions import ConversionResult
from msa.assignment.cross_program import (
    CrossProgramPrefetch,
    allocate_cross_program_prefetches,
)
from msa.assignment.dumps import dump
from msa.assignment.finalize import finalize, mark_finalized, uncommit
from msa.assignment.inefficient import (
    Site,
    inefficient_sites,
    require_default_at,
    retry_can_progress,
)
from msa.assignment.intervals import MsaBufferInterval
from msa.assignment.joint import JointAllocation, JointProposal, propose
from msa.assignment.loops import RegionUses
from msa.assignment.options import Options
from msa.assignment.order import sorted_intervals
from msa.assignment.outcomes import (
    OUT_OF_MEMORY,
    REQUIRES_UNCOMMIT,
    SYNC_DATA_MOVE_REPLACEMENT,
    BufferDecision,
    Decision,
    Skip,
)
from msa.assignment.post_allocation import transform
from msa.assignment.problem import Problem
from msa.assignment.required import add_permanent_requirements
from msa.assignment.scalars import pin_scalars
from msa.assignment.scoped import (
    allocate_scoped,
    extend_scoped_alternate_memory_allocations,
)
from msa.assignment.state import State
from msa.assignment.windows import allocate_windows
from msa.assignment.worth import is_placeable
from msa.errors import OptionsError


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one run.

    Attributes:
        proposals: joint proposals that were tried.
        uncommitted: attempts that were taken back.
        segments: uses that were decided.
        prefetches, evictions: copies made.
        repacks, repacks_successful: calls of the repacker.
    """

    proposals: int = 0
    uncommitted: int = 0
    segments: int = 0
    prefetches: int = 0
    evictions: int = 0
    repacks: int = 0
    repacks_successful: int = 0


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """What the algorithm decided.

    Attributes:
        allocations: in order of decision; sources before what depends on them.
        heap_bytes: highest address used.
        cross_program_prefetches: inputs fetched before the program starts.
        decisions: per use; attempts that were taken back included.
        buffer_decisions: buffers that were not considered, and why.
        statistics: counts.
        reserved_values: values that the program's caller keeps in alternate memory;
            all their places have its colour.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.assignment import build_problem
    >>> problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    >>> result = run_greedy(problem)
    >>> [a.kind for a in result.allocations][:2], result.heap_bytes
    (['pinned', 'pinned'], 1024)
    """

    allocations: AllocationSequence
    heap_bytes: int
    cross_program_prefetches: tuple[CrossProgramPrefetch, ...] = ()
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    buffer_decisions: tuple[BufferDecision, ...] = field(default=(), repr=False)
    statistics: Statistics = field(default_factory=Statistics)
    reserved_values: tuple[int, ...] = ()


class MsaAlgorithm:
    """One run over one problem.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.assignment import build_problem
    >>> problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    >>> from msa.assignment import Options
    >>> MsaAlgorithm(problem, Options()).finish().heap_bytes
    1024
    """

    __slots__ = ("_proposals", "_region_uses", "_reserved", "_uncommitted", "state")

    def __init__(self, problem: Problem, options: Options) -> None:
        self.state = State(problem, options)
        self._region_uses = RegionUses(problem)
        self._proposals = 0
        self._uncommitted = 0
        self._reserved: set[int] = set()

    def finish(self) -> AllocationResult:
        """Decide everything."""
        state = self.state
        allocate_blocks(state)
        allocate_scoped(state)
        state.coloring = process_colors(state)
        order = sorted_intervals(state)
        fetched = allocate_cross_program_prefetches(state)
        add_permanent_requirements(
            state.problem, state.required, calls=not state.options.faithful
        )
        if state.options.memory_bound_loop_optimizer_options.enabled:
            from msa.assignment.loop_optimizer import optimize_loops

            state.loop_decisions = optimize_loops(state)
            state.transaction.rollback()
        self._reserve_for_caller()
        pin_scalars(state)
        for interval in order:
            if not state.finalized[interval.value]:
                self._place(interval)
        if state.options.repack_after_every_allocation:
            assert state.repacking is not None
            if state.repacking.is_frozen:
                raise OptionsError(
                    "repack_after_every_allocation and the replacement of synchronous "
                    "operations exclude each other once one was replaced"
                )
            state.repacking.run(state, discard=True)
        transform(state)
        allocate_windows(state)
        if state.options.expanded_scoped_alternate_memory_mode == "ENABLED":
            extend_scoped_alternate_memory_allocations(state)
        dump(state)
        return self._result(fetched)

    def _reserve_for_caller(self) -> None:
        """Leave out what the program's caller keeps in alternate memory."""
        state = self.state
        values = state.problem.values
        buffers = {
            value.buffer
            for value in values
            if value.reserved and value.id not in state.cross_program_values
        }
        self._reserved.update(buffers)
        state.reserved += sum(
            interval.size
            for interval in state.intervals
            if interval is not None
            and interval.need_allocation
            and values[interval.value].buffer in buffers
        )

    def _place(self, interval: MsaBufferInterval) -> None:
        """Try to place the interval and everything that shares its storage."""
        if not interval.need_allocation:
            return
        proposal = propose(self.state, interval, self._is_considered)
        if proposal.allocation_values:
            self._proposals += 1
            self._attempt(interval, proposal)

    def _attempt(self, interval: MsaBufferInterval, proposal: JointProposal) -> None:
        """Allocate the proposal, again and again until it is kept or given up."""
        state, conversions = self.state, self.state.conversions
        retry, repacked = 0, False
        while retry < state.options.max_retries and proposal.allocation_values:
            for group in proposal.groups:
                require_conditional_outputs(state, group)
            state.picker.retry_number = retry
            attempt = JointAllocation(
                state, proposal.allocation_values, self._region_uses
            )
            outcome = attempt.run()
            if outcome & SYNC_DATA_MOVE_REPLACEMENT:
                # Some candidate has failed: propose again without it.
                self._take_back(proposal)
                proposal = propose(state, interval, self._is_considered)
                continue
            if outcome & REQUIRES_UNCOMMIT:
                self._take_back(proposal)
                if retry > 0 and conversions.candidates:
                    conversions.fail(
                        conversions.candidates[0], ConversionResult.GAVE_UP
                    )
                    proposal = propose(state, interval, self._is_considered)
                else:
                    retry += 1
                continue
            if not repacked and self._may_repack(outcome):
                self._take_back(proposal)
                repacked = True
                # XLA uses the attempt up if nothing can be moved, and so loses what
                # did fit before.
                if not self._repack() and state.options.faithful:
                    retry += 1
                continue
            sites = self._inefficient_sites(proposal)
            if sites and retry_can_progress(state, sites):
                self._take_back(proposal)
                require_default_at(state, sites)
                continue
            finalize(state, proposal)
            break
        mark_finalized(state, proposal)

    def _may_repack(self, outcome: int) -> bool:
        """Whether moving things might serve a proposal with that outcome better."""
        repacking, options = self.state.repacking, self.state.options
        return (
            repacking is not None
            and (bool(outcome & OUT_OF_MEMORY) or options.repack_after_every_allocation)
            and repacking.calls < options.max_repacks
            and not repacking.is_frozen
        )

    def _repack(self) -> bool:
        """Repack; whether another attempt sees a changed memory."""
        repacking, options = self.state.repacking, self.state.options
        assert repacking is not None
        always = options.repack_after_every_allocation
        return repacking.run(self.state, always_import=always) or always

    def _inefficient_sites(self, proposal: JointProposal) -> list[Site]:
        """Inefficient sites that no colour exempts."""
        if self.state.conversions.candidates:
            return []
        sites = inefficient_sites(self.state, proposal.allocation_values)
        coloring, values = self.state.coloring, self.state.problem.values
        if coloring is None:
            return sites
        return [
            s
            for s in sites
            if not coloring.is_alternate(values[s.value].buffer, s.step)
        ]

    def _take_back(self, proposal: JointProposal) -> None:
        uncommit(self.state, proposal)
        self._uncommitted += 1

    def _is_considered(self, interval: MsaBufferInterval) -> bool:
        state = self.state
        if not interval.need_allocation:
            return False
        if not is_placeable(state, interval):
            reason = Skip.NOT_PLACEABLE
        elif state.problem.values[interval.value].buffer in self._reserved:
            reason = Skip.RESERVED_BY_USER
        elif interval.value in state.cross_program_values:
            reason = Skip.CROSS_PROGRAM
        elif interval.size > state.available and not state.conversions.feeds_slice(
            state.problem.values[interval.value].position.step
        ):
            fits_alone = interval.size <= state.capacity
            reason = Skip.ROOM_RESERVED if fits_alone else Skip.TOO_LARGE
        else:
            return True
        state.buffer_decisions.append(BufferDecision(interval.value, reason))
        return False

    def _result(self, fetched: list[CrossProgramPrefetch]) -> AllocationResult:
        state = self.state
        copies = list(state.allocations.copies())
        prefetches = sum(copy.is_alternate for copy in copies)
        return AllocationResult(
            allocations=state.allocations,
            heap_bytes=state.space.heap_size,
            cross_program_prefetches=tuple(fetched),
            decisions=tuple(state.decisions),
            buffer_decisions=tuple(state.buffer_decisions),
            reserved_values=tuple(
                v.id for v in state.problem.values if v.buffer in self._reserved
            ),
            statistics=Statistics(
                proposals=self._proposals,
                uncommitted=self._uncommitted,
                segments=len(state.decisions),
                prefetches=prefetches,
                evictions=len(copies) - prefetches,
                repacks=0 if state.repacking is None else state.repacking.calls,
                repacks_successful=(
                    0 if state.repacking is None else state.repacking.successes
                ),
            ),
        )


def run_greedy(problem: Problem, options: Options | None = None) -> AllocationResult:
    """Decide where every value of the problem lives, in one greedy pass.

    O(n log n) in the number of steps plus, per value, the work of those that share
    time with it.

    Raises:
        CapacityError: a value that must be in alternate memory does not fit.
        OptionsError: options do not fit the problem.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.assignment import build_problem
    >>> problem = build_problem(module, msa.Target.preset("tpu_v5e"))
    >>> run_greedy(problem).heap_bytes
    1024
    """
    return MsaAlgorithm(problem, options or Options()).finish()
