"""Buffers that devices share: what is asked for, and where it is mapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from msa.analysis.buffer_assignment import BufferAssignment
from msa.errors import HloError
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.passes.binding import GpuColoring
from msa.passes.binding.symmetric import collective_kind
from msa.runtime.collective import (
    AcquireParams,
    BufferAllocations,
    CliqueTable,
    DeviceAddress,
    DeviceWorld,
    Kind,
    Stage,
    execute_stages,
    launch,
)
from msa.runtime.collective.bridge import (
    KindOf,
    MappingRequest,
    collect_requests,
    default_kind,
    mapping_requests,
)

R = TypeVar("R")
GRANULARITY: Final = 4096
"""Bytes; collective memory of the simulated devices comes in such steps."""

Body = Callable[[int, Stage, BufferAllocations], R]


@dataclass(frozen=True, slots=True)
class MappedValue:
    """Where one device found a value that it shares, in one execution.

    Attributes:
        request: what asked for it, and how it is mapped.
        address: on the device itself.
        window_offset: bytes from the start of the symmetric window, the same on every
            device; None for other kinds.
        multimem: where a store reaches all devices and a load combines them; None
            without multicast memory.
        peers: by device, where this device reaches the value on the others; empty
            without peer memory.
    """

    request: MappingRequest
    address: DeviceAddress
    window_offset: int | None
    multimem: DeviceAddress | None
    peers: Mapping[int, DeviceAddress]


class SharedBuffers:
    """What the collectives of a placed module share, and how it is mapped.

    Attributes:
        requests: by device, in program order; empty when nothing is shared.

    >>> import msa
    >>> from msa.passes.binding import BindingOptions, GpuColoring
    >>> from msa.pipeline import PipelineOptions, run
    >>> module = msa.parse('''
    ... HloModule m, replica_count=2
    ... sum { p = f32[] parameter(0) q = f32[] parameter(1)
    ...       ROOT s = f32[] add(p, q) }
    ... ENTRY e { x = f32[64] parameter(0)
    ...   n = f32[64] negate(x)
    ...   ROOT r = f32[64] all-reduce(n), replica_groups={{0,1}}, to_apply=sum }''')
    >>> coloring = GpuColoring(user_buffers=True)
    >>> options = PipelineOptions(binding=BindingOptions(coloring=coloring))
    >>> result = run(module, msa.Target.preset("tpu_v5e"), options, platform="gpu")
    >>> [request.operand for request in result.shared.requests[0]]
    ['n{}', 'r{}']
    >>> result.address("r", 1).size, result.shared.find("r", 0).window_offset
    (256, 0)
    """

    def __init__(
        self,
        module: Module,
        buffers: BufferAssignment,
        requests: Mapping[int, tuple[MappingRequest, ...]],
        *,
        space: int | None,
        processes: tuple[int, ...] = (),
    ) -> None:
        self.module = module
        self.requests = requests
        self._buffers = buffers
        self._space = space
        self._processes = processes
        self._mapped: dict[int, dict[str, MappedValue]] | None = None

    def execute(self, body: Body[R]) -> list[R]:
        """Map everything on simulated devices and call `body` on each, in threads.

        Args:
            body: gets the device's number, what it acquired, and its buffers, of
                which those in collective memory exist. The mappings end with it.

        Returns:
            what each device returned, in order.

        Raises:
            MsaError: the first device's error.
        """
        devices = len(self.requests)
        world = DeviceWorld(
            devices, granularity=GRANULARITY, processes=self._processes or None
        )
        table = CliqueTable(world)
        owned = [
            BufferAllocations(
                [
                    world.allocate(device, allocation.size, collective=True)
                    if allocation.color == self._space
                    else DeviceAddress(0, 0)
                    for allocation in self._buffers.allocations
                ]
            )
            for device in range(devices)
        ]

        def rank(device: int) -> R:
            buffers = owned[device]
            return execute_stages(
                table,
                AcquireParams(world, device),
                collect_requests(list(self.requests[device]), buffers),
                lambda stage: body(device, stage, buffers),
            )

        return [outcome.unwrap() for outcome in launch(range(devices), rank)]

    def find(self, value: str, device: int) -> MappedValue:
        """Where a device finds a value; the first call maps everything once.

        Args:
            value: place such as `x{}` or `x`.
            device: global number.

        Raises:
            HloError: the value is not shared, or there is no such device.
        """
        if not 0 <= device < len(self.requests):
            raise HloError(
                f"there is no device {device}; the module runs on {len(self.requests)}"
            )
        if self._mapped is None:
            self._mapped = dict(enumerate(self.execute(self._record)))
        place = value if value.endswith("}") else f"{value}{{}}"
        found = self._mapped[device].get(place)
        if found is None:
            shared = ", ".join(self._mapped[device]) or "nothing is"
            raise HloError(
                f"{value!r} is not shared by device {device}",
                hint=f"values that are shared: {shared}",
            )
        return found

    def _record(
        self, device: int, stage: Stage, buffers: BufferAllocations
    ) -> dict[str, MappedValue]:
        return {
            request.operand: _found(request, stage, buffers)
            for request in self.requests[device]
        }


def _found(
    request: MappingRequest, stage: Stage, buffers: BufferAllocations
) -> MappedValue:
    memory, clique, part = stage.memory, request.clique, request.slice
    window, offset = memory.find_symmetric(clique, part)
    base, shift = memory.find_multimem(clique, part)
    peers = {}
    for rank, device in enumerate(clique.devices):
        address = memory.find_peer(clique, rank, part)
        if address is not None:
            peers[device] = address
    return MappedValue(
        request,
        buffers.address(part),
        None if window is None else offset,
        None if base is None else DeviceAddress(base.opaque + shift, part.size),
        peers,
    )


def share_buffers(
    module: Module,
    buffers: BufferAssignment,
    coloring: GpuColoring,
    *,
    space: int | None,
    processes: tuple[int, ...] = (),
) -> SharedBuffers:
    """What each device of a placed module asks to be mapped.

    Args:
        module: placed.
        buffers: of it; its colours say what is in collective memory.
        coloring: what made it collective.
        space: number of collective memory in layouts; None if there is none.
        processes: process of each device; one process by default.

    Raises:
        Unimplemented: an operation's buffers can be mapped in no way.
    """
    kind_of = kind_by(coloring)
    count = module.replica_count * module.num_partitions
    requests: dict[int, tuple[MappingRequest, ...]] = {}
    for device in range(count):
        rows = []
        if space is not None:
            rows = mapping_requests(
                module,
                device,
                buffers,
                processes=processes,
                space=space,
                kind_of=kind_of,
            )
        requests[device] = tuple(rows)
    return SharedBuffers(module, buffers, requests, space=space, processes=processes)


def kind_by(coloring: GpuColoring) -> KindOf:
    """How an operation's buffers are mapped, by what made them collective.

    Multicast for kernels with multicast parameters, peer for one-shot ragged
    all-to-alls, symmetric for what the collective library performs.
    """

    def kind_of(x: Instruction) -> Kind:
        if x.opcode == "custom-call":
            if x.attributes.get("custom_call_target") in coloring.multimem_targets:
                return Kind.MULTICAST
            return default_kind(x)
        one_shot = coloring.one_shot_ragged and not coloring.wants_symmetric(x)
        if collective_kind(x) == "ragged-all-to-all" and one_shot:
            return Kind.PEER
        return Kind.SYMMETRIC

    return kind_of
