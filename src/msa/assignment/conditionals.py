"""Values read inside conditionals: branches, their results, and what follows."""

from __future__ import annotations

from msa.assignment.allocation import (
    MemorySpace,
    MirroredAllocation,
    Position,
)
from msa.assignment.allocation_values import AllocationValue, SegmentUse
from msa.assignment.intervals import MsaBufferInterval
from msa.assignment.loops import RegionUses
from msa.assignment.required import RequiredBy
from msa.assignment.segments.segment import aliased_requirement
from msa.assignment.state import State


def conditional_benefits(
    state: State, region_uses: RegionUses, item: AllocationValue, use: SegmentUse
) -> bool:
    """Whether some branch reads the value early enough to keep it in fast memory."""
    problem = state.problem
    step = use.use.step
    if problem.opcodes[step] != "conditional":
        return True
    branches = problem.called[step]
    for other in item.uses:
        if other.use.step != step or other.use.operand < 1:
            continue
        region = problem.regions[branches[other.use.operand - 1]]
        parameter = region.parameters[0]
        value = problem.value_at.get(Position(parameter, other.use.index))
        if value is None:
            continue
        first = step
        for read in region_uses.steps(value):
            if problem.region_of[read] == problem.region_of[parameter]:
                first = min(first, read)
                break
        if state.picker.can_allocate_no_copy(
            problem.values[value].size, parameter, first
        ):
            return True
    return False


def require_conditional_outputs(state: State, group: list[MsaBufferInterval]) -> None:
    """If one branch's result must be in default memory, all and the result must be.

    Faithful plans keep results of conditionals in default memory altogether, as the
    XLA that made the reference plans (early 2026) does; later ones do not.
    """
    problem, required = state.problem, state.required
    always = state.options.faithful
    for interval in group:
        value = problem.values[interval.value]
        for position in value.positions:
            step = position.step
            if problem.opcodes[step] != "conditional":
                continue
            roots = [problem.regions[r].root for r in problem.called[step]]
            results = [
                problem.value_at.get(Position(root, position.index)) for root in roots
            ]
            if not (
                always
                or required.is_default(value.id, step)
                or any(problem.opcodes[root] != "tuple" for root in roots)
                or any(
                    result is not None and required.is_default(result, root)
                    for result, root in zip(results, roots, strict=True)
                )
            ):
                continue
            required.require_default(value.id, step, RequiredBy.CONDITIONAL_OUTPUT)
            for result, root in zip(results, roots, strict=True):
                if result is not None:
                    required.require_default(result, root, RequiredBy.BRANCH_OUTPUT)


def eviction_required(
    state: State,
    region_uses: RegionUses,
    item: AllocationValue,
    use: SegmentUse,
    previous: SegmentUse | None,
    values: list[AllocationValue],
) -> bool:
    """Whether a conditional before the use makes the value leave fast memory.

    It does if the conditional handles anything of another buffer that it would have
    to keep apart, or reads the value where fast memory is ruled out.
    """
    problem = state.problem
    if previous is None or previous.use.step == use.use.step:
        return False
    conditional = previous.use.step
    if problem.opcodes[conditional] != "conditional" or use.corrected < conditional:
        return False
    start = previous.corrected
    for inner in values:
        if not start <= inner.position.step < conditional:
            continue
        if inner.value.buffer != item.value.buffer:
            return True
        if state.required.is_default(inner.value.id, inner.position.step):
            return True
        for read in inner.uses:
            if read.number in inner.value.banned_uses:
                return True
            if not conditional_benefits(state, region_uses, inner, read):
                return True
            if state.required.is_default(inner.value.id, read.corrected):
                return True
            aliased = aliased_requirement(state, read)
            if aliased is not None and aliased.space is MemorySpace.DEFAULT:
                return True
    return False


def needs_mirrored(
    state: State,
    target: AllocationValue,
    use: SegmentUse,
    previous: SegmentUse | None,
) -> bool:
    """Whether the value stayed in fast memory through a conditional before the use."""
    problem = state.problem
    if previous is None or previous.use.step == use.use.step:
        return False
    conditional = previous.use.step
    if problem.opcodes[conditional] != "conditional" or not target.sequence:
        return False
    last = target.sequence[-1]
    return (
        last.is_alternate
        and previous.use in last.uses
        and last.available <= previous.corrected
        and conditional <= use.corrected <= last.end
    )


def mirror_into_conditional(
    state: State,
    target: AllocationValue,
    previous: SegmentUse,
    values: list[AllocationValue],
) -> set[int]:
    """Serve everything inside the conditional by the allocation around it.

    Returns the numbers (in `values`) that need no allocation of their own any more.
    """
    original = target.sequence[-1]
    conditional = previous.use.step
    served = set()
    for number, item in enumerate(values):
        start = item.position.step
        if not previous.corrected <= start < conditional:
            continue
        served.add(number)
        end = max((u.corrected for u in item.uses), default=start)
        item.sequence.append(
            MirroredAllocation(
                value=item.value.id,
                position=item.position,
                space=original.space,
                chunk=original.chunk,
                start=start,
                end=end,
                original=original,
                uses=[u.use for u in item.uses],
                aliased_offset=original.aliased_offset,
            )
        )
    return served
