"""One segment: stay, leave, come back, or be read from default memory."""

from __future__ import annotations

from msa.assignment.allocation import (
    AliasedOffset,
    Allocation,
    MemorySpace,
    PinnedAllocation,
)
from msa.assignment.allocation_values import AllocationValue, SegmentUse
from msa.assignment.outcomes import REQUIRES_UNCOMMIT, SUCCESS
from msa.assignment.request import AllocationRequest
from msa.assignment.required import ContradictionError, Required
from msa.assignment.segments.chunks import live_allocation
from msa.assignment.segments.evict import evict
from msa.assignment.segments.held import respect_holds
from msa.assignment.segments.home import home, may_write
from msa.assignment.segments.no_copy import allocate_without_copy
from msa.assignment.segments.prefetch import PASS_ON, prefetch
from msa.assignment.segments.start import meet_start, place_for_a_step
from msa.assignment.state import State
from msa.errors import InternalError

DEFAULT = MemorySpace.DEFAULT
ALTERNATE = MemorySpace.ALTERNATE


def aliased_requirement(state: State, use: SegmentUse) -> Required | None:
    """What is required of the places that alias what the use reads.

    Raises:
        ContradictionError: two of them require different places.
    """
    found: Required | None = None
    for position in use.aliases:
        value = state.problem.value_at.get(position)
        if value is None:
            continue
        required = state.required.at(value, position.step)
        if required is None:
            continue
        if found is None:
            found = required
        elif not found.agrees(required):
            raise ContradictionError(f"aliases of {use.use} are required in two places")
    return found


def agreed_requirement(state: State, use: SegmentUse) -> Required | None:
    """What is required of places that were found to agree: that of any of them."""
    value_at = state.problem.value_at
    places = ((value_at.get(p), p.step) for p in use.aliases)
    found = (state.required.at(v, step) for v, step in places if v is not None)
    return next((required for required in found if required is not None), None)


def allocate_segment(state: State, request: AllocationRequest) -> int:
    """Serve the use of the request; 0, or the reasons against alternate memory.

    The use may have been served from default memory either way; only with
    `REQUIRES_UNCOMMIT` nothing useful was done.
    """
    source, target = request.source, request.target
    if request.start == request.end:
        live = live_allocation(target.sequence, request.end)
        if live is None:
            raise InternalError(f"{target} has no allocation at step {request.end}")
        live.uses.append(request.use.use)
        return SUCCESS
    at_start = state.required.at(source.value.id, request.start)
    at_end = _required_at_end(state, request)
    if at_start is not None:
        meet_start(state, source, request.start, at_start, request.handled)
    if state.coloring is not None:
        state.coloring.release(state, request)

    failures = SUCCESS
    default_ends = (
        request.start_in_default
        or request.end_in_default
        or (at_start is not None and at_start.space is DEFAULT)
        or (at_end is not None and at_end.space is DEFAULT)
    )
    if not default_ends and request.allow_no_copy and not request.require_copy:
        respect_holds(state, request, at_start)
        failures = allocate_without_copy(state, request)
        if failures == SUCCESS or request.require_no_copy:
            return failures
    if request.start_in_alternate:
        _force_alternate_start(state, request)

    previous, problem = _default_allocation(state, request, failures)
    if previous is None:
        return problem
    if (
        source.contiguous
        and at_start is not None
        and at_end is not None
        and at_start.space is not at_end.space
    ):
        return failures | REQUIRES_UNCOMMIT
    if _may_prefetch(state, request, at_end) and _may_gain(state, request):
        outcome = _prefetch(state, request, previous)
        if outcome == SUCCESS:
            return SUCCESS
        failures |= outcome
    return _serve_from_default(state, request, previous, at_start, at_end, failures)


def _required_at_end(state: State, request: AllocationRequest) -> Required | None:
    own = state.required.at(request.target.value.id, request.end)
    aliased = aliased_requirement(state, request.use)
    if own is not None and aliased is not None and not own.agrees(aliased):
        raise ContradictionError(
            f"{request.use.use} is required in {own.space.value}, "
            f"its aliases in {aliased.space.value}"
        )
    return own if own is not None else aliased


def _force_alternate_start(state: State, request: AllocationRequest) -> None:
    """The start is coloured: the value is in alternate memory for that step."""
    source, start = request.source, request.start
    if source.sequence:
        return
    if not place_for_a_step(state, source, start, request.size):
        raise InternalError(f"no room for the coloured value at step {start}")


def _default_allocation(
    state: State, request: AllocationRequest, failures: int
) -> tuple[Allocation | None, int]:
    """Where in default memory the value can be read; makes an eviction if needed."""
    source = request.source
    sequence = source.sequence
    previous = next((a for a in reversed(sequence) if a.space is DEFAULT), None)
    if source.contiguous:
        if not sequence and (request.start_in_default or request.end_in_default):
            previous = _pin_in_default(request)
        if previous is None:
            return None, failures | REQUIRES_UNCOMMIT
        return previous, SUCCESS
    if previous is not None:
        return previous, SUCCESS
    if sequence and sequence[-1].position == source.position:
        resident = home(state, request)
        if resident is not None:
            sequence.append(resident)
            return resident, SUCCESS
        forced = request.start_in_alternate or request.end_in_alternate
        if not forced and not may_write(state, request):
            return None, failures | REQUIRES_UNCOMMIT
        outcome = evict(state, request, force=forced)
        if outcome != SUCCESS:
            return None, outcome | REQUIRES_UNCOMMIT
        return sequence[-1], SUCCESS
    return _pin_in_default(request), SUCCESS


def _pin_in_default(request: AllocationRequest) -> Allocation:
    allocation = PinnedAllocation(
        value=request.source.value.id,
        position=request.source.position,
        space=DEFAULT,
        chunk=None,
        start=request.start,
        end=request.end,
    )
    request.source.sequence.append(allocation)
    return allocation


def _may_prefetch(
    state: State, request: AllocationRequest, at_end: Required | None
) -> bool:
    return (
        (request.allow_prefetch or request.end_in_alternate)
        and not request.source.contiguous
        and not request.only_extend
        and not (at_end is not None and at_end.space is DEFAULT)
        and not request.end_in_default
        # What is fetched there would have to last as long as the operation.
        and not state.problem.runs_asynchronously[request.source.region]
    )


def _may_gain(state: State, request: AllocationRequest) -> bool:
    """Whether this use or a later one could run faster from alternate memory.

    What is limited by arithmetic is not. Faithful plans copy for it all the same.
    """
    costs = state.costs
    if costs is None or state.options.faithful or request.end_in_alternate:
        return True
    uses = request.target.uses
    opcodes = state.problem.opcodes
    for use in reversed(uses):
        step = use.use.step
        if opcodes[step] in PASS_ON or costs.memory[step] > costs.compute[step]:
            return True
        if use is request.use:
            return False
    return True


def _prefetch(state: State, request: AllocationRequest, source: Allocation) -> int:
    if request.require_copy and not request.replaces_slice:
        latest = request.required_copy_latest
        if not any(
            a.kind == "copy" and a.available <= latest for a in request.source.sequence
        ):
            request.latest_prefetch = min(request.latest_prefetch, latest)
    return prefetch(state, request, source, force=request.end_in_alternate)


def _serve_from_default(
    state: State,
    request: AllocationRequest,
    previous: Allocation,
    at_start: Required | None,
    at_end: Required | None,
    failures: int,
) -> int:
    if request.end_in_alternate:
        raise InternalError(f"{request.use.use} is coloured but cannot be served")
    if at_end is not None and at_end.space is ALTERNATE:
        return failures | REQUIRES_UNCOMMIT
    if (
        request.source.contiguous
        and at_start is not None
        and at_start.space is ALTERNATE
    ):
        return failures | REQUIRES_UNCOMMIT
    state.default_uses.setdefault(request.use.use)
    previous.extend(request.end)
    previous.uses.append(request.use.use)
    return failures


def update_aliases(
    state: State, target: AllocationValue, use: SegmentUse, step: int
) -> bool:
    """Require of all places that alias the use what it got; False if they differ."""
    from msa.assignment.required import RequiredBy

    if not use.aliases:
        return True
    live = live_allocation(target.sequence, step)
    if live is None:
        return True
    offset: AliasedOffset | None = live.aliased_offset if live.is_alternate else None
    wanted = Required(live.space, offset, RequiredBy.ALIASED_USE)
    value_at = state.problem.value_at
    places = []
    for position in use.aliases:
        value = value_at.get(position)
        if value is None:
            continue
        known = state.required.at(value, position.step)
        if known is not None and not known.agrees(wanted):
            return False
        if state.coloring is not None and state.coloring.opposes(
            state.problem.values[value].buffer, position.step, live.space
        ):
            return False
        places.append((value, position.step))
    for value, at in places:
        state.required.add(value, at, wanted)
    return True
