"""Cross-program prefetch: program inputs that are in fast memory before step 0.

The copy starts before the program (its caller may overlap it with the previous
program's tail). If memory is scarce and the last use is early, the room is freed
after that use, and the input is fetched again at the program's end for the next run.

XLA fetches the largest candidate whatever it brings. Unless plans are to be faithful,
a candidate has to pay for the time that the program waits for it and for its room.
"""

from __future__ import annotations

from dataclasses import dataclass

from msa.assignment.allocation import (
    CopyAllocation,
    MemorySpace,
    PinnedAllocation,
    Use,
)
from msa.assignment.order import cross_program_key, override_priority
from msa.assignment.problem import CrossProgramCandidate
from msa.assignment.state import State
from msa.assignment.worth import Worth, is_placeable
from msa.errors import OptionsError
from msa.heap.chunk import Chunk

#: The room is freed only if the input is needed for less than this share of the time.
_FREEING_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class CrossProgramPrefetch:
    """An input that is fetched before the program starts.

    Attributes:
        value: the input.
        offset: where it goes, bytes.
        freed: whether the room is reused and the input fetched again at the end.
    """

    value: int
    offset: int
    freed: bool


def allocate_cross_program_prefetches(state: State) -> list[CrossProgramPrefetch]:
    """Annotated inputs first, then candidates in order up to the limit.

    Raises:
        OptionsError: annotated inputs contradict the options.
    """
    options = state.options
    problem = state.problem
    candidates = [
        c for c in problem.cross_program if c.uses and not state.finalized[c.value]
    ]
    annotated = [c for c in candidates if c.annotated]
    limit = options.max_cross_program_prefetches
    if annotated and not options.enable_cross_program_prefetch:
        raise OptionsError(
            f"{len(annotated)} inputs are annotated for alternate memory and "
            f"enable_cross_program_prefetch=False exclude each other"
        )
    if 0 <= limit < len(annotated):
        raise OptionsError(
            f"{len(annotated)} inputs are annotated for alternate memory and "
            f"max_cross_program_prefetches={limit} exclude each other"
        )
    if not options.enable_cross_program_prefetch:
        return []
    pressure = memory_pressure(state)
    made: list[CrossProgramPrefetch] = []
    for candidate in annotated:
        _try(state, candidate, pressure, made)
    suitable = [c for c in candidates if not c.annotated and _is_wanted(state, c)]
    suitable = [c for c in suitable if _size(state, c) <= state.capacity]
    suitable.sort(key=lambda c: cross_program_key(state, c))
    worth = None
    if suitable and limit and not options.faithful and state.costs is not None:
        worth = Worth(state, state.costs)
    for candidate in suitable:
        if 0 <= limit <= len(made):
            break
        if worth is not None and not worth.pays(candidate):
            continue
        _try(state, candidate, pressure, made)
    return made


def memory_pressure(state: State) -> int:
    """Bytes of everything that could be in alternate memory."""
    return sum(
        interval.size
        for interval in state.intervals
        if interval is not None
        and interval.need_allocation
        and is_placeable(state, interval)
        and interval.size <= state.available
    )


def _is_wanted(state: State, candidate: CrossProgramCandidate) -> bool:
    """Whether it is worth fetching, by its readers or by an override of the order."""
    if candidate.suitable:
        return True
    value = state.problem.values[candidate.value]
    return override_priority(state, value, value.size, cross_program=True) < 0


def _size(state: State, candidate: CrossProgramCandidate) -> int:
    return state.problem.values[candidate.value].size


def _try(
    state: State,
    candidate: CrossProgramCandidate,
    pressure: int,
    made: list[CrossProgramPrefetch],
) -> None:
    """Allocate the candidate if it fits for the whole program."""
    problem = state.problem
    value = problem.values[candidate.value]
    end = problem.end
    size = value.size
    offset = state.space.find(0, end, size)
    if offset is None or offset + size > state.available:
        return
    last_use = max(
        state.times.extended(use)
        for use in (
            *candidate.uses,
            *(
                u
                for member in problem.buffers[value.buffer]
                if member != value.id
                for u in problem.values[member].uses
            ),
        )
    )
    refetch = state.picker.preferred_prefetch_start(size, last_use, end, end)
    freed = _is_freed(state, size, last_use, refetch, pressure)
    source = PinnedAllocation(
        value=value.id,
        position=value.position,
        space=MemorySpace.DEFAULT,
        chunk=None,
        start=0,
        end=end,
    )
    number = len(made)
    first = _copy(
        source,
        Chunk(offset, size),
        (-1, min(use.step for use in candidate.uses), last_use if freed else end),
        number,
        list(candidate.uses),
    )
    shared = state.share_offset(first, None)
    copies = [first]
    if freed:
        again = _copy(source, Chunk(offset, size), (refetch - 1, end, end), number, [])
        state.share_offset(again, shared)
        copies.append(again)
    state.finish(source)
    for copy in copies:
        state.hold(copy.start, copy.end, offset, size)
        state.add_copy(copy)
        state.finish(copy)
    if state.repacking is not None:
        state.repacking.add(copies)
    made.append(CrossProgramPrefetch(value.id, offset, freed))
    state.cross_program_values.add(value.id)
    state.transaction.commit()


def _copy(
    source: PinnedAllocation,
    chunk: Chunk,
    times: tuple[int, int, int],
    number: int,
    uses: list[Use],
) -> CopyAllocation:
    start_after, done_before, end = times
    return CopyAllocation(
        value=source.value,
        position=source.position,
        space=MemorySpace.ALTERNATE,
        chunk=chunk,
        start=start_after + 1,
        end=end,
        uses=uses,
        cross_program_index=number,
        source=source,
        start_after=start_after,
        done_before=done_before,
    )


def _is_freed(
    state: State, size: int, last_use: int, refetch: int, pressure: int
) -> bool:
    picker, end = state.picker, state.problem.end
    total = picker.elapsed(0, end)
    occupied = picker.elapsed(refetch, end)
    if state.costs is not None:
        occupied = max(occupied, state.costs.copy_seconds(size))
    occupied += picker.elapsed(0, last_use)
    return (
        state.options.enable_cross_program_prefetch_freeing
        and pressure > state.capacity
        and total > 0
        and occupied / total < _FREEING_SHARE
        and last_use < refetch < end
    )
