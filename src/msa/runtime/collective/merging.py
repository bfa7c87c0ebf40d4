"""Joining allocations of one clique into fewer registered regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msa.runtime.collective.allocations import BufferAllocations, DeviceAddress
from msa.runtime.collective.devices import DeviceWorld

Coalesce = Literal["none", "adjacent", "span"]


@dataclass(frozen=True, slots=True)
class Run:
    """A region to register, and where allocations lie in it.

    `members` are rows (allocation index, offset in the region, size), ascending by
    offset: equal on all ranks, or the layout is not usable.
    """

    base: int
    size: int
    members: tuple[tuple[int, int, int], ...]

    @property
    def address(self) -> DeviceAddress:
        """The region as an address."""
        return DeviceAddress(self.base, self.size)


def plan_runs(
    world: DeviceWorld,
    buffers: BufferAllocations,
    indices: Sequence[int],
    coalesce: Coalesce,
) -> list[Run]:
    """Regions that cover the allocations; one each for `"none"`.

    `"adjacent"` joins neighbours that touch, `"span"` everything from the lowest to
    the highest byte; both stay inside one physical allocation (`"span"` falls back
    to `"adjacent"` otherwise).
    """
    rows = [(index, buffers.address(index)) for index in indices]
    if coalesce == "none" or len(rows) < 2:
        return [_run([row]) for row in rows]
    rows.sort(key=lambda row: (row[1].opaque, row[0]))
    physical = [_physical(world, address) for _, address in rows]
    if coalesce == "span" and physical[0] >= 0 and len(set(physical)) == 1:
        return [_run(rows)]
    groups = [[rows[0]]]
    for i in range(1, len(rows)):
        touching = rows[i - 1][1].end == rows[i][1].opaque
        if touching and physical[i] >= 0 and physical[i] == physical[i - 1]:
            groups[-1].append(rows[i])
        else:
            groups.append([rows[i]])
    return [_run(group) for group in groups]


def _physical(world: DeviceWorld, address: DeviceAddress) -> int:
    """Handle of the physical allocation behind an address; -1 without one."""
    if address.is_null:
        return -1
    entry = world.memory.lookup(address.opaque, address.size)
    return -1 if entry.physical is None else entry.physical.handle


def _run(rows: Sequence[tuple[int, DeviceAddress]]) -> Run:
    base = min(address.opaque for _, address in rows)
    end = max(address.end for _, address in rows)
    members = [(index, a.opaque - base, a.size) for index, a in rows]
    return Run(base, end - base, tuple(members))
