"""Scoped memory: scratch of single instructions, at the bottom of alternate memory.

Reference: `AllocateReservedScopedAllocations` and
`ExtendScopedAlternateMemoryAllocations` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from msa.assignment.allocation import MemorySpace, Position, ScopedAllocation
from msa.assignment.state import State
from msa.errors import CapacityError
from msa.heap.chunk import Chunk, align_up
from msa.heap.midpoint import BreadthFirstMidpointIterator


def scratch_of(state: State, step: int) -> int:
    """Bytes of scratch of the instruction at the step, at most the capacity."""
    return min(state.problem.scratch_bytes.get(step, 0), state.capacity)


def allocate_scoped(state: State) -> None:
    """Place the scratch of every instruction, and the post-module scratch, at 0.

    Raises:
        CapacityError: something else lies there already.
    """
    problem, options = state.problem, state.options
    if problem.scratch_bytes:
        for step in BreadthFirstMidpointIterator(0, problem.end - 1):
            size = scratch_of(state, step)
            if size > 0:
                _place(state, Position(step), step, size, post_module=False)
    size = options.post_module_scoped_alternate_memory_size_in_bytes
    if size > 0:
        root = Position(problem.regions[0].root)
        _place(state, root, problem.end, size, post_module=True)
    if state.repacking is not None:
        state.repacking.add_scoped(
            [a for a in state.allocations if isinstance(a, ScopedAllocation)],
            same_offset=options.allocate_reserved_scoped_memory_at_same_offset,
        )
    state.transaction.commit()


def _place(
    state: State, position: Position, step: int, size: int, *, post_module: bool
) -> None:
    if not state.space.fits_at(step, step, size, 0):
        raise CapacityError(
            f"{size} bytes of scratch at step {step} do not fit at address 0",
            step=step,
            needed=size,
            capacity=state.capacity,
        )
    state.hold(step, step, 0, size)
    state.finish(
        ScopedAllocation(
            value=-1,
            position=position,
            space=MemorySpace.ALTERNATE,
            chunk=Chunk(0, size),
            start=step,
            end=step,
            is_post_module=post_module,
        )
    )


def extend_scoped_alternate_memory_allocations(state: State) -> None:
    """Give every instruction's scratch the largest free range at its step.

    Done after everything else: the ledger of free space is not told, as each scratch
    is alone at its instant.
    """
    for allocation in state.allocations:
        if not isinstance(allocation, ScopedAllocation):
            continue
        chunk = allocation.chunk
        assert chunk is not None
        live = state.space.overlapping(allocation.start, allocation.end)
        chosen = _larger(chunk, _extended(state, chunk, live))
        chosen = _larger(chosen, _largest_gap(state, live))
        allocation.chunk = chosen
        state.space.heap_size = max(state.space.heap_size, chosen.end)


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
