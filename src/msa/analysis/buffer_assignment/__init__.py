"""Buffer assignment: allocations of a program and the place of every value."""

from __future__ import annotations

from msa.analysis.buffer_assignment.allocation import BufferAllocation, Slice
from msa.analysis.buffer_assignment.assignment import (
    AssignmentStatistics,
    BufferAssignment,
    SpaceUse,
    load_allocations,
)
from msa.analysis.buffer_assignment.computations import (
    AllocationClasses,
    allocation_classes,
)
from msa.analysis.buffer_assignment.options import (
    BufferAssignmentOptions,
    Isolation,
    PresetAssignments,
)
from msa.analysis.buffer_assignment.peak import (
    EventKind,
    TraceEvent,
    allocation_load,
    peak_memory,
    values_at,
)

__all__ = [
    "AllocationClasses",
    "AssignmentStatistics",
    "BufferAllocation",
    "BufferAssignment",
    "BufferAssignmentOptions",
    "EventKind",
    "Isolation",
    "PresetAssignments",
    "Slice",
    "SpaceUse",
    "TraceEvent",
    "allocation_classes",
    "allocation_load",
    "load_allocations",
    "peak_memory",
    "values_at",
]
