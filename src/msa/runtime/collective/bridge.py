"""From a planned module to mapping requests.

Values whose layouts are in the collective memory space live in allocations of that
colour; the collectives that touch them decide how the allocations are mapped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msa.analysis.buffer_assignment import BufferAssignment
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex
from msa.runtime.collective.allocations import (
    NULL,
    AllocationSlice,
    BufferAllocations,
    DeviceAddress,
)
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.collective.requests import CollectiveMemoryRequests, Kind
from msa.runtime.evaluator.collectives import Topology
from msa.runtime.status import NotFound

COLLECTIVE_SPACE: Final = 1
"""Colour of collective memory in layouts on GPU-like platforms."""

_LIBRARY: Final = frozenset(
    {
        "all-reduce",
        "all-gather",
        "reduce-scatter",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
    }
)
KindOf = Callable[[Instruction], Kind]


def default_kind(instruction: Instruction) -> Kind:
    """How an operation's buffers are mapped.

    Symmetric for library collectives, multicast for kernels that say `multimem` in
    their backend config, peer for a one-shot ragged all-to-all and other kernels.
    """
    opcode = instruction.opcode.removesuffix("-start")
    if opcode in _LIBRARY:
        return Kind.SYMMETRIC
    if "multimem" in (instruction.backend_config or ""):
        return Kind.MULTICAST
    return Kind.PEER


@dataclass(frozen=True, slots=True)
class MappingRequest:
    """One mapping that a planned module asks for.

    `reason` tells why the kind is not the one that the operation prefers.
    """

    instruction: str
    operand: str
    kind: Kind
    clique: CliqueKey
    slice: AllocationSlice
    reason: str = ""


def mapping_requests(
    module: Module,
    device: int,
    assignment: BufferAssignment | None = None,
    *,
    processes: tuple[int, ...] = (),
    space: int = COLLECTIVE_SPACE,
    kind_of: KindOf = default_kind,
) -> list[MappingRequest]:
    """Requests of one device in program order.

    Operands and results in the collective space are asked for by every collective
    (and every custom call with replica groups) that touches them. Multicast and peer
    memory do not span processes: such requests fall back to symmetric memory.

    Parameters:
        processes: process of each device; one process by default.
        kind_of: how an operation's buffers are mapped.
    """
    assignment = assignment or BufferAssignment.run(module)
    topology = Topology(module.replica_count, module.num_partitions)
    homes = processes or (0,) * topology.devices
    found = []
    for instruction in assignment.live.schedule.instructions:
        opcode = instruction.opcode.removesuffix("-start")
        grouped = opcode in _LIBRARY or "replica_groups" in instruction.attributes
        if not grouped:
            continue
        group = tuple(topology.group_of(instruction, device))
        local = sum(homes[d] == homes[device] for d in group)
        clique = CliqueKey(group, local)
        kind, reason = kind_of(instruction), ""
        if kind is not Kind.SYMMETRIC and not clique.is_local:
            reason = f"{kind.value} memory does not span processes"
            kind = Kind.SYMMETRIC
        for where, index in _touched(instruction):
            for leaf, shape in where.shape.subshape(index).leaves():
                if not shape.is_array or shape.memory_space != space:
                    continue
                at = (*index, *leaf)
                part = assignment.unique_slice(where, at)
                name = f"{where.name}{{{','.join(map(str, at))}}}"
                found.append(
                    MappingRequest(
                        instruction.name,
                        name,
                        kind,
                        clique,
                        AllocationSlice(part.allocation, part.offset, part.size),
                        reason,
                    )
                )
    return found


def _touched(instruction: Instruction) -> list[tuple[Instruction, ShapeIndex]]:
    operands: list[tuple[Instruction, ShapeIndex]] = [
        (operand, ()) for operand in dict.fromkeys(instruction.operands)
    ]
    return [*operands, (instruction, ())]


def allocate_buffers(
    world: DeviceWorld,
    device: int,
    assignment: BufferAssignment,
    *,
    space: int = COLLECTIVE_SPACE,
) -> BufferAllocations:
    """Device memory for every allocation; those of the collective colour can be bound."""
    addresses = []
    for allocation in assignment.allocations:
        address: DeviceAddress = NULL
        if not allocation.is_thread_local:
            collective = allocation.color == space
            address = world.allocate(device, allocation.size, collective=collective)
        addresses.append(address)
    return BufferAllocations(addresses)


def collect_requests(
    requests: list[MappingRequest], buffers: BufferAllocations
) -> CollectiveMemoryRequests:
    """Mapping requests as the runtime takes them (the prepare stage)."""
    collected = CollectiveMemoryRequests(buffers)
    for request in requests:
        collected.request(request.kind, request.clique, request.slice)
    return collected


def find_request(requests: list[MappingRequest], operand: str) -> MappingRequest:
    """The request of a value `name{index}` (raises NotFound)."""
    for request in requests:
        if request.operand == operand:
            return request
    raise NotFound(f"nothing asks for {operand}")
