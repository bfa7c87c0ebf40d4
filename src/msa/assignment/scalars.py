"""Scalars that the program wants in alternate memory.

They are too small to be worth deciding about; where their shape asks for alternate
memory, they get room from their first step to the program's end.

Reference: `PinScalarsInAlternateMemory` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from msa.assignment.allocation import (
    Allocation,
    MemorySpace,
    MirroredAllocation,
    PinnedAllocation,
)
from msa.assignment.allocation_values import create_allocation_values
from msa.assignment.intervals import MsaBufferInterval, colocated
from msa.assignment.state import State
from msa.errors import CapacityError


def pin_scalars(state: State) -> None:
    """Allocate all buffers of scalars that are coloured alternate.

    Raises:
        CapacityError: one does not fit.
    """
    values = state.problem.values
    for interval in state.intervals:
        if (
            interval is not None
            and interval.need_allocation
            and not state.finalized[interval.value]
            and any(
                values[m].pinned and values[m].is_scalar and not values[m].is_constant
                for m in (interval.value, *interval.colocations)
            )
        ):
            _pin(state, interval)


def _pin(state: State, interval: MsaBufferInterval) -> None:
    problem = state.problem
    group = colocated(interval, state.intervals)
    items = create_allocation_values(group, problem, state.times)
    first = min(problem.values[x.value].live[0] for x in group)
    last = problem.end - 1
    offset = state.space.find(first, last, interval.size)
    if offset is None:
        raise CapacityError(
            f"no room for the scalar {problem.describe(items[0].position)}",
            step=first,
            needed=interval.size + state.space.peak.highest(first, last),
            capacity=state.capacity,
        )
    chunk = state.hold(first, last, offset, interval.size)
    home = items[0].region
    original: Allocation | None = None
    made: list[Allocation] = []
    for item in items:
        uses = [u.use for u in item.uses]
        end = max((u.corrected for u in item.uses), default=item.position.step)
        if original is None or item.region == home:
            if original is not None:
                original.extend(item.position.step)
            original = PinnedAllocation(
                value=item.value.id,
                position=item.position,
                space=MemorySpace.ALTERNATE,
                chunk=chunk,
                start=item.position.step,
                end=end,
                uses=uses,
            )
            made.append(original)
        else:
            made.append(
                MirroredAllocation(
                    value=item.value.id,
                    position=item.position,
                    space=MemorySpace.ALTERNATE,
                    chunk=chunk,
                    start=item.position.step,
                    end=end,
                    uses=uses,
                    original=original,
                )
            )
    assert original is not None
    original.extend(last)
    shared = state.share_offset(made[0], None)
    for allocation in made:
        allocation.aliased_offset = shared
        state.finish(allocation)
    if state.repacking is not None:
        state.repacking.add(made)
    state.transaction.commit()
    for member in group:
        state.finalized[member.value] = 1
