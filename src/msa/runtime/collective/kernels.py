"""Collectives executed on mapped memory, one thread for each rank.

Each ends with a barrier, so that buffers may be reused when it returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from msa.runtime.collective.allocations import AllocationSlice, DeviceAddress
from msa.runtime.collective.cliques import Clique
from msa.runtime.collective.memory import CollectiveMemory
from msa.runtime.collective.multicast import (
    DTYPES,
    combine,
    multimem_ld_reduce,
    multimem_st,
)
from msa.runtime.status import InvalidArgument, NotFound

Array = npt.NDArray[Any]


@dataclass(slots=True)
class RankContext:
    """One rank of a clique in one execution.

    Attributes:
        clique: the live clique.
        rank: this thread's rank.
        memory: what it acquired.
        run_id: separates executions.
    """

    clique: Clique
    rank: int
    memory: CollectiveMemory
    run_id: int = 0
    _epoch: int = field(default=0)

    @property
    def device(self) -> int:
        """Global device id of the rank."""
        return self.clique.key.devices[self.rank]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.clique.key.devices)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._epoch += 1
        self.clique.meet(
            "kernel", (self.run_id, self._epoch), self.rank, None, lambda _: None
        )

    def read(self, address: DeviceAddress, dtype: str, count: int) -> Array:
        """Elements at an address that this device can reach."""
        return self.clique.world.read(address, DTYPES[dtype], count, self.device)

    def write(self, address: DeviceAddress, values: Array) -> None:
        """Store elements at an address that this device can reach."""
        self.clique.world.write(address, values, self.device)

    def multimem(self, where: AllocationSlice) -> int:
        """Multimem address of a slice (raises NotFound)."""
        base, offset = self.memory.find_multimem(self.clique.key, where)
        if base is None:
            raise NotFound(f"allocation {where.index} has no multicast memory here")
        return base.opaque + offset

    def peer(self, rank: int, where: AllocationSlice) -> DeviceAddress:
        """A slice on another rank (raises NotFound)."""
        address = self.memory.find_peer(self.clique.key, rank, where)
        if address is None:
            raise NotFound(f"allocation {where.index} has no peer memory at {rank}")
        return address


def _count(where: AllocationSlice, dtype: str) -> int:
    size = DTYPES[dtype].itemsize
    if where.size % size:
        raise InvalidArgument(f"{where.size} bytes are not whole elements of {dtype}")
    return where.size // size


def _share(total: int, parts: int, number: int) -> tuple[int, int]:
    """Elements `[begin, end)` of one part when `total` is cut as evenly as can be."""
    return total * number // parts, total * (number + 1) // parts


def all_reduce_multimem(
    context: RankContext, where: AllocationSlice, dtype: str, operation: str = "add"
) -> None:
    """Reduce a slice over all ranks in place.

    Each rank load-reduces its share of the elements and stores the result to all.
    """
    size = DTYPES[dtype].itemsize
    begin, end = _share(_count(where, dtype), context.size, context.rank)
    address = context.multimem(where) + begin * size
    context.barrier()
    if end > begin:
        world, me = context.clique.world, context.device
        part = multimem_ld_reduce(world, address, end - begin, dtype, operation, me)
        multimem_st(world, address, part, dtype, me)
    context.barrier()


def all_reduce_peer(
    context: RankContext, where: AllocationSlice, dtype: str, operation: str = "add"
) -> None:
    """Reduce a slice over all ranks in place: every rank reads all peers."""
    count = _count(where, dtype)
    context.barrier()
    parts = [
        context.read(context.peer(rank, where), dtype, count)
        for rank in range(context.size)
    ]
    total = combine(parts, dtype, operation)
    context.barrier()
    context.write(context.peer(context.rank, where), total)
    context.barrier()


def reduce_scatter_multimem(
    context: RankContext, where: AllocationSlice, dtype: str, operation: str = "add"
) -> Array:
    """This rank's share of the reduced slice, as a new array."""
    size = DTYPES[dtype].itemsize
    count = _count(where, dtype)
    if count % context.size:
        raise InvalidArgument(
            f"{count} elements cannot be scattered over {context.size} ranks"
        )
    share = count // context.size
    context.barrier()
    address = context.multimem(where) + context.rank * share * size
    part = multimem_ld_reduce(
        context.clique.world, address, share, dtype, operation, context.device
    )
    context.barrier()
    return part


def all_gather_multimem(
    context: RankContext, where: AllocationSlice, shard: Array, dtype: str
) -> None:
    """Every rank stores its shard to all; the slice holds them in rank order."""
    count = _count(where, dtype)
    if len(shard) * context.size != count:
        raise InvalidArgument(
            f"{context.size} shards of {len(shard)} do not fill {count} elements"
        )
    address = context.multimem(where)
    context.barrier()
    multimem_st(
        context.clique.world,
        address + context.rank * len(shard) * DTYPES[dtype].itemsize,
        shard,
        dtype,
        context.device,
    )
    context.barrier()


def all_gather_peer(
    context: RankContext, where: AllocationSlice, shard: Array, dtype: str
) -> None:
    """Every rank writes its shard into each peer's slice."""
    count = _count(where, dtype)
    if len(shard) * context.size != count:
        raise InvalidArgument(
            f"{context.size} shards of {len(shard)} do not fill {count} elements"
        )
    size = DTYPES[dtype].itemsize
    begin = context.rank * len(shard) * size
    context.barrier()
    for rank in range(context.size):
        target = context.peer(rank, where)
        context.write(target.slice(begin, len(shard) * size), shard)
    context.barrier()


def all_to_all_peer(context: RankContext, where: AllocationSlice, dtype: str) -> None:
    """Part r of this rank's slice becomes part `rank` of rank r's, in place."""
    count = _count(where, dtype)
    if count % context.size:
        raise InvalidArgument(
            f"{count} elements cannot be exchanged among {context.size} ranks"
        )
    share = count // context.size * DTYPES[dtype].itemsize
    context.barrier()
    parts = [
        context.read(
            context.peer(rank, where).slice(context.rank * share, share),
            dtype,
            count // context.size,
        )
        for rank in range(context.size)
    ]
    context.barrier()
    context.write(context.peer(context.rank, where), np.concatenate(parts))
    context.barrier()


def broadcast_symmetric(
    context: RankContext, where: AllocationSlice, root: int = 0
) -> None:
    """The root puts its slice into every rank's window."""
    window, offset = context.memory.find_symmetric(context.clique.key, where)
    if window is None:
        raise NotFound(f"allocation {where.index} has no symmetric memory here")
    context.barrier()
    if context.rank == root:
        source = window.addr().slice(offset, where.size)
        for rank in range(context.size):
            if rank != root:
                window.put(source, offset, where.size, rank)
    context.barrier()
