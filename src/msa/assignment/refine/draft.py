"""An allocation sequence that may be changed, and taken back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

from msa.assignment.allocation import (
    Allocation,
    AllocationSequence,
    CopyAllocation,
    MirroredAllocation,
    ParentAllocation,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)

A = TypeVar("A", bound=Allocation)


def duplicate(allocations: Iterable[Allocation]) -> AllocationSequence:
    """A deep copy: nothing that is changed in it changes the original. Linear."""
    twins: dict[Allocation, Allocation] = {}
    result = AllocationSequence()
    for allocation in allocations:
        twin = _copied(allocation)
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


def _copied(allocation: A) -> A:
    """A shallow copy (`copy.copy` takes three times as long)."""
    kind: Any = type(allocation)
    twin: A = object.__new__(kind)
    for name in _names(kind):
        setattr(twin, name, getattr(allocation, name))
    return twin


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Attributes of a kind of allocation."""
    return tuple(field.name for field in dataclasses.fields(kind))
