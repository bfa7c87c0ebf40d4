"""Everything that shares storage is decided together.

A joint proposal holds the allocation values of all values that must share storage.
They are handled by time of definition, each use by use; what a use got is required
of the places that alias it (a loop's parameter and result, a branch's parameter, the
result of an in-place operation), so that they agree when their turn comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msa.assignment.allocation import (
    AliasedOffset,
    Allocation,
    MemorySpace,
    Position,
)
from msa.assignment.allocation_values import (
    AllocationValue,
    SegmentUse,
    create_allocation_values,
)
from msa.assignment.conditionals import (
    conditional_benefits,
    eviction_required,
    mirror_into_conditional,
    needs_mirrored,
)
from msa.assignment.conversions import require_copy, segment_contexts
from msa.assignment.intervals import MsaBufferInterval, colocated
from msa.assignment.loops import (
    RegionUses,
    hand_default_copy_into_loop,
    loop_benefits,
    loop_requires_default,
)
from msa.assignment.outcomes import (
    OUTCOMES,
    REQUIRES_UNCOMMIT,
    SUCCESS,
    Decision,
    Outcome,
    Served,
)
from msa.assignment.request import AllocationRequest
from msa.assignment.required import ContradictionError, RequiredBy
from msa.assignment.segments.chunks import live_allocation
from msa.assignment.segments.segment import (
    agreed_requirement,
    aliased_requirement,
    allocate_segment,
    update_aliases,
)
from msa.assignment.segments.start import place_unread
from msa.assignment.splitting import split_together
from msa.assignment.state import State
from msa.errors import CapacityError, OptionsError


@dataclass(slots=True)
class JointProposal:
    """What is allocated, committed and rolled back together.

    Attributes:
        values: value ids that the proposal stands for.
        groups: their colocated intervals.
        allocation_values: in the order in which they are handled.
    """

    values: list[int] = field(default_factory=list)
    groups: list[list[MsaBufferInterval]] = field(default_factory=list)
    allocation_values: list[AllocationValue] = field(default_factory=list)


def propose(
    state: State,
    interval: MsaBufferInterval,
    is_considered: Callable[[MsaBufferInterval], bool],
) -> JointProposal:
    """The proposal of one interval.

    With synchronous moves to replace, sources and results are proposed together, the
    results last.
    """
    conversions = state.conversions
    if not conversions:
        joint = [interval.value]
    else:
        joint = conversions.joint_values(interval.value)
    proposal = JointProposal(values=joint)
    for value in joint:
        member = state.intervals[value]
        if member is None or state.finalized[value] or not is_considered(member):
            continue
        group = colocated(member, state.intervals)
        proposal.groups.append(group)
        proposal.allocation_values += create_allocation_values(
            group, state.problem, state.times
        )
    if conversions.candidates:
        proposal.allocation_values.sort(
            key=lambda item: conversions.is_pending(item.position.step)
        )
    return proposal


class JointAllocation:
    """One attempt at the allocation values of a proposal."""

    __slots__ = (
        "_decisions",
        "_definition_time",
        "_in_conditional",
        "_preferred",
        "_preferred_in_region",
        "_region_uses",
        "_use_times",
        "_values",
        "state",
    )

    def __init__(
        self,
        state: State,
        values: list[AllocationValue],
        region_uses: RegionUses,
    ) -> None:
        self.state = state
        self._values = values
        self._region_uses = region_uses
        self._use_times = sorted(u.extended for v in values for u in v.uses)
        self._preferred_in_region: dict[int, AliasedOffset] = {}
        self._preferred: dict[AllocationValue, AliasedOffset | None] = {}
        self._definition_time: dict[AllocationValue, int] = {}
        self._in_conditional: set[int] = set()
        self._decisions: list[Decision] = []

    def run(self) -> int:
        """Allocate all; the or of all failures."""
        try:
            self._require_bans()
            split_together(self.state, self._values)
            return self._allocate_all()
        except ContradictionError:
            self.state.decisions += self._decisions
            return REQUIRES_UNCOMMIT

    def _require_bans(self) -> None:
        """Places that the options keep out of alternate memory, before all else.

        What aliases them is then decided in their favour.
        """
        for item in self._values:
            if item.value.pinned:
                continue
            for use in item.uses:
                if use.number in item.value.banned_uses:
                    called = use.use.step in self.state.problem.called
                    end = use.corrected if called else use.extended
                    self._require_default(item, use, end)
            self._require_position(item)

    def _require_position(self, target: AllocationValue) -> None:
        banned = target.value.banned_positions
        if not banned or target.value.pinned:
            return
        if target.value.positions.index(target.position) in banned:
            self.state.required.require_default(
                target.value.id,
                target.position.step,
                RequiredBy.POSITION_NOT_ALLOWED,
            )

    def _allocate_all(self) -> int:
        result = SUCCESS
        conversions = self.state.conversions
        for number, item in enumerate(self._values):
            if conversions.candidates and conversions.is_pending(item.position.step):
                continue  # handled with its source
            result |= self._allocate(number, item)
            if result & REQUIRES_UNCOMMIT:
                break
        else:
            if conversions.candidates:
                result |= conversions.close()
            if self.state.options.faithful and self._breaks_a_call():
                result |= REQUIRES_UNCOMMIT
        self.state.decisions += self._decisions
        return result

    def _breaks_a_call(self) -> bool:
        """Whether the result of a call is in alternate memory on either side.

        XLA does not link the two sides (it plans programs without calls); where it
        would let them differ, the proposal is dropped. Plans that are not faithful
        require default memory from the start.
        """
        problem = self.state.problem
        results = [
            item
            for item in self._values
            if problem.opcodes[item.position.step] == "call"
        ]
        for item in results:
            if item.sequence and item.sequence[0].is_alternate:
                return True
            for number in problem.called.get(item.position.step, ()):
                root = problem.regions[number].root
                for inner in self._values:
                    if inner.region != number or inner.value is not item.value:
                        continue
                    live = live_allocation(inner.sequence, root)
                    if live is not None and live.is_alternate:
                        return True
        return False

    def _contexts(
        self, item: AllocationValue
    ) -> list[tuple[SegmentUse, AllocationValue, int | None, bool]]:
        conversions = self.state.conversions
        if conversions.candidates:
            return segment_contexts(item, self._values, conversions)
        return [(use, item, None, False) for use in item.uses]

    def _allocate(self, number: int, item: AllocationValue) -> int:
        state = self.state
        if item.value.pinned and item.size > state.available:
            return SUCCESS
        result = SUCCESS
        previous: SegmentUse | None = None
        agreed: tuple[list[Position], Allocation] | None = None
        if not item.uses and number not in self._in_conditional:
            place_unread(state, item, self._values, number)
        for use, target, candidate, only_extend in self._contexts(item):
            if target not in self._definition_time:
                self._begin(target)
            # Many operands of one conditional may be the same value: then what the
            # first one requires of its places is required already.
            known = agreed is not None and agreed[0] is use.aliases
            find = agreed_requirement if known else aliased_requirement
            aliased = find(state, use)
            if aliased is not None and aliased.space is MemorySpace.ALTERNATE:
                self._preferred[target] = aliased.offset
            request = self._request(item, target, use, previous, candidate)
            request.only_extend = only_extend
            if not self._is_skipped(use) and number not in self._in_conditional:
                result |= self._serve(number, request, previous)
                if result & REQUIRES_UNCOMMIT:
                    return result
                self._definition_time[target] = use.use.step
                previous = use
            if only_extend:
                continue
            live = live_allocation(target.sequence, request.end)
            if live is None or not known or agreed is None or agreed[1] is not live:
                if not update_aliases(state, target, use, request.end):
                    return result | REQUIRES_UNCOMMIT
                agreed = None if live is None else (use.aliases, live)
            hand_default_copy_into_loop(
                state,
                target,
                use,
                request.end,
                self._values,
                self._preferred_in_region,
            )
        return result

    def _begin(self, target: AllocationValue) -> None:
        """Note when the value is defined, and the address that its region prefers."""
        self._definition_time[target] = target.position.step
        self._preferred[target] = self._preferred_in_region.get(target.region)

    def _is_skipped(self, use: SegmentUse) -> bool:
        """A bitcast reads nothing, unless it is its region's result."""
        problem = self.state.problem
        step = use.use.step
        return (
            problem.opcodes[step] == "bitcast"
            and problem.regions[problem.region_of[step]].root != step
        )

    def _serve(
        self,
        number: int,
        request: AllocationRequest,
        previous: SegmentUse | None,
    ) -> int:
        state, target, use = self.state, request.target, request.use
        if state.options.allocation_request_modifier_testing_fn is not None:
            state.options.allocation_request_modifier_testing_fn(request)
        if state.coloring is not None:
            state.coloring.mark(request)
        request.together, request.number = self._values, number
        before = len(target.sequence)
        outcome = allocate_segment(state, request)
        modifier = state.options.allocation_result_modifier_testing_fn
        if modifier is not None:
            outcome = int(modifier(request, outcome, state.picker.retry_number))
        if outcome == SUCCESS and needs_mirrored(state, target, use, previous):
            assert previous is not None
            self._in_conditional |= mirror_into_conditional(
                state, target, previous, self._values
            )
        if request.require_no_copy and outcome != SUCCESS:
            raise CapacityError(
                f"{state.problem.describe(target.position)} must be in alternate memory "
                f"but does not fit ({Outcome(outcome)!r})",
                step=request.start,
                needed=target.size,
                capacity=state.capacity,
            )
        if request.require_copy:
            outcome |= state.conversions.note(request, outcome)
        self._log(request, outcome, before)
        return outcome

    def _request(
        self,
        item: AllocationValue,
        target: AllocationValue,
        use: SegmentUse,
        previous: SegmentUse | None,
        candidate: int | None,
    ) -> AllocationRequest:
        state = self.state
        step = use.use.step
        called = step in state.problem.called
        end = use.corrected if called else use.extended
        pinned = target.value.pinned
        request = AllocationRequest(
            source=item,
            target=target,
            use=use,
            start=min(self._definition_time[target], end),
            end=end,
            latest_prefetch=min(use.extended, state.times.latest_prefetch(step)),
            size=target.size,
            all_use_times=self._use_times,
            preferred_offset=self._preferred[target],
            require_no_copy=pinned,
        )
        if candidate is not None:
            require_copy(
                request, candidate, state.conversions, state.problem, state.times
            )
        if self._is_banned(target, use) or (
            called
            and (
                loop_requires_default(state, use)
                or not loop_benefits(state, self._region_uses, use)
            )
        ):
            if not pinned:
                self._require_default(target, use, end)
        elif called and not conditional_benefits(state, self._region_uses, target, use):
            aliased = state.required.at(target.value.id, end)
            if aliased is None or aliased.space is not MemorySpace.ALTERNATE:
                self._require_default(target, use, end)
        elif eviction_required(
            state, self._region_uses, item, use, previous, self._values
        ):
            assert previous is not None
            request.allow_no_copy = False
            request.earliest_prefetch = previous.use.step
        if state.loop_decisions and not pinned:
            self._follow_loop(request)
        if state.overrides:
            preferred = state.overrides.preferred(request)
            if preferred is not None:
                request.preferred_prefetch = preferred
        return request

    def _is_banned(self, target: AllocationValue, use: SegmentUse) -> bool:
        """Whether the use may not read alternate memory in any case."""
        if use.number in target.value.banned_uses:
            return True
        state = self.state
        return (
            state.options.view_source_default_memory_only
            and use.use.operand == 0
            and use.use.step in state.problem.views
        )

    def _follow_loop(self, request: AllocationRequest) -> None:
        """What the loop optimizer decided for the use, as preferences."""
        use = request.use.use
        decision = self.state.loop_decisions.get(use)
        if decision is None:
            return
        start = decision.preferred_start(use.step)
        if start is not None:
            request.preferred_prefetch = start
        elif decision.allocation.is_alternate:
            request.prefer_no_copy = True
        else:
            request.allow_prefetch = request.allow_no_copy = False

    def _require_default(
        self, item: AllocationValue, use: SegmentUse, end: int
    ) -> None:
        """The use must read default memory."""
        state = self.state
        if state.coloring is not None and state.coloring.is_alternate(
            item.value.buffer, end
        ):
            name = state.problem.describe_use(use.use)
            raise OptionsError(
                f"buffer_colorings wants {name} in alternate memory, but the use is "
                f"not allowed there"
            )
        state.required.require_default(item.value.id, end, RequiredBy.USE_NOT_ALLOWED)

    def _log(self, request: AllocationRequest, outcome: int, before: int) -> None:
        if request.start == request.end:
            served = Served.SAME_STEP
        elif outcome & REQUIRES_UNCOMMIT:
            served = Served.DROPPED
        else:
            sequence = request.target.sequence
            use = request.use.use
            last = sequence[-1]
            if last.is_alternate and last.uses and last.uses[-1] == use:
                copied = last.is_copy_like and len(sequence) > before
                served = Served.PREFETCH if copied else Served.NO_COPY
            else:
                served = Served.DEFAULT
        self._decisions.append(
            Decision(
                request.target.value.id,
                request.use.use,
                request.start,
                request.end,
                served,
                OUTCOMES[outcome],
                self.state.required.is_default(request.target.value.id, request.end),
                self.state.picker.retry_number,
            )
        )
