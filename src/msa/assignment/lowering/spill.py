"""Sending every value back to default memory at once and fetching it just in time.

This is the `always_spill_to_default_memory` mode: alternate memory holds a value only
at the steps that define or read it.

Reference: `TransformAllocationSequenceToSpill` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MemorySpace,
    Use,
)
from msa.hlo.instruction import Instruction
from msa.hlo.verifier.computations import ASYNC_OPCODES

_HANDS_ON: Final = ASYNC_OPCODES | {"call", "conditional", "while"}


def spill_everywhere(
    allocations: list[Allocation], steps: Sequence[Instruction]
) -> list[Allocation]:
    """The list with every stay in alternate memory cut to the steps that need it.

    What is handed on where it lies (to loops, branches, calls, results of
    computations, asynchronous operations) is not cut.
    """
    whole = {a for a in allocations if _is_handed_on(a, steps)}
    added: list[Allocation] = []
    for allocation in allocations:
        if (
            isinstance(allocation, CopyAllocation)
            and allocation.is_alternate
            and allocation not in whole
        ):
            added += _split_by_use(allocation)
    changed = [*allocations, *added]
    evictions: dict[Allocation, CopyAllocation] = {}
    for allocation in changed:
        if (
            isinstance(allocation, CopyAllocation)
            and not allocation.is_alternate
            and not isinstance(allocation.source, CopyAllocation)
            and allocation.source not in whole
        ):
            _make_immediate(allocation)
            evictions[allocation.source] = allocation
    for allocation in list(changed):
        if (
            allocation.is_alternate
            and not allocation.is_copy_like
            and allocation not in whole
        ):
            changed += _cut_to_definition(allocation, evictions)
    changed.sort(key=_order)
    return changed


def _is_handed_on(allocation: Allocation, steps: Sequence[Instruction]) -> bool:
    defined = steps[allocation.position.step]
    if defined.opcode == "parameter" and not defined.computation.is_entry:
        return True
    places = [allocation.position.step, *(use.step for use in allocation.uses)]
    return any(
        steps[step].opcode in _HANDS_ON
        or (steps[step].is_root and not steps[step].computation.is_entry)
        for step in places
    )


def _just_in_time(copy: CopyAllocation, step: int) -> None:
    copy.start = copy.start_after = step - 1
    copy.end = copy.done_before = step
    parent = copy.source
    parent.extend(copy.done_before)
    if isinstance(parent, CopyAllocation):
        parent.done_before = min(parent.done_before, copy.start)
        parent.start_after = min(parent.start_after, parent.done_before - 1)


def _split_by_use(copy: CopyAllocation) -> list[CopyAllocation]:
    if not copy.uses:
        return []
    first, *others = _by_step(copy.uses)
    copy.uses = first
    _just_in_time(copy, first[0].step)
    return [_fetch(copy, copy.source, uses) for uses in others]


def _by_step(uses: list[Use]) -> list[list[Use]]:
    """Uses that one copy serves together."""
    groups: dict[int, list[Use]] = {}
    for use in uses:
        groups.setdefault(use.step, []).append(use)
    return list(groups.values())


def _fetch(like: Allocation, source: Allocation, uses: list[Use]) -> CopyAllocation:
    step = uses[0].step
    copy = CopyAllocation(
        value=like.value,
        position=like.position,
        space=MemorySpace.ALTERNATE,
        chunk=like.chunk,
        start=step - 1,
        end=step,
        uses=uses,
        source=source,
        start_after=step - 1,
        done_before=step,
        aliased_offset=like.aliased_offset,
        split=like.split,
    )
    _just_in_time(copy, step)
    return copy


def _make_immediate(copy: CopyAllocation) -> None:
    copy.start = copy.start_after = copy.source.start
    copy.done_before = copy.source.start + 1
    copy.extend(copy.done_before)


def _cut_to_definition(
    allocation: Allocation, evictions: dict[Allocation, CopyAllocation]
) -> list[CopyAllocation]:
    allocation.end = allocation.start + 1
    later = [use for use in allocation.uses if use.step != allocation.start + 1]
    if not later:
        return []
    added = []
    eviction = evictions.get(allocation)
    if eviction is None:
        eviction = CopyAllocation(
            value=allocation.value,
            position=allocation.position,
            space=MemorySpace.DEFAULT,
            chunk=None,
            start=allocation.start,
            end=allocation.start + 1,
            source=allocation,
            start_after=allocation.start,
            done_before=allocation.start + 1,
        )
        evictions[allocation] = eviction
        added.append(eviction)
    allocation.uses = [use for use in allocation.uses if use not in later]
    return added + [_fetch(allocation, eviction, uses) for uses in _by_step(later)]


def _order(allocation: Allocation) -> tuple[int, bool, int]:
    if isinstance(allocation, CopyAllocation):
        return allocation.done_before, False, allocation.start_after
    return allocation.start, True, allocation.start
