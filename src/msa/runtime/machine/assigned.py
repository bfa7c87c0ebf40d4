"""Addresses outside the planned memory: those of the project's buffer assignment.

The machine lays the allocations of each memory space one after another, so that a
value has the address that the assignment gives it, and values whose bytes are shared
at the wrong time overwrite each other.

Not covered, and left to `GrowingMemory`: values without storage in the assignment
(their computation runs for single elements, or they have no bytes), and modules in
which several places call one computation: each call has buffers of its own there,
while an assignment demands that every place has a computation of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from msa.analysis.buffer_assignment import (
    BufferAssignment,
    BufferAssignmentOptions,
    Slice,
)
from msa.analysis.call_graph import CallGraph
from msa.analysis.live_ranges import LiveRanges
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex
from msa.runtime.machine.faults import misplaced
from msa.runtime.machine.storage_sets import position_text

PAGE: Final = 4096
"""Allocations begin at multiples of this many bytes."""


@dataclass(slots=True)
class AssignedPlaces:
    """Where storage sets lie outside the planned memory.

    Attributes:
        places: set -> (memory space of the allocation, address, bytes).
        allocations: memory space -> [(address, bytes)] of its allocations, sorted.
    """

    places: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    allocations: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def end(self, space: int) -> int:
        """One past the last byte of the allocations of a space."""
        ranges = self.allocations.get(space)
        return _rounded(sum(ranges[-1])) if ranges else 0


def assign_buffers(
    module: Module, planned_space: int | None, alignment: int
) -> BufferAssignment | None:
    """The project's assignment of a module, or None where it makes none.

    Args:
        module: scheduled.
        planned_space: memory space whose addresses a plan states, or None.
        alignment: bytes that offsets are multiples of.
    """
    if not CallGraph.run(module).is_flattened:
        return None
    options = BufferAssignmentOptions(
        alignment=alignment, allocate_constants=True, view_color=planned_space
    )
    return BufferAssignment.run(module, options)


def assigned_places(
    buffers: BufferAssignment,
    locations: Iterable[tuple[tuple[Instruction, ShapeIndex], int]],
    sizes: dict[int, int],
) -> AssignedPlaces:
    """Places of the storage sets at some positions.

    Args:
        buffers: an assignment of the module.
        locations: positions with their sets.
        sizes: bytes per set.

    Raises:
        SanitizerError: positions that share storage have different places, or one
            is too small for what lies there.
    """
    found = AssignedPlaces()
    bases: dict[int, int] = {}
    for allocation in buffers.allocations:
        start = found.end(allocation.color)
        bases[allocation.index] = start
        found.allocations.setdefault(allocation.color, []).append(
            (start, allocation.size)
        )
    stated: dict[int, tuple[str, Slice]] = {}
    for (instruction, index), root in locations:
        if not sizes[root]:
            continue
        name = position_text(instruction, index)
        for place in buffers.all_slices(instruction, index):
            first, known = stated.setdefault(root, (name, place))
            address = bases[place.allocation] + place.offset
            if known.allocation != place.allocation or known.offset != place.offset:
                raise misplaced(
                    instruction,
                    f"{first} at {bases[known.allocation] + known.offset} and {name} "
                    f"at {address} must share storage",
                    kind="split storage",
                    space=buffers.allocations[place.allocation].color,
                    address=address,
                    size=place.size,
                    parties=(first, name),
                )
            allocation = buffers.allocations[place.allocation]
            found.places[root] = (allocation.color, address, sizes[root])
            room = allocation.size - place.offset
            if room < sizes[root]:
                raise misplaced(
                    instruction,
                    f"{name} needs {sizes[root]} bytes, its allocation has {room}",
                    kind="out of bounds",
                    space=buffers.allocations[place.allocation].color,
                    address=address,
                    size=sizes[root],
                    parties=(name, f"allocation {place.allocation}"),
                )
    return found


def life_ends(
    live: LiveRanges, locations: Iterable[tuple[tuple[Instruction, ShapeIndex], int]]
) -> dict[Instruction, list[int]]:
    """The storage sets that nobody needs any more after an instruction.

    A set is needed while one of its values is live; ranges that touch are one.
    """
    ranges: dict[int, set[tuple[int, int]]] = {}
    for (instruction, index), root in locations:
        found = ranges.setdefault(root, set())
        for value in live.alias.dataflow.values_at(instruction, index):
            bound = live.range_of(value)
            if bound is not None:
                found.add((bound.start, bound.end))
    order = live.schedule.instructions
    ends: dict[Instruction, list[int]] = {}
    for root, found in ranges.items():
        last = -1
        for start, end in sorted(found):
            if 0 <= last < start - 1:
                ends.setdefault(order[last], []).append(root)
            last = max(last, end)
        if 0 <= last < len(order):
            ends.setdefault(order[last], []).append(root)
    return ends


def _rounded(size: int) -> int:
    return -(-size // PAGE) * PAGE
