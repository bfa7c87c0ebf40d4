"""From a planned module to mapping requests.

Values whose layouts are in the collective memory space live in allocations of that
colour; the collectives that touch them decide how the allocations are mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from msa.analysis.buffer_assignment import BufferAssignment
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.passes.binding.symmetric import COLLECTIVES, collective_kind
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
from msa.runtime.status import InvalidArgument, NotFound, Unimplemented

COLLECTIVE_SPACE: Final = 1
"""Colour of collective memory in layouts on GPU-like platforms."""

_LIBRARY: Final = COLLECTIVES - {"ragged-all-to-all"} | {"collective-broadcast"}
ALL_KINDS: Final = frozenset(Kind)
KindOf = Callable[[Instruction], Kind]


def default_kind(instruction: Instruction) -> Kind:
    """How an operation's buffers are mapped.

    Symmetric for library collectives, multicast for kernels that say `multimem` in
    their backend config, peer for a one-shot ragged all-to-all and other kernels.
    """
    if _collective(instruction) in _LIBRARY:
        return Kind.SYMMETRIC
    if _is_multimem(instruction):
        return Kind.MULTICAST
    return Kind.PEER


def _collective(x: Instruction) -> str:
    """Opcode of the collective that an instruction is or starts, or empty."""
    if x.opcode.endswith(("-done", "-update")):
        return ""
    return "collective-broadcast" if x.opcode in _BROADCASTS else collective_kind(x)


_BROADCASTS: Final = frozenset({"collective-broadcast", "collective-broadcast-start"})


def _is_multimem(x: Instruction) -> bool:
    return x.opcode == "custom-call" and "multimem" in (x.backend_config or "")


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

    @property
    def because(self) -> str:
        """The reason as the end of a sentence, or nothing."""
        return f": {self.reason}" if self.reason else ""


def mapping_requests(
    module: Module,
    device: int,
    assignment: BufferAssignment | None = None,
    *,
    processes: tuple[int, ...] = (),
    space: int = COLLECTIVE_SPACE,
    kind_of: KindOf = default_kind,
    supported: Collection[Kind] = ALL_KINDS,
) -> list[MappingRequest]:
    """Requests of one device in program order.

    Operands and results in the collective space are asked for by every collective
    (and every custom call with replica groups or multicast parameters) that touches
    them. Multicast and peer memory do not span processes, and nothing but symmetric
    memory is of use to a device alone: such requests fall back to symmetric memory.

    Parameters:
        processes: process of each device; one process by default.
        kind_of: how an operation's buffers are mapped.
        supported: what the machine can map.

    Raises:
        Unimplemented: an operation's buffers can be mapped in no way.
        InvalidArgument: an operation names devices that do not exist.
    """
    assignment = assignment or BufferAssignment.run(module)
    topology = Topology(module.replica_count, module.num_partitions)
    homes = processes or (0,) * topology.devices
    found = []
    for instruction in assignment.live.schedule.instructions:
        if not _shares(instruction, kind_of):
            continue
        touched = [
            (place, part)
            for where in (*dict.fromkeys(instruction.operands), instruction)
            for place, part in _colored_leaves(assignment, where, space)
        ]
        if not touched:
            continue
        group = _group(topology, instruction, device)
        clique = CliqueKey(group, sum(homes[d] == homes[device] for d in group))
        kind, reason = _kind(instruction, kind_of(instruction), clique, supported)
        found += [
            MappingRequest(instruction.name, place, kind, clique, part, reason)
            for place, part in touched
        ]
    return found


def _shares(x: Instruction, kind_of: KindOf) -> bool:
    """Whether an instruction reaches buffers of other devices."""
    if _collective(x):
        return True
    return x.opcode == "custom-call" and (
        "replica_groups" in x.attributes or kind_of(x) is Kind.MULTICAST
    )


def _group(topology: Topology, x: Instruction, device: int) -> tuple[int, ...]:
    """Devices that an operation of `device` communicates with, itself included."""
    if x.opcode == "custom-call" and "replica_groups" not in x.attributes:
        return tuple(range(topology.devices))
    wrapped = x.called_computations[0].root if x.opcode == "async-start" else x
    group = tuple(topology.group_of(wrapped, device))
    if max(group) >= topology.devices:
        raise InvalidArgument(
            f"{x.name} communicates with device {max(group)}, but the module runs on "
            f"{topology.devices}",
            where=x.name,
            hint="set replica_count or num_partitions of the module",
        )
    return group


def _kind(
    x: Instruction, wanted: Kind, clique: CliqueKey, supported: Collection[Kind]
) -> tuple[Kind, str]:
    """How an operation's buffers are mapped, and why not as wanted."""
    reason = ""
    if wanted not in supported:
        reason = f"there is no {wanted.value} memory here"
    elif wanted is not Kind.SYMMETRIC and not clique.is_local:
        reason = f"{wanted.value} memory does not span processes"
    elif wanted is not Kind.SYMMETRIC and len(clique.devices) == 1:
        reason = f"{wanted.value} memory is between several devices"
    if not reason:
        return wanted, ""
    if Kind.SYMMETRIC not in supported:
        raise Unimplemented(
            f"{x.name} finds no memory that its devices share: {reason}",
            where=x.name,
            hint="leave its buffers in default memory",
        )
    return Kind.SYMMETRIC, reason


def _colored_leaves(
    assignment: BufferAssignment, where: Instruction, space: int
) -> Iterator[tuple[str, AllocationSlice]]:
    """Arrays of a result in a memory space, with where they lie."""
    dataflow, color_of = assignment.alias.dataflow, assignment.options.color_of
    for index, shape in where.shape.leaves():
        if not shape.is_array:
            continue
        values = dataflow.values_at(where, index)
        if any(color_of(value) == space for value in values):
            part = assignment.unique_slice(where, index)
            place = f"{where.name}{{{','.join(map(str, index))}}}"
            yield place, AllocationSlice(part.allocation, part.offset, part.size)


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
