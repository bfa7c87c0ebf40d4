"""Bytes that are needed over time, per memory space."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from msa.analysis.buffer_assignment import (
    BufferAllocation,
    BufferAssignment,
    allocation_load,
)

Load = NDArray[np.int64]


def step_count(assignment: BufferAssignment) -> int:
    """Moments of the program: its steps, and its end."""
    return len(assignment.live.schedule) + 1


def load_of(
    assignment: BufferAssignment, allocations: Iterable[BufferAllocation]
) -> Load:
    """Bytes of the allocations that hold needed values, at each moment."""
    steps = step_count(assignment)
    total: Load = np.zeros(steps, np.int64)
    for allocation in allocations:
        total += allocation_load(allocation, assignment.live, steps)
    return total


def usage_of(assignment: BufferAssignment, color: int | None = None) -> Load:
    """Bytes in use at each moment: needed temporaries, all else the whole time."""
    chosen = [
        a
        for a in assignment.allocations
        if not a.is_thread_local and color in (None, a.color)
    ]
    fixed = sum(a.size for a in chosen if not a.is_temporary)
    return fixed + load_of(assignment, [a for a in chosen if a.is_temporary])


def colors_of(assignment: BufferAssignment) -> list[int]:
    """Memory spaces in use, ascending."""
    return sorted({a.color for a in assignment.allocations if not a.is_thread_local})
