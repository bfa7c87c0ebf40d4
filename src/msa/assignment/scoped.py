"""Scoped memory: scratch of single instructions, at the bottom of alternate memory.

Reference: `AllocateReservedScopedAllocations` and
`ExtendScopedAlternateMemoryAllocations` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msa.assignment.allocation import MemorySpace, Position, ScopedAllocation
from msa.assignment.coloring import Reservation
from msa.assignment.scratch import ScratchRoom, scratch_rooms
from msa.assignment.state import State
from msa.errors import CapacityError
from msa.heap.chunk import Chunk, align_up
from msa.heap.midpoint import BreadthFirstMidpointIterator


def scratch_of(state: State, step: int) -> int:
    """Bytes of scratch of the instruction at the step, at most the capacity."""
    return min(state.problem.scratch_bytes.get(step, 0), state.capacity)


def allocate_scoped(state: State) -> None:
    """Place the scratch of every instruction, and the post-module scratch.

    All lies at address 0, but for scratch of asynchronous computations: that lies
    where there is room from their start to their done.

    Raises:
        CapacityError: something else lies there already.
    """
    problem, options = state.problem, state.options
    sizes = {
        step: size
        for step in problem.scratch_bytes
        if (size := scratch_of(state, step)) > 0
    }
    rooms = scratch_rooms(problem, sizes)
    shared = {step: stay for room in rooms for step, stay in room.stays.items()}
    alone: list[ScopedAllocation] = []
    for step in BreadthFirstMidpointIterator(0, problem.end - 1) if sizes else ():
        if step in sizes and step not in shared:
            _hold_at_bottom(state, step, step, sizes[step])
            alone.append(_add(state, Position(step), (step, step), sizes[step]))
    size = options.post_module_scoped_alternate_memory_size_in_bytes
    if size > 0:
        root = Position(problem.regions[0].root)
        _hold_at_bottom(state, problem.end, problem.end, size)
        stay = (problem.end, problem.end)
        alone.append(_add(state, root, stay, size, post_module=True))
    bottom = [_place_room(state, room, sizes) for room in rooms if room.at_bottom]
    elsewhere = [
        _place_room(state, room, sizes) for room in rooms if not room.at_bottom
    ]
    if state.repacking is not None:
        state.repacking.add_scoped(
            alone,
            bottom,
            same_offset=options.allocate_reserved_scoped_memory_at_same_offset,
        )
        for pieces, members in elsewhere:
            state.repacking.add_room(pieces, members)
    state.transaction.commit()


def _place_room(
    state: State, room: ScratchRoom, sizes: Mapping[int, int]
) -> tuple[list[Reservation], list[ScopedAllocation]]:
    """Hold a room's pieces, and let its scratch lie at their address."""
    offset = 0
    if not room.at_bottom:
        ((start, end, size),) = room.pieces
        found = state.space.find(start, end, size)
        if found is None:
            step = next(iter(room.stays))
            raise CapacityError(
                f"{size} bytes of scratch of an asynchronous computation "
                f"({state.problem.names[step]}) find no room in steps {start} to {end}",
                step=step,
                needed=size + state.space.peak.highest(start, end),
                capacity=state.capacity,
                hint="ask for less scratch, or raise the capacity",
            )
        offset = found
    pieces = []
    for start, end, size in room.pieces:
        if room.at_bottom:
            _hold_at_bottom(state, start, end, size)
        else:
            state.hold(start, end, offset, size)
        pieces.append(Reservation(start, end, Chunk(offset, size)))
    members = [
        _add(state, Position(step), stay, sizes[step], offset=offset)
        for step, stay in room.stays.items()
    ]
    return pieces, members


def _hold_at_bottom(state: State, start: int, end: int, size: int) -> None:
    if not state.space.fits_at(start, end, size, 0):
        raise CapacityError(
            f"{size} bytes of scratch at step {start} do not fit at address 0",
            step=start,
            needed=size,
            capacity=state.capacity,
        )
    state.hold(start, end, 0, size)


def _add(
    state: State,
    position: Position,
    stay: tuple[int, int],
    size: int,
    *,
    offset: int = 0,
    post_module: bool = False,
) -> ScopedAllocation:
    allocation = ScopedAllocation(
        value=-1,
        position=position,
        space=MemorySpace.ALTERNATE,
        chunk=Chunk(offset, size),
        start=stay[0],
        end=stay[1],
        is_post_module=post_module,
    )
    state.finish(allocation)
    return allocation


def extend_scoped_alternate_memory_allocations(state: State) -> None:
    """Give every instruction's scratch the largest free range at its step.

    Done after everything else: the ledger of free space is not told, as each scratch
    is alone at its instant. Scratch that is needed for longer stays as it is, and so
    does that of steps which only rename or hand on what others still need.
    """
    for allocation in state.allocations:
        if not isinstance(allocation, ScopedAllocation):
            continue
        if allocation.start != allocation.end or _only_hands_on(state, allocation):
            continue
        chunk = allocation.chunk
        assert chunk is not None
        live = state.space.overlapping(allocation.start, allocation.end)
        chosen = _larger(chunk, _extended(state, chunk, live))
        chosen = _larger(chosen, _largest_gap(state, live))
        allocation.chunk = chosen
        state.space.heap_size = max(state.space.heap_size, chosen.end)


def _only_hands_on(state: State, scratch: ScopedAllocation) -> bool:
    problem, step = state.problem, scratch.position.step
    if problem.opcodes[step] == "parameter":
        return problem.region_of[step] != 0
    return not scratch.is_post_module and (
        problem.is_trivial(step) or step in problem.called
    )


def _larger(one: Chunk, other: Chunk) -> Chunk:
    return other if other.size > one.size else one


def _extended(state: State, chunk: Chunk, live: list[Chunk]) -> Chunk:
    """The chunk grown to its neighbours."""
    top = min((c.offset for c in live if c.offset >= chunk.end), default=state.capacity)
    low = max((c.end for c in live if c.end <= chunk.offset), default=0)
    return Chunk.from_end(align_up(low, state.alignment), min(top, state.capacity))


def _largest_gap(state: State, live: list[Chunk]) -> Chunk:
    """The largest range between what is live; not that below the lowest."""
    ordered = sorted(live)
    best = Chunk(0, 0)
    for number, chunk in enumerate(ordered):
        low = align_up(chunk.end, state.alignment)
        above = ordered[number + 1 :]
        top = above[0].offset if above else state.capacity
        if top > low:
            best = _larger(best, Chunk.from_end(low, top))
    return best
