"""Storage that aliases of a value hold already: it is not taken a second time.

What an asynchronous operation reads lies still from its start to its done, under the
names of its start, of its updates, and of its computation's parameters.
"""

from __future__ import annotations

from msa.assignment.allocation import AliasedOffset, MemorySpace
from msa.assignment.request import AllocationRequest
from msa.assignment.required import Required
from msa.assignment.state import State
from msa.heap.chunk import Chunk


def respect_holds(
    state: State, request: AllocationRequest, at_start: Required | None
) -> None:
    """Let the request take only what no alias holds. Linear in what was handled."""
    offset = _given_offset(state, request, at_start)
    if offset is None:
        return
    chunk = Chunk(offset.offset, request.size)
    last = request.start
    for item in request.handled:
        for allocation in item.sequence:
            if (
                allocation.is_alternate
                and allocation.start <= request.start <= allocation.end
                and allocation.chunk == chunk
            ):
                last = max(last, allocation.end + 1)
                request.no_copy_start = last


def _given_offset(
    state: State, request: AllocationRequest, at_start: Required | None
) -> AliasedOffset | None:
    source = request.source
    if source.contiguous:
        if at_start is not None and at_start.space is MemorySpace.ALTERNATE:
            return at_start.offset
        return None
    if state.options.faithful or not _is_asynchronous_parameter(state, request):
        return None
    # XLA takes the storage again, and so leaves such operands in default memory.
    if source.sequence:
        return source.sequence[-1].aliased_offset
    return None


def _is_asynchronous_parameter(state: State, request: AllocationRequest) -> bool:
    problem, source = state.problem, request.source
    return (
        problem.regions[source.region].kind == "async"
        and problem.opcodes[source.position.step] == "parameter"
    )
