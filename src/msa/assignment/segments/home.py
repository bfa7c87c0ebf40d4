"""Storage that a value has in default memory already: nothing is written back over it.

A value may appear at several places, some in default memory and some in alternate
memory: an input that is renamed by a barrier, what an asynchronous operation reads
beside others, what a loop hands on unchanged. Its bytes are the same at all of them.
To leave alternate memory it therefore need not be copied to where it still lies; and
it must not be where somebody else reads that storage meanwhile, or owns it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msa.assignment.allocation import Allocation, MemorySpace, PinnedAllocation
from msa.assignment.allocation_values import AllocationValue
from msa.assignment.problem import Value
from msa.assignment.request import AllocationRequest
from msa.assignment.state import State


def home(state: State, request: AllocationRequest) -> Allocation | None:
    """An allocation in default memory that the source's reader can read instead.

    It is in the same region, at an earlier place of the value; it then stands in the
    sequences of both allocation values. Faithful plans copy nevertheless, as XLA
    does, where that breaks nothing. Linear in the places that were handled before.
    """
    source = request.source
    for item, resident in _residents(request):
        if (
            item.region == source.region
            and resident.available <= request.start
            and (not state.options.faithful or _is_shared(state, item, request))
        ):
            return resident
    return None


def may_write(state: State, request: AllocationRequest) -> bool:
    """Whether the source may be written to its storage in default memory.

    Not inside a region while the caller reads it there, or if it is an input that
    the program may not overwrite; and not while an asynchronous operation runs.
    """
    source = request.source
    return source.region == 0 or not (
        state.problem.runs_asynchronously[source.region]
        or _is_read_only(state, source.value)
        or any(_is_read_at(r, source.position.step) for _, r in _residents(request))
    )


def _residents(
    request: AllocationRequest,
) -> Iterator[tuple[AllocationValue, Allocation]]:
    """What holds the value in default memory, the latest place first."""
    source = request.source
    for item in request.handled:
        if item.value is source.value and item is not source:
            for allocation in reversed(item.sequence):
                if allocation.space is MemorySpace.DEFAULT and isinstance(
                    allocation, PinnedAllocation
                ):
                    yield item, allocation


def _is_shared(state: State, item: AllocationValue, request: AllocationRequest) -> bool:
    """Whether a copy would write into the storage of a parameter that is still read.

    That happens where the value leaves in the storage in which it came in.
    """
    problem = state.problem
    if problem.opcodes[item.position.step] != "parameter":
        return False
    buffer = problem.buffers[item.value.buffer]
    if item.region == 0 and not any(problem.values[v].live_out for v in buffer):
        return False
    return any(
        _is_read_at(resident, request.source.sequence[-1].start)
        for _, resident in _residents(request)
    )


def _is_read_at(allocation: Allocation, step: int) -> bool:
    """Whether somebody reads the allocation's storage after a step."""
    return allocation.start <= step < allocation.end


def _is_read_only(state: State, value: Value) -> bool:
    """Whether the value is an input whose storage stays the caller's."""
    problem = state.problem
    return value.position.step in problem.regions[0].parameters and value.live[
        1
    ] >= len(problem.names)
