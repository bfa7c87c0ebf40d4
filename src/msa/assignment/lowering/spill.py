"""Sending every value back to default memory at once and fetching it just in time.

This is the `always_spill_to_default_memory` mode: alternate memory holds a value only
at the steps that define or read it.

Reference: `TransformAllocationSequenceToSpill` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MemorySpace,
    Use,
)


def spill_everywhere(allocations: list[Allocation]) -> list[Allocation]:
    """The list with every stay in alternate memory cut to the steps that need it."""
    added: list[Allocation] = []
    for allocation in allocations:
        if isinstance(allocation, CopyAllocation) and allocation.is_alternate:
            added += _split_by_use(allocation)
    changed = [*allocations, *added]
    evictions: dict[Allocation, CopyAllocation] = {}
    for allocation in changed:
        if (
            isinstance(allocation, CopyAllocation)
            and not allocation.is_alternate
            and not isinstance(allocation.source, CopyAllocation)
        ):
            _make_immediate(allocation)
            evictions[allocation.source] = allocation
    for allocation in list(changed):
        if allocation.is_alternate and not allocation.is_copy_like:
            changed += _cut_to_definition(allocation, evictions)
    changed.sort(key=_order)
    return changed


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
    first, *others = copy.uses
    copy.uses = [first]
    _just_in_time(copy, first.step)
    return [_fetch(copy, copy.source, use) for use in others]


def _fetch(like: Allocation, source: Allocation, use: Use) -> CopyAllocation:
    copy = CopyAllocation(
        value=like.value,
        position=like.position,
        space=MemorySpace.ALTERNATE,
        chunk=like.chunk,
        start=use.step - 1,
        end=use.step,
        uses=[use],
        source=source,
        start_after=use.step - 1,
        done_before=use.step,
        aliased_offset=like.aliased_offset,
    )
    _just_in_time(copy, use.step)
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
    return added + [_fetch(allocation, eviction, use) for use in later]


def _order(allocation: Allocation) -> tuple[int, bool, int]:
    if isinstance(allocation, CopyAllocation):
        return allocation.done_before, False, allocation.start_after
    return allocation.start, True, allocation.start
