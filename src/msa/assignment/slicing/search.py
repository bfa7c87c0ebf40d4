"""The search for a prefetch in slices, next to that for a whole one.

At every start that the picker offers, slices are tried first. As soon as a whole copy
would fit it is remembered, but the search goes on for slices: they take room and
bandwidth later.

Reference: `PrefetchWithResourceConstraints` and `CheckPrefetchFit` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from msa.assignment.allocation import (
    Allocation,
    MemorySpace,
    Slice,
    SlicedCopyAllocation,
)
from msa.assignment.ledgers.copy_bandwidth import CopySpec
from msa.assignment.outcomes import (
    LIVE_RANGE_TOO_SHORT,
    OUT_OF_ASYNC_COPIES,
    OUT_OF_MEMORY,
    SAME_SLICE_STARTS,
    SUCCESS,
    VIOLATES_ASYNC_COPY_RESOURCE,
)
from msa.assignment.request import AllocationRequest
from msa.assignment.segments.prefetch import PrefetchSearch
from msa.assignment.slicing.proposals import SliceProposal, is_uniform
from msa.assignment.slicing.start_times import pick_start_times
from msa.assignment.state import State
from msa.heap.chunk import Chunk
from msa.heap.slice_permutations import PermutationKind

#: Copies of several slices have to fit with that much to spare.
_INFLATION = 1.8


@dataclass(frozen=True, slots=True)
class _Fit:
    """Slices that fit: chunks and starts by slice time."""

    starts: list[int]
    chunks: list[Chunk]


class SlicedPrefetchSearch(PrefetchSearch):
    """The search for the start of one prefetch that may be sliced."""

    __slots__ = ("_proposal", "_sliced_fit", "_whole")

    def __init__(
        self,
        state: State,
        request: AllocationRequest,
        proposal: tuple[SliceProposal, ...],
    ) -> None:
        super().__init__(state, request)
        self._proposal = proposal
        self._whole: tuple[int, int] | None = None
        self._sliced_fit: _Fit | None = None

    def run(self, source: Allocation) -> int:
        """Find starts and commit slices, else a whole copy; or the reasons."""
        if not self._begin(source):
            return OUT_OF_MEMORY
        picker = self.state.picker
        if not self._find_chunk(picker.latest_time()):
            return OUT_OF_MEMORY
        failures = 0
        while not picker.done() and self._sliced_fit is None:
            start = picker.next()
            if start <= self.out_of_memory_start:
                if self.state.options.faithful or self._whole is None:
                    return OUT_OF_MEMORY
                break
            failures |= self._try(start)
        if self._sliced_fit is not None:
            self._commit_slices(source, self._sliced_fit)
            return SUCCESS
        if self._whole is not None:
            self._commit(source, *self._whole)
            return SUCCESS
        return failures or LIVE_RANGE_TOO_SHORT

    def _filtered_start(self, earliest: int, full: int) -> int:
        # Slices may start while memory is still too full for the whole.
        return earliest

    def _try(self, start: int) -> int:
        failure = self._fit_slices(start)
        if failure == SUCCESS:
            return SUCCESS
        failures = 0 if failure == SAME_SLICE_STARTS else failure
        if self._whole is None:
            failure, offset = self._fit(start)
            if failure == SUCCESS:
                self._whole = (start, offset)
            failures |= failure
        return failures

    def _fit_slices(self, start: int) -> int:
        state = self.state
        problem = state.problem
        count = len(self._proposal)
        starts = pick_start_times(
            count,
            start,
            self.end,
            state.picker.elapsed,
            lambda a, b: problem.region_of[a] == problem.region_of[b],
        )
        if starts[0] == starts[-1]:
            return SAME_SLICE_STARTS
        failure = self._check_copies(starts)
        if failure != SUCCESS:
            return failure
        chunks = self._find_slices(starts)
        if not chunks:
            self.out_of_memory_start = max(self.out_of_memory_start, starts[0])
            return OUT_OF_MEMORY
        pieces = _by_slice_time(self._proposal, chunks)
        specs = self._specs(starts, [piece.size for piece in pieces])
        if not state.prefetches.bandwidth.has_enough_for_all(specs):
            return VIOLATES_ASYNC_COPY_RESOURCE
        self._sliced_fit = _Fit(starts, chunks)
        return SUCCESS

    def _check_copies(self, starts: list[int]) -> int:
        """Order, number and bandwidth, before it is known which slice goes when."""
        state = self.state
        options, lane = state.options, state.prefetches
        if options.enforce_prefetch_fifo_order and any(
            state.ordering.violates(s, self.end) for s in starts
        ):
            return VIOLATES_ASYNC_COPY_RESOURCE
        early = 0 if options.faithful else 1
        if any(
            lane.violates_limit(s + early, self.end, self.extra_limit, number)
            for number, s in enumerate(starts)
        ):
            return OUT_OF_ASYNC_COPIES
        # A bound: XLA puts the small slices first, which is not the pessimistic
        # order that it means to check.
        sizes = sorted(piece.size for piece in self._proposal)
        if not options.faithful:
            sizes.reverse()
        if not lane.bandwidth.has_enough_for_all(self._specs(starts, sizes)):
            return VIOLATES_ASYNC_COPY_RESOURCE
        return SUCCESS

    def _specs(self, starts: list[int], sizes: list[int]) -> list[CopySpec]:
        if self.request.preferred_prefetch is not None:
            return []
        return [
            CopySpec(start, self.end, self.state.copy_seconds(size) * _INFLATION)
            for start, size in zip(starts, sizes, strict=True)
        ]

    def _find_slices(self, starts: list[int]) -> list[Chunk]:
        """Chunks by slice time that stay free until as late a use as possible."""
        state, request = self.state, self.request
        sizes = [piece.size for piece in self._proposal]
        kind = self._permutations()
        space = state.space
        first = [start + 1 for start in starts]
        preferred = request.preferred_offset
        if preferred is not None:
            chunks = space.find_slices(
                first, request.end, sizes, kind, preferred.offset
            )
            at = min((c.offset for c in chunks), default=-1)
            return chunks if at == preferred.offset else []
        times = request.all_use_times
        low = bisect_left(times, request.end)
        high = low
        size = request.target.value.size
        while high + 1 < len(times) and state.picker.can_allocate_no_copy(
            size, times[high], times[high + 1]
        ):
            high += 1
        found: list[Chunk] = []
        count = high + 1 - low
        while count > 0:
            half = count // 2
            chunks = space.find_slices(first, times[low + half], sizes, kind)
            if chunks:
                found = chunks
                low += half + 1
                count -= half + 1
            else:
                count = half
        return found

    def _permutations(self) -> PermutationKind:
        options = self.state.options.sliced_prefetch_options
        if options.max_slices > options.all_slice_time_permutations_threshold:
            return "preferred"
        return "all"

    def _commit_slices(self, source: Allocation, fit: _Fit) -> None:
        state, request = self.state, self.request
        pieces = _by_slice_time(self._proposal, fit.chunks)
        hull = Chunk(min(c.offset for c in fit.chunks), request.size)
        # Until the last slice starts, each holds only its own room.
        last = fit.starts[-1]
        for start, chunk in zip(fit.starts, fit.chunks, strict=True):
            if start < last:
                state.space.commit(start + 1, last, chunk)
        state.hold(last + 1, request.end, hull.offset, hull.size)
        slices = [
            Slice(piece.bounds, chunk, start, state.copy_seconds(piece.size))
            for piece, chunk, start in zip(pieces, fit.chunks, fit.starts, strict=True)
        ]
        slices.sort(key=lambda s: (s.start_after, s.chunk.offset))
        allocation = SlicedCopyAllocation(
            value=request.target.value.id,
            position=source.position,
            space=MemorySpace.ALTERNATE,
            chunk=hull,
            start=fit.starts[0] + 1,
            end=request.end,
            uses=[request.use.use],
            source=source,
            slices=tuple(slices),
            done_before=self.end,
            uniform=is_uniform(state.options.sliced_prefetch_options),
        )
        state.share_offset(allocation, request.preferred_offset)
        for piece in slices:
            resource = 0.0 if request.preferred_prefetch is not None else piece.resource
            state.prefetches.add(piece.start_after, self.end, resource)
            if state.options.enforce_prefetch_fifo_order:
                state.ordering.add(piece.start_after, self.end)
        request.target.sequence.append(allocation)
        if not state.options.faithful:
            source.extend(request.latest_prefetch)


def _by_slice_time(
    proposal: tuple[SliceProposal, ...], chunks: list[Chunk]
) -> list[SliceProposal]:
    """Which piece each slice time brings: by rank of offset."""
    order = sorted(range(len(chunks)), key=lambda time: chunks[time].offset)
    pieces = list(proposal)
    for rank, time in enumerate(order):
        pieces[time] = proposal[rank]
    return pieces
