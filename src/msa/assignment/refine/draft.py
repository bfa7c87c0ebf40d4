"""An allocation sequence that may be changed, and taken back."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from msa.assignment.allocation import (
    Allocation,
    AllocationSequence,
    CopyAllocation,
    MirroredAllocation,
    ParentAllocation,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)


def duplicate(allocations: Iterable[Allocation]) -> AllocationSequence:
    """A deep copy: nothing that is changed in it changes the original. Linear."""
    twins: dict[Allocation, Allocation] = {}
    result = AllocationSequence()
    for allocation in allocations:
        twin = copy.copy(allocation)
        twin.uses = list(allocation.uses)
        twins[allocation] = twin
        result.append(twin)
    for twin in result:
        if isinstance(
            twin, (CopyAllocation, SlicedCopyAllocation, WindowPrefetchedAllocation)
        ):
            twin.source = twins.get(twin.source, twin.source)
        elif isinstance(twin, (MirroredAllocation, ParentAllocation)):
            twin.original = twins.get(twin.original, twin.original)
    return result
