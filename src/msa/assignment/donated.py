"""Program inputs that lie in the memory of a result: nothing is put back over them.

A value that comes in as an input and leaves as a result (or becomes one in place) may
own one buffer throughout. If it is renamed through a barrier into alternate memory and
evicted again, the eviction writes into that buffer; it must not while the input is
still read there. The input's bytes have not changed since, so the eviction is not
needed: what reads it reads the input.
"""

from __future__ import annotations

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MemorySpace,
    MirroredAllocation,
    ParentAllocation,
    PinnedAllocation,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)
from msa.assignment.state import State

_COPIES = (CopyAllocation, SlicedCopyAllocation, WindowPrefetchedAllocation)
_FOLLOWERS = (MirroredAllocation, ParentAllocation)


def keep_inputs_in_place(state: State) -> None:
    """Replace evictions over inputs that are still read. Linear but for those."""
    homes: dict[int, PinnedAllocation] = {}
    resident: dict[int, list[PinnedAllocation]] = {}
    for allocation in state.allocations:
        if (
            isinstance(allocation, PinnedAllocation)
            and not allocation.is_alternate
            and allocation.value >= 0
        ):
            resident.setdefault(allocation.value, []).append(allocation)
            if allocation.position == state.problem.values[allocation.value].position:
                homes.setdefault(allocation.value, allocation)
    for copy in list(state.allocations.copies()):
        home = homes.get(copy.value)
        if (
            home is not None
            and copy.space is MemorySpace.DEFAULT
            and copy.replaces is None
            and _is_kept_input(state, copy)
            and any(a.start <= copy.start_after < a.end for a in resident[copy.value])
        ):
            _replace(state, copy, home)


def _is_kept_input(state: State, copy: CopyAllocation) -> bool:
    """Whether the copy, in the entry, is of an input whose buffer is a result's."""
    problem = state.problem
    value = problem.values[copy.value]
    entered = problem.opcodes[value.position.step] == "parameter"
    places = (value.position.step, copy.position.step)
    return (
        entered
        and all(problem.region_of[step] == 0 for step in places)
        and any(problem.values[m].live_out for m in problem.buffers[value.buffer])
    )


def _replace(state: State, copy: CopyAllocation, home: PinnedAllocation) -> None:
    home.uses = [*home.uses, *copy.uses]
    home.extend(copy.end)
    state.allocations.remove(copy)
    for other in state.allocations:
        _read_from(other, copy, home)


def _read_from(other: Allocation, copy: CopyAllocation, home: PinnedAllocation) -> None:
    if isinstance(other, _COPIES) and other.source is copy:
        other.source = home
    if isinstance(other, _FOLLOWERS) and other.original is copy:
        other.original = home
