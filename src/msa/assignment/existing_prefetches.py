"""Prefetches that the program makes itself, by custom calls.

The compiler says which custom calls start and end such a copy, and of what. The
copied buffer gets its place in the region of block prefetches, for as long as it is
under way or read; what it is copied from stays in default memory.

Reference: `ProcessCustomCallPrefetches` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    Index,
    MemorySpace,
    PinnedAllocation,
    Position,
)
from msa.assignment.allocation_values import AllocationValue, create_allocation_values
from msa.assignment.intervals import colocated
from msa.assignment.state import State
from msa.errors import CapacityError, OptionsError


@dataclass(frozen=True, slots=True)
class CustomCallPrefetch:
    """Custom calls that copy a buffer ahead.

    Attributes:
        start: name of the one that starts the copy; the buffer is a node of its result.
        done: name of the one that ends it.
        index: which node of the start's result is the copy.

    >>> CustomCallPrefetch("start", "done").index
    (0,)
    """

    start: str
    done: str
    index: Index = (0,)


@dataclass(slots=True)
class _Copy:
    source: Position
    start: int
    done: int
    items: list[AllocationValue]
    last_use: int


def place_existing_prefetches(state: State, limit: int) -> None:
    """Give every such buffer a chunk below `limit`, in order of its first read.

    Raises:
        OptionsError: a name is not in the schedule.
        CapacityError: a buffer does not fit into the region.
    """
    details = state.options.hlo_position_to_custom_call_prefetch_details
    copies = [_find(state, place, found) for place, found in details.items()]
    copies.sort(key=lambda c: (c.done, c.start))
    sources: dict[Position, PinnedAllocation] = {}
    for copy in copies:
        _place(state, copy, limit, sources)
    state.transaction.commit()


def _find(state: State, place: tuple[str, Index], details: CustomCallPrefetch) -> _Copy:
    problem = state.problem
    name, index = place
    source = Position(_step(state, name), tuple(index))
    start, done = _step(state, details.start), _step(state, details.done)
    value = problem.value_at.get(Position(start, tuple(details.index)))
    if value is None or source not in problem.value_at or done <= start:
        raise OptionsError(
            f"hlo_position_to_custom_call_prefetch_details gives {details} for {name}, "
            f"which is no copy in the schedule of {problem.name!r}"
        )
    for member in problem.buffers[problem.values[value].buffer]:
        interval = state.intervals[member]
        if interval is not None and interval.need_allocation:
            group = colocated(interval, state.intervals)
            items = create_allocation_values(group, problem, state.times)
            uses = [u for item in items for u in item.uses]
            last = max((max(u.corrected, u.extended) for u in uses), default=done)
            return _Copy(source, start, done, items, max(last, done))
    raise OptionsError(f"the copy of {name} has no storage to place")


def _step(state: State, name: str) -> int:
    try:
        return state.problem.names.index(name)
    except ValueError:
        raise OptionsError(
            f"hlo_position_to_custom_call_prefetch_details names {name!r}, which is "
            f"not in the schedule of {state.problem.name!r}"
        ) from None


def _place(
    state: State, copy: _Copy, limit: int, sources: dict[Position, PinnedAllocation]
) -> None:
    problem = state.problem
    size = copy.items[0].size
    offset = state.space.find(copy.start, copy.last_use, size)
    if offset is None or offset + size > limit:
        raise CapacityError(
            f"no room for the copy that {problem.names[copy.start]} starts",
            step=copy.start,
            needed=size,
            capacity=limit,
            hint="raise reserved_bytes_for_block_prefetches",
        )
    chunk = state.hold(copy.start, copy.last_use, offset, size)
    made: list[Allocation] = [
        CopyAllocation(
            value=copy.items[0].value.id,
            position=copy.items[0].position,
            space=MemorySpace.ALTERNATE,
            chunk=chunk,
            start=copy.start,
            end=copy.last_use,
            uses=[u.use for u in copy.items[0].uses],
            source=_source(state, copy, sources),
            start_after=copy.start - 1,
            done_before=copy.done + 1,
            existing_start=copy.start,
            existing_done=copy.done,
        )
    ]
    for item in copy.items[1:]:
        step = item.position.step
        made.append(
            PinnedAllocation(
                value=item.value.id,
                position=item.position,
                space=MemorySpace.ALTERNATE,
                chunk=chunk,
                start=step,
                end=max((u.corrected for u in item.uses), default=step),
                uses=[u.use for u in item.uses],
            )
        )
    shared = state.share_offset(made[0], None)
    for allocation in made:
        allocation.aliased_offset = shared
        state.finish(allocation)
    if state.repacking is not None:
        state.repacking.add(made)
    _finalize(state, copy.items[0].value.buffer)


def _source(
    state: State, copy: _Copy, sources: dict[Position, PinnedAllocation]
) -> PinnedAllocation:
    """What is copied, in default memory; all of its buffer stays there."""
    source = sources.get(copy.source)
    if source is None:
        value = state.problem.values[state.problem.value_at[copy.source]]
        uses = [u for u in value.uses if state.problem.region_of[u.step] == 0]
        source = PinnedAllocation(
            value=value.id,
            position=copy.source,
            space=MemorySpace.DEFAULT,
            chunk=None,
            start=copy.source.step,
            end=max((u.step for u in uses), default=copy.source.step),
            uses=uses if copy.source == value.position else [],
        )
        sources[copy.source] = source
        state.finish(source)
        _finalize(state, value.buffer)
    source.extend(copy.done)
    return source


def _finalize(state: State, buffer: int) -> None:
    for member in state.problem.buffers[buffer]:
        state.finalized[member] = 1
