"""Collectives of sharded modules through mapped memory.

The evaluator hands over the operands of all members of a group; here each member
becomes a thread that acquires multicast and peer memory and runs a kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from msa.errors import ExecutionError
from msa.hlo.instruction import Instruction
from msa.runtime.collective.acquire import AcquireParams
from msa.runtime.collective.allocations import AllocationSlice, BufferAllocations
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.cliques import CliqueTable
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.collective.kernels import (
    RankContext,
    all_gather_multimem,
    all_gather_peer,
    all_reduce_multimem,
    all_reduce_peer,
    all_to_all_peer,
    reduce_scatter_multimem,
)
from msa.runtime.collective.launch import Stage, execute_stages, launch
from msa.runtime.collective.multicast import bf16_to_f32, f32_to_bf16
from msa.runtime.collective.requests import CollectiveMemoryRequests, Kind
from msa.runtime.evaluator.collectives import Operands, Topology, exchange

Array = npt.NDArray[Any]

_DTYPES: Final = {
    "s32": "i32",
    "u32": "u32",
    "s64": "i64",
    "u64": "u64",
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
}
_REDUCTIONS: Final = {
    "add": "add",
    "minimum": "min",
    "maximum": "max",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


@dataclass(slots=True)
class MappedExchange:
    """An exchange for `msa.execute` that moves data through collective memory.

    All-reduce, reduce-scatter, all-gather and all-to-all of one array of a 16-bit or
    wider type, with a plain reduction, run as kernels; `counts` tells how often.
    Everything else is exchanged by numpy, counted under `"plain"`.

    Parameters:
        world: devices; made on first use, one for each device of the topology.
        peer: prefer kernels on peer memory to those on multicast memory.
    """

    world: DeviceWorld | None = None
    peer: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    _runs: Any = field(default_factory=itertools.count)
    _table: CliqueTable | None = None

    def __call__(
        self,
        instruction: Instruction,
        group: Sequence[int],
        operands: Sequence[Operands],
        topology: Topology,
    ) -> list[Any]:
        """Results for each member, in group order."""
        job = self._job(instruction, group, operands)
        if job is None:
            self._count("plain")
            return exchange(instruction, group, operands, topology)
        world = self._devices(topology)
        self._count(job.opcode)
        return self._run(job, world, group)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _devices(self, topology: Topology) -> DeviceWorld:
        if self.world is None:
            self.world = DeviceWorld(topology.devices, granularity=4096)
        if self.world.count < topology.devices:
            raise ExecutionError(
                f"{topology.devices} devices are needed, the world has "
                f"{self.world.count}"
            )
        if self._table is None:
            self._table = CliqueTable(self.world)
        return self.world

    def _job(
        self,
        instruction: Instruction,
        group: Sequence[int],
        operands: Sequence[Operands],
    ) -> _Job | None:
        opcode = instruction.opcode
        if opcode not in _KERNELS or len(group) < 2 or len(operands[0]) != 1:
            return None
        shape = instruction.operands[0].shape
        dtype = _DTYPES.get(shape.element_type.name)
        if dtype is None or not shape.element_count:
            return None
        operation = "add"
        if opcode in ("all-reduce", "reduce-scatter"):
            body = instruction.called_computations[0]
            plain = set(body.root.operands) == set(body.parameters)
            found = _REDUCTIONS.get(body.root.opcode) if plain else None
            integral = shape.element_type.is_integral
            if found is None or (found in ("and", "or", "xor") and not integral):
                return None
            operation = found
        axis = 0
        if opcode != "all-reduce":
            dimensions = instruction.attributes.get("dimensions", ())
            if not dimensions:
                return None
            axis = dimensions[0]
        values = [np.asarray(given[0]) for given in operands]
        return _Job(opcode, dtype, operation, axis, self.peer, values)

    def _run(self, job: _Job, world: DeviceWorld, group: Sequence[int]) -> list[Any]:
        table = self._table
        assert table is not None
        key = CliqueKey.local(*group)
        run_id = next(self._runs)
        size = job.buffer_bytes(len(group))
        addresses = {d: world.allocate(d, size, collective=True) for d in group}
        kinds = (Kind.PEER,) if job.peer else (Kind.MULTICAST, Kind.PEER)

        def body(device: int) -> Array:
            requests = CollectiveMemoryRequests(BufferAllocations([addresses[device]]))
            for kind in kinds:
                requests.request(kind, key, 0)
            params = AcquireParams(world, device, run_id)

            def kernel(stage: Stage) -> Array:
                rank = key.rank(device)
                assert rank is not None
                context = RankContext(stage.cliques[key], rank, stage.memory, run_id)
                return job.kernel(context)

            return execute_stages(
                table, params, requests, kernel, local_devices=len(group)
            )

        try:
            return [outcome.unwrap() for outcome in launch(group, body)]
        finally:
            table.destroy([key])
            for address in addresses.values():
                world.free(address)


@dataclass(frozen=True, slots=True)
class _Job:
    """One collective on the values of all members, along an axis."""

    opcode: str
    dtype: str
    operation: str
    axis: int
    peer: bool
    values: list[Array]

    def buffer_bytes(self, members: int) -> int:
        """Size of each member's buffer: room for the whole result."""
        factor = members if self.opcode == "all-gather" else 1
        return max(1, self._wire(self.values[0]).nbytes) * factor

    def _wire(self, value: Array) -> Array:
        """The axis first, flat; bf16 as its bits."""
        whole = self.opcode == "all-reduce"
        moved = value if whole else np.moveaxis(value, self.axis, 0)
        flat = np.ascontiguousarray(moved).reshape(-1)
        return f32_to_bf16(flat) if self.dtype == "bf16" else flat

    def _value(self, wire: Array, like: Array, scale: tuple[int, int]) -> Array:
        """The inverse of `_wire`, for an axis scaled by a fraction."""
        flat = bf16_to_f32(wire) if self.dtype == "bf16" else wire
        if self.opcode == "all-reduce":
            return flat.reshape(like.shape)
        shape = list(np.moveaxis(like, self.axis, 0).shape)
        shape[0] = shape[0] * scale[0] // scale[1]
        return np.moveaxis(flat.reshape(shape), 0, self.axis)

    def kernel(self, context: RankContext) -> Array:
        """Run on one rank; its result."""
        mine = self.values[context.rank]
        wire = self._wire(mine)
        members = context.size
        where = AllocationSlice(0, 0, wire.nbytes)
        address = context.peer(context.rank, where)
        if self.opcode == "all-gather":
            whole = AllocationSlice(0, 0, wire.nbytes * members)
            gather = all_gather_peer if self.peer else all_gather_multimem
            gather(context, whole, wire, self.dtype)
            got = context.read(
                context.peer(context.rank, whole), self.dtype, wire.size * members
            )
            context.barrier()
            return self._value(got, mine, (members, 1))
        context.write(address, wire)
        if self.opcode == "all-reduce":
            reduce = all_reduce_peer if self.peer else all_reduce_multimem
            reduce(context, where, self.dtype, self.operation)
            got = context.read(address, self.dtype, wire.size)
            context.barrier()
            return self._value(got, mine, (1, 1))
        if self.opcode == "reduce-scatter":
            if self.peer:
                all_reduce_peer(context, where, self.dtype, self.operation)
                share = wire.size // members
                got = context.read(address, self.dtype, wire.size)
                part = got[context.rank * share : (context.rank + 1) * share]
                context.barrier()
            else:
                part = reduce_scatter_multimem(
                    context, where, self.dtype, self.operation
                )
            return self._value(part, mine, (1, members))
        all_to_all_peer(context, where, self.dtype)
        got = context.read(address, self.dtype, wire.size)
        context.barrier()
        return self._value(got, mine, (1, 1))


_KERNELS: Final = frozenset(
    {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}
)
