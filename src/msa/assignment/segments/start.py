"""The step at which a value appears, where its place is decided by what it aliases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msa.assignment.allocation import MemorySpace, PinnedAllocation
from msa.assignment.allocation_values import AllocationValue
from msa.assignment.required import ContradictionError, Required
from msa.assignment.state import State
from msa.errors import CapacityError
from msa.heap.chunk import Chunk


def meet_start(
    state: State,
    item: AllocationValue,
    start: int,
    required: Required,
    handled: Iterable[AllocationValue],
) -> None:
    """Begin with an allocation in the required memory.

    `handled` are the allocation values that came before and may share the place.

    Raises:
        ContradictionError: something else has the place at that step.
    """
    for allocation in reversed(item.sequence):
        if allocation.space is required.space:
            allocation.extend(start)
            return
    chunk = None
    if required.space is MemorySpace.ALTERNATE:
        assert required.offset is not None
        chunk = Chunk(required.offset.offset, item.size)
        _hold(state, item, start, chunk, handled)
    allocation = PinnedAllocation(
        value=item.value.id,
        position=item.position,
        space=required.space,
        chunk=chunk,
        start=start,
        end=start,
    )
    item.sequence.append(allocation)
    if chunk is not None:
        state.share_offset(allocation, required.offset)


def place_unread(
    state: State,
    item: AllocationValue,
    together: Sequence[AllocationValue],
    number: int,
) -> None:
    """A result that nothing reads is written all the same.

    It lies where its aliases are, or for its one step where there is room if it is
    colored alternate and alone. `item` is number `number` of the allocation values
    that are handled together.

    Raises:
        ContradictionError: something else has the place at that step.
        CapacityError: there is no room.
    """
    step = item.position.step
    required = state.required.at(item.value.id, step)
    if required is None:
        if (
            item.value.pinned
            and len(together) == 1
            and not place_for_a_step(state, item, step, item.size)
        ):
            raise CapacityError(
                f"{state.problem.describe(item.position)} must be in alternate memory "
                "but there is no room",
                step=step,
                needed=item.size,
                capacity=state.capacity,
            )
    elif required.space is MemorySpace.ALTERNATE and _is_exact(state):
        before = (together[n] for n in range(number - 1, -1, -1))
        meet_start(state, item, step, required, before)


def place_for_a_step(state: State, item: AllocationValue, step: int, size: int) -> bool:
    """Begin with alternate memory for one step; whether there is room."""
    offset = state.space.find(step, step, size)
    if offset is None:
        return False
    allocation = PinnedAllocation(
        value=item.value.id,
        position=item.position,
        space=MemorySpace.ALTERNATE,
        chunk=state.hold(step, step, offset, size),
        start=step,
        end=step,
    )
    item.sequence.append(allocation)
    state.share_offset(allocation, None)
    return True


def _hold(
    state: State,
    item: AllocationValue,
    step: int,
    chunk: Chunk,
    handled: Iterable[AllocationValue],
) -> None:
    """Take the chunk at a step, unless an alias holds it already.

    Linear in what was handled before, if the chunk is not free.
    """
    if not _is_exact(state):
        return
    if state.space.fits_at(step, step, chunk.size, chunk.offset):
        state.hold(step, step, chunk.offset, chunk.size)
    elif not any(
        other.chunk is not None
        and other.chunk.offset == chunk.offset
        and other.start <= step <= other.end
        for before in handled
        for other in before.sequence
    ):
        raise ContradictionError(
            f"the place of {item} at step {step} is taken by something else"
        )


def _is_exact(state: State) -> bool:
    """Whether first steps are held.

    XLA does not, and relies on nothing else being placed then: that is so unless
    instructions have scratch.
    """
    return not state.options.faithful or bool(state.problem.scratch_bytes)
