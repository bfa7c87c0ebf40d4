"""Block prefetch: chosen buffers stream through a region of their own, in order.

The region lies right above the room that scratch takes at the bottom of alternate
memory. Buffers are fetched in the order of their first reads, each as early as the
order, the number in flight and the region allow.

Reference: `CreateNewBlockPrefetches` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MemorySpace,
    MirroredAllocation,
    PinnedAllocation,
    Position,
    Use,
)
from msa.assignment.allocation_values import AllocationValue, create_allocation_values
from msa.assignment.conversions import ConversionResult
from msa.assignment.existing_prefetches import place_existing_prefetches
from msa.assignment.intervals import MsaBufferInterval, colocated
from msa.assignment.scoped import scratch_of
from msa.assignment.state import State
from msa.errors import CapacityError, OptionsError
from msa.heap.chunk import Chunk


@dataclass(slots=True)
class _Block:
    """A buffer to fetch.

    Attributes:
        items: its places, by time.
        source: where the bytes come from; the buffer's own input, or what a
            synchronous copy or slice moves.
        replaces: step of that copy or slice, or None.
        ready: first step at which the source exists.
        first_use, last_use: inclusive steps of reads.
    """

    buffer: int
    size: int
    items: list[AllocationValue]
    source: Position
    replaces: int | None
    ready: int
    first_use: int
    last_use: int


@dataclass(slots=True)
class _Schedule:
    """What has been scheduled so far."""

    limit: int
    in_flight: int
    previous: int = -1
    ends: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)


def allocate_blocks(state: State) -> None:
    """Fetch the listed positions in blocks; those that cannot be stay in default.

    Raises:
        OptionsError: a listed position does not exist, or the region is too large.
        CapacityError: scratch does not fit at the bottom.
    """
    options = state.options
    existing = options.hlo_position_to_custom_call_prefetch_details
    if not (options.block_prefetched_positions or existing):
        return
    problem = state.problem
    bottom = max((scratch_of(state, s) for s in problem.scratch_bytes), default=0)
    limit = bottom + options.reserved_bytes_for_block_prefetches
    if limit > state.capacity:
        raise OptionsError(
            f"reserved_bytes_for_block_prefetches and scratch ({limit} bytes) exceed "
            f"the capacity ({state.capacity} bytes)"
        )
    if bottom:
        # Not for good: scratch is placed for its own steps afterwards.
        if not state.space.fits_at(0, problem.end - 1, bottom, 0):
            raise CapacityError("scratch does not fit", needed=bottom, capacity=limit)
        state.hold(0, problem.end - 1, 0, bottom)
    if existing:
        place_existing_prefetches(state, limit)
    else:
        _stream(state, limit)
    if bottom:
        state.space.release(0, problem.end - 1, Chunk(0, bottom))
    state.transaction.commit()


def _stream(state: State, limit: int) -> None:
    """Schedule the listed buffers one after another; keep the others in default."""
    schedule = _Schedule(limit, state.options.max_outstanding_block_prefetches)
    blocks, kept = _classify(state)
    sources: dict[Position, PinnedAllocation] = {}
    for block in blocks:
        if not _fetch(state, block, schedule, sources):
            kept.add(block.buffer)
    for buffer in kept:
        for member in state.problem.buffers[buffer]:
            state.finalized[member] = 1


def _classify(state: State) -> tuple[list[_Block], set[int]]:
    """What is fetched, in order of first reads, and buffers kept in default."""
    problem = state.problem
    steps = {name: step for step, name in enumerate(problem.names)}
    listed: dict[int, Position] = {}
    for name, index in state.options.block_prefetched_positions:
        position = Position(steps.get(name, -1), tuple(index))
        value = problem.value_at.get(position)
        if value is None:
            raise OptionsError(
                f"block_prefetched_positions names {name!r} {tuple(index)}, which is "
                f"no place in the schedule of {problem.name!r}"
            )
        listed.setdefault(problem.values[value].buffer, position)
    kept: set[int] = set()
    blocks: list[_Block] = []
    moved = {b: _moved_by(state, b) for b in listed}
    inputs = {b for b in listed if moved[b] is None and _is_input(state, b)}
    for buffer in listed:
        step = moved[buffer]
        if step is not None:
            source_buffer = _source_buffer(state, step)
            if moved.get(source_buffer) is not None:
                kept.add(buffer)
                continue
            if source_buffer not in inputs:
                kept.add(source_buffer)
        elif buffer not in inputs:
            kept.add(buffer)
            continue
        block = _block(state, buffer, step)
        if block is None:
            kept.add(buffer)
        else:
            blocks.append(block)
    blocks.sort(key=lambda b: (b.first_use, b.buffer))
    return [b for b in blocks if b.buffer not in kept], kept


def _first(state: State, buffer: int) -> Position:
    """Where the buffer's earliest value is defined."""
    problem = state.problem
    return min(problem.values[m].position for m in problem.buffers[buffer])


def _moved_by(state: State, buffer: int) -> int | None:
    """The copy or slice that defines the buffer, if it can be replaced."""
    step = _first(state, buffer).step
    return step if state.conversions.is_candidate(step) else None


def _is_input(state: State, buffer: int) -> bool:
    return _first(state, buffer).step in state.problem.regions[0].parameters


def _source_position(state: State, step: int) -> Position:
    move = state.conversions.move(step)
    return Position(state.problem.operands[step][move.source_operand])


def _source_buffer(state: State, step: int) -> int:
    problem = state.problem
    return problem.values[problem.value_at[_source_position(state, step)]].buffer


def _interval(state: State, buffer: int) -> MsaBufferInterval | None:
    for member in state.problem.buffers[buffer]:
        interval = state.intervals[member]
        if interval is not None and interval.need_allocation:
            return interval
    return None


def _block(state: State, buffer: int, step: int | None) -> _Block | None:
    """The block of a buffer; None if it has to stay in default memory."""
    problem = state.problem
    interval = _interval(state, buffer)
    if interval is None:
        return None
    group = colocated(interval, state.intervals)
    items = create_allocation_values(group, problem, state.times)
    values = [problem.values[x.value] for x in group]
    candidates = state.conversions
    reads = [
        u
        for item in items
        for u in item.uses
        if not candidates.is_candidate(u.use.step)
    ]
    if (
        not reads
        or any(v.live_out or v.is_scalar or v.banned_uses for v in values)
        or any(problem.opcodes[u.use.step] == "async-start" for u in reads)
    ):
        return None
    if step is None:
        source, ready = items[0].position, items[0].position.step
    else:
        source = _source_position(state, step)
        ready = max(
            (
                o
                for o in problem.operands[step]
                if o >= 0 and problem.opcodes[o] != "constant"
            ),
            default=0,
        )
    return _Block(
        buffer,
        interval.size,
        items,
        source,
        step,
        ready,
        min(u.corrected for u in reads),
        max(max(u.corrected, u.extended) for u in reads),
    )


def _earliest_start(state: State, block: _Block, schedule: _Schedule) -> int | None:
    """The first step at which the block can begin to arrive."""
    start = max(block.ready + 1, schedule.previous)
    count = len(schedule.done)
    if count >= schedule.in_flight:
        start = max(start, schedule.done[count - schedule.in_flight])
    if _offset(state, block, start, schedule) is not None:
        return start
    first = bisect_right(schedule.ends, start - 1)
    for end in schedule.ends[first:]:
        if end > block.first_use - 1:
            break
        if _offset(state, block, end + 1, schedule) is not None:
            return end + 1
    return None


def _offset(state: State, block: _Block, start: int, schedule: _Schedule) -> int | None:
    if start >= block.first_use:
        return None
    offset = state.space.find(start, block.last_use, block.size)
    if offset is None or offset + block.size > schedule.limit:
        return None
    return offset


def _fetch(
    state: State,
    block: _Block,
    schedule: _Schedule,
    sources: dict[Position, PinnedAllocation],
) -> bool:
    """Schedule and finish the block; False if it finds no room."""
    start = _earliest_start(state, block, schedule)
    offset = None if start is None else _offset(state, block, start, schedule)
    if start is None or offset is None:
        return False
    chunk = state.hold(start, block.last_use, offset, block.size)
    source = _source(state, block, sources)
    copy = CopyAllocation(
        value=block.items[0].value.id,
        position=block.source,
        space=MemorySpace.ALTERNATE,
        chunk=chunk,
        start=start,
        end=block.last_use,
        uses=_reads(state, block.items[0]),
        source=source,
        start_after=start - 1,
        done_before=block.first_use,
        replaces=block.replaces,
        source_operand=(
            0
            if block.replaces is None
            else state.conversions.move(block.replaces).source_operand
        ),
    )
    state.prefetches.add(copy.start_after, copy.done_before, 0.0)
    made = [copy, *_further(state, block, copy, chunk)]
    shared = state.share_offset(copy, None)
    for allocation in made:
        allocation.aliased_offset = shared
        state.finish(allocation)
    if state.repacking is not None:
        state.repacking.add(made)
    for member in state.problem.buffers[block.buffer]:
        state.finalized[member] = 1
    if block.replaces is not None:
        state.conversions.results[block.replaces] = ConversionResult.SUCCESS
    schedule.previous = start
    schedule.done.append(block.first_use)
    insort(schedule.ends, block.last_use)
    return True


def _source(
    state: State, block: _Block, sources: dict[Position, PinnedAllocation]
) -> PinnedAllocation:
    """The default-memory place that is copied; one for all blocks from there."""
    source = sources.get(block.source)
    if source is None:
        source = PinnedAllocation(
            value=state.problem.value_at[block.source],
            position=block.source,
            space=MemorySpace.DEFAULT,
            chunk=None,
            start=block.source.step,
            end=block.first_use,
        )
        sources[block.source] = source
        state.finish(source)
    source.extend(block.first_use)
    return source


def _reads(state: State, item: AllocationValue) -> list[Use]:
    """Uses that are served; those of replaced instructions are not."""
    return [u.use for u in item.uses if not state.conversions.is_candidate(u.use.step)]


def _further(
    state: State, block: _Block, copy: CopyAllocation, chunk: Chunk
) -> list[Allocation]:
    """Allocations of the buffer's other places: results in place, branches, loops."""
    made: list[Allocation] = []
    home = block.items[0].region
    original: Allocation = copy
    for item in block.items[1:]:
        start = item.position.step
        end = max((u.corrected for u in item.uses), default=start)
        facts = {
            "value": item.value.id,
            "position": item.position,
            "space": MemorySpace.ALTERNATE,
            "chunk": chunk,
            "start": start,
            "end": end,
            "uses": _reads(state, item),
        }
        if item.region == home:
            original = PinnedAllocation(**facts)  # type: ignore[arg-type]
            made.append(original)
        else:
            made.append(MirroredAllocation(original=original, **facts))  # type: ignore[arg-type]
    return made
