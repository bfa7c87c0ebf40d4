"""Window prefetch: the first bytes of an operand ahead of its fusion.

What a fusion reads from default memory cannot start before the fusion does. With some
room in alternate memory its first window can be there when it starts. Windows are
taken after everything else, greedily in the order in which uses were left in default
memory.

Reference: `ProcessWindowPrefetch…` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from msa.assignment.allocation import (
    Allocation,
    MemorySpace,
    Position,
    Use,
    WindowPrefetchedAllocation,
)
from msa.assignment.allocation_values import AllocationValue, SegmentUse
from msa.assignment.outcomes import SUCCESS
from msa.assignment.request import AllocationRequest
from msa.assignment.segments.prefetch import prefetch
from msa.assignment.state import State

_ELIGIBLE_KINDS = frozenset({"kLoop", "kOutput"})
_EXCLUDED_THREAD = "sparsecore"


def allocate_windows(state: State) -> int:
    """Window-prefetch default-memory uses; how many were given a window.

    O(uses) plus the searches for room.
    """
    options = state.options
    if not options.enable_window_prefetch:
        return 0
    assert options.op_span_size_fn is not None  # options are checked for this
    served = {use for a in state.allocations if a.is_alternate for use in a.uses}
    sources = {
        use: a for a in state.allocations if not a.is_alternate for use in a.uses
    }
    made = 0
    for use in state.default_uses:
        if made >= options.window_prefetch_max_operands:
            break
        if use in served or not _is_eligible(state, use.step):
            continue
        source = sources.get(use)
        if source is None:
            continue
        step = use.step
        placed = (
            frozenset(state.alternate_operands.get(step, ())),
            frozenset(state.alternate_outputs.get(step, ())),
        )
        span = int(options.op_span_size_fn(_key(state, step), placed, use.operand))
        if span >= options.window_prefetch_min_span_size:
            made += 1
            _window(state, use, span, source)
    return made


def _key(state: State, step: int) -> object:
    key = state.problem.keys[step] if state.problem.keys else None
    return step if key is None else key


def _is_eligible(state: State, step: int) -> bool:
    """Whether the instruction can take windows of its operands."""
    problem = state.problem
    if problem.opcodes[step] != "fusion":
        return False
    key = _key(state, step)
    attributes = getattr(key, "attributes", None)
    if attributes is not None and attributes.get("kind") not in _ELIGIBLE_KINDS:
        return False
    computation = getattr(key, "computation", None)
    if computation is not None and computation.execution_thread == _EXCLUDED_THREAD:
        return False
    wanted = state.options.is_window_prefetchable_instruction_fn
    return wanted is None or bool(wanted(key))


def _source_step(state: State, use: Use) -> int:
    """The step that produces what is read, tuple elements looked through."""
    problem = state.problem
    step = problem.operands[use.step][use.operand]
    for _ in use.index:
        if problem.opcodes[step] == "get-tuple-element":
            step = problem.operands[step][0]
    return step


def _window(state: State, use: Use, size: int, source: Allocation) -> None:
    """Find room for the window, and time for its copy if the mode wants one.

    `source` is what serves the use; the window is a part of it.
    """
    problem = state.problem
    operand = problem.operands[use.step][use.operand]
    value = problem.values[problem.value_at[Position(operand, use.index)]]
    source_step = _source_step(state, use)
    holder = AllocationValue(
        value, value.position, problem.region_of[source_step], size
    )
    holder.sequence.append(source)
    read = SegmentUse(use, value.uses.index(use), state.times, float(size))
    request = AllocationRequest(
        source=holder,
        target=holder,
        use=read,
        start=source_step,
        end=use.step,
        latest_prefetch=use.step,
        size=size,
        all_use_times=[use.step],
        size_override=size,
        window=True,
    )
    if state.options.window_prefetch_mode == "WindowPrefetch":
        if prefetch(state, request, source, force=False) != SUCCESS:
            return
    elif not _expose(state, request, source):
        return
    for allocation in holder.sequence[1:]:
        state.finish(allocation)
    state.transaction.commit()


def _expose(state: State, request: AllocationRequest, source: Allocation) -> bool:
    """Room for the window while its fusion runs; nothing is copied ahead."""
    step = request.end
    offset = state.space.find(step, step, request.size)
    if offset is None:
        return False
    window = WindowPrefetchedAllocation(
        value=source.value,
        position=source.position,
        space=MemorySpace.ALTERNATE,
        chunk=state.hold(step, step, offset, request.size),
        start=step,
        end=step,
        source=source,
        use=request.use.use,
        window_bytes=request.size,
        start_after=step - 1,
        done_before=step,
    )
    state.share_offset(window, None)
    request.target.sequence.append(window)
    return True
