"""Copying into alternate memory ahead of a use."""

from __future__ import annotations

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MemorySpace,
    WindowPrefetchedAllocation,
)
from msa.assignment.outcomes import (
    LIVE_RANGE_TOO_SHORT,
    OUT_OF_ASYNC_COPIES,
    OUT_OF_MEMORY,
    SUCCESS,
    VIOLATES_ASYNC_COPY_RESOURCE,
)
from msa.assignment.request import AllocationRequest
from msa.assignment.segments.chunks import find_best_offset
from msa.assignment.state import State
from msa.errors import InternalError
from msa.heap.chunk import Chunk


def prefetch(
    state: State, request: AllocationRequest, source: Allocation, *, force: bool
) -> int:
    """Copy `source` so that the use reads alternate memory.

    With `force`, a copy right before the use is made if nothing better fits.
    """
    search = PrefetchSearch(state, request)
    if state.options.slicing:
        search = _sliced_search(state, request, source) or search
    outcome = search.run(source)
    if outcome == SUCCESS or not force:
        return outcome
    return _prefetch_just_in_time(state, request, source)


#: Instructions that hand their operands on: what that is worth is not known here.
PASS_ON = frozenset(
    {"async-start", "async-update", "bitcast", "call", "conditional", "tuple", "while"}
)


#: Starts that may be tried although the program would wait for longer than it gains.
#: Much earlier starts hide more of the copy but take the room from others.
_STALLED_STARTS = 4


def _sliced_search(
    state: State, request: AllocationRequest, source: Allocation
) -> PrefetchSearch | None:
    from msa.assignment.slicing.proposals import propose
    from msa.assignment.slicing.search import SlicedPrefetchSearch

    proposal = propose(state, request, source)
    return SlicedPrefetchSearch(state, request, proposal) if proposal else None


class PrefetchSearch:
    """The search for the start of one prefetch."""

    __slots__ = (
        "end",
        "extra_limit",
        "gain",
        "out_of_memory_start",
        "request",
        "resource",
        "stalled",
        "state",
    )

    def __init__(self, state: State, request: AllocationRequest) -> None:
        self.state = state
        self.request = request
        self.end = request.latest_prefetch
        self.resource = 0.0
        if request.preferred_prefetch is None:
            self.resource = state.copy_seconds(request.copied_bytes)
        self.extra_limit = _extra_limit(state, request)
        self.out_of_memory_start = -2
        self.gain = _gain(state, request)
        self.stalled = 0

    def run(self, source: Allocation) -> int:
        """Find a start and commit the copy; otherwise or the reasons."""
        if not self._begin(source):
            return OUT_OF_MEMORY
        picker = self.state.picker
        latest = picker.latest_time()
        failures = 0
        while not picker.done():
            start = picker.next()
            if start <= self.out_of_memory_start:
                return OUT_OF_MEMORY
            failure, offset = self._fit(start)
            if failure == SUCCESS:
                self._commit(source, start, offset)
                return SUCCESS
            # If nothing fits even in the shortest interval, nothing fits at all.
            if not failures and not self._find_chunk(latest):
                return OUT_OF_MEMORY
            failures |= failure
            if self.stalled >= _STALLED_STARTS:
                break
        if failures or self._find_chunk(latest):
            return failures or LIVE_RANGE_TOO_SHORT
        return OUT_OF_MEMORY

    def _begin(self, source: Allocation) -> bool:
        """Start the picker; False if alternate memory is full right before the end."""
        state, request = self.state, self.request
        earliest = source.available
        if request.earliest_prefetch is not None:
            earliest = max(earliest, request.earliest_prefetch)
        if earliest + 1 > self.end - 1:
            return False
        full = state.space.peak.last_above(
            earliest + 1, self.end - 1, state.capacity - request.size
        )
        if full == self.end - 1:
            return False
        earliest = self._filtered_start(earliest, full)
        preferred = request.preferred_prefetch
        if preferred is not None:
            preferred = max(preferred, earliest)
        state.picker.begin(
            request.copied_bytes,
            request.use.use,
            request.use.read_bytes,
            earliest,
            self.end,
            preferred,
        )
        return True

    def _filtered_start(self, earliest: int, full: int) -> int:
        """The first start after the last step at which memory is too full."""
        return max(earliest, full)

    def _find_chunk(self, start_after: int) -> bool:
        offset = find_best_offset(
            self.state, self.request, self.request.preferred_offset, start_after + 1
        )
        return offset is not None

    def _fit(self, start_after: int) -> tuple[int, int]:
        """Why a copy with that start does not fit, or its offset."""
        state, request = self.state, self.request
        options = state.options
        if options.enforce_prefetch_fifo_order and state.ordering.violates(
            start_after, self.end
        ):
            return VIOLATES_ASYNC_COPY_RESOURCE, -1
        lane = state.prefetches
        # XLA counts from the exclusive start: one step too early.
        first = start_after if options.faithful else start_after + 1
        if lane.violates_limit(first, self.end, self.extra_limit):
            return OUT_OF_ASYNC_COPIES, -1
        if not lane.bandwidth.has_enough(start_after, self.end, self.resource):
            return VIOLATES_ASYNC_COPY_RESOURCE, -1
        if self.gain is not None:
            assert state.idle is not None
            stall = self.resource - state.idle.between(start_after, self.end)
            if stall > self.gain:
                self.stalled += 1
                return LIVE_RANGE_TOO_SHORT, -1
        offset = find_best_offset(
            state, request, request.preferred_offset, start_after + 1
        )
        if offset is None:
            self.out_of_memory_start = max(self.out_of_memory_start, start_after)
            return OUT_OF_MEMORY, -1
        return SUCCESS, offset

    def _commit(self, source: Allocation, start_after: int, offset: int) -> None:
        state, request = self.state, self.request
        chunk = state.hold(start_after + 1, request.end, offset, request.size)
        if request.window:
            self._commit_window(source, start_after, chunk)
            return
        copy = CopyAllocation(
            value=request.target.value.id,
            position=source.position,
            space=MemorySpace.ALTERNATE,
            chunk=chunk,
            start=start_after + 1,
            end=request.end,
            source=source,
            start_after=start_after,
            done_before=self.end,
            resource=self.resource,
            replaces=request.replaces,
            source_operand=_moved_operand(state, request),
        )
        _append(state, request, copy)
        source.extend(request.latest_prefetch)

    def _commit_window(
        self, source: Allocation, start_after: int, chunk: Chunk
    ) -> None:
        state, request = self.state, self.request
        window = WindowPrefetchedAllocation(
            value=request.target.value.id,
            position=source.position,
            space=MemorySpace.ALTERNATE,
            chunk=chunk,
            start=start_after + 1,
            end=request.end,
            source=source,
            use=request.use.use,
            window_bytes=request.size,
            start_after=start_after,
            done_before=self.end,
        )
        state.share_offset(window, request.preferred_offset)
        state.prefetches.add(start_after, self.end, self.resource)
        request.target.sequence.append(window)


def _moved_operand(state: State, request: AllocationRequest) -> int:
    """Which operand a replaced operation moves."""
    if request.replaces is None:
        return 0
    return state.conversions.move(request.replaces).source_operand


def _append(state: State, request: AllocationRequest, copy: CopyAllocation) -> None:
    state.share_offset(copy, request.preferred_offset)
    state.add_copy(copy)
    copy.uses.append(request.use.use)
    request.target.sequence.append(copy)


def _gain(state: State, request: AllocationRequest) -> float | None:
    """Seconds that a prefetch may stall for: what it saves; None: any.

    It saves time at its use and at later ones that the value may stay for. Where the
    use hands the value on (to a loop, a tuple, an operation in place) its worth is not
    known here.
    """
    costs = state.costs
    if (
        state.idle is None
        or costs is None
        or request.end_in_alternate
        or request.require_copy
        or request.window
        or request.preferred_prefetch is not None
    ):
        return None
    uses = request.target.uses
    home = costs.multipliers[costs.while_levels[request.latest_prefetch]]
    gain, last = 0.0, request.end
    for use in uses[uses.index(request.use) :]:
        if use is not request.use and not state.picker.can_allocate_no_copy(
            request.size, last, use.corrected
        ):
            break
        step = use.use.step
        if use.aliases or state.problem.opcodes[step] in PASS_ON:
            return None
        saved = costs.saved_by_reading(step, use.read_bytes)
        gain += saved * costs.multipliers[costs.while_levels[step]] / home
        last = use.corrected
    return gain


def _extra_limit(state: State, request: AllocationRequest) -> int:
    options = state.options
    extra = 0
    if state.problem.opcodes[request.use.use.step] == "while":
        extra += options.while_use_extra_outstanding_prefetch_limit
    if request.require_copy:
        extra += options.extend_async_copies_limit_for_sync_mem_op_conversion
    return extra


def _prefetch_just_in_time(
    state: State, request: AllocationRequest, source: Allocation
) -> int:
    """A copy that is issued right before the use and charged to nobody."""
    end = request.end
    if state.options.enforce_prefetch_fifo_order and state.ordering.violates(
        end - 1, end
    ):
        raise InternalError(f"the copy right before step {end} breaks the copy order")
    preferred = request.preferred_offset
    offset: int | None
    if preferred is None:
        offset = state.space.find(end, end, request.size)
    elif state.space.fits_at(end, end, request.size, preferred.offset):
        offset = preferred.offset
    else:
        offset = None
    if offset is None:
        return OUT_OF_MEMORY
    copy = CopyAllocation(
        value=request.target.value.id,
        position=source.position,
        space=MemorySpace.ALTERNATE,
        chunk=state.hold(end, end, offset, request.size),
        start=end,
        end=end,
        source=source,
        start_after=end - 1,
        done_before=end,
        replaces=request.replaces,
    )
    _append(state, request, copy)
    source.extend(end)
    return SUCCESS
