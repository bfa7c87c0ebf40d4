"""Which allocations are lowered: those that something reads, in the end.

Reference: `Allocation::MarkIfNeeded` in
`xla/service/memory_space_assignment/allocation.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msa.assignment.allocation import (
    Allocation,
    ParentAllocation,
    ReservedAllocation,
)


def needed_allocations(allocations: Sequence[Allocation]) -> list[Allocation]:
    """The needed ones, in order.

    Everything is needed except reservations, and loop-invariant parents that nothing
    reads and nothing copies: those would only widen the loop's tuple. What a needed
    allocation depends on is needed. Linear.
    """
    needed: set[Allocation] = set()
    for allocation in allocations:
        if isinstance(allocation, ReservedAllocation):
            continue
        if isinstance(allocation, ParentAllocation) and not allocation.uses:
            continue
        current: Allocation | None = allocation
        while current is not None and current not in needed:
            needed.add(current)
            current = current.depends_on
    return [allocation for allocation in allocations if allocation in needed]
