"""Collective buffers out of pools that each rank fills and empties in its own way."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from collective_support import GRANULARITY, Cluster, all_of, ask_for, context
from msa.runtime.collective import (
    AllocationSlice,
    BufferAllocations,
    DeviceAddress,
    DeviceWorld,
    Kind,
    Stage,
)
from msa.runtime.collective.kernels import all_reduce_multimem, all_reduce_peer
from msa.runtime.host import AllocatorConfig, DeviceSubAllocator, build_allocators
from msa.runtime.host.wiring import COLLECTIVE, DEFAULT, ColorAllocator
from msa.runtime.status import InvalidArgument, UnmappedAddress

RANKS = 4
MIB = 1 << 20
SIZES = (5000, 300, 40_000, 4096, 12_289)
KEY = all_of(RANKS)


class Rank:
    """A device's pool and the collective buffers taken from its upper end."""

    def __init__(self, world: DeviceWorld, device: int) -> None:
        self.source = DeviceSubAllocator(world, device)
        config = AllocatorConfig(
            4 * MIB,
            preallocate=True,
            spatial_partitioning=True,
            granularity=GRANULARITY,
        )
        self.colors = build_allocators(device, config, self.source)
        self.lower: list[DeviceAddress] = []
        self.upper: list[DeviceAddress] = []

    @property
    def shared(self) -> ColorAllocator:
        return self.colors[DEFAULT]

    def churn(self, chance: random.Random) -> None:
        for _ in range(chance.randrange(1, 30)):
            if self.lower and chance.random() < 0.5:
                gone = self.lower.pop(chance.randrange(len(self.lower)))
                self.shared.pool.deallocate(gone.opaque)
            else:
                size = chance.randrange(1, 20_000)
                self.lower.append(self.shared.allocate(size))

    def take(self, size: int) -> None:
        self.upper.append(self.colors[COLLECTIVE].allocate(size))

    def give(self, place: int) -> None:
        self.shared.pool.deallocate(self.upper.pop(place).opaque)

    def offsets(self) -> list[int]:
        return [address.opaque - self.source.base for address in self.upper]

    def close(self) -> None:
        for address in self.lower + self.upper:
            self.shared.pool.deallocate(address.opaque)
        self.shared.pool.check()
        assert self.shared.pool.close() == []


def filled(world: DeviceWorld, seed: int) -> list[Rank]:
    """The same upper requests on every rank, between lower churn of its own."""
    ranks = [Rank(world, device) for device in range(RANKS)]
    for device, rank in enumerate(ranks):
        chance = random.Random(seed * RANKS + device)
        # Ranks start their pools at different addresses.
        world.allocate(device, GRANULARITY * (1 + chance.randrange(9)))
        rank.churn(chance)
        for size in SIZES:
            rank.take(size)
            rank.churn(chance)
        rank.give(1)
        rank.churn(chance)
        rank.take(SIZES[1])
    return ranks


def clustered(world: DeviceWorld, ranks: list[Rank]) -> Cluster:
    return Cluster(
        world,
        [()] * RANKS,
        buffers=[BufferAllocations(rank.upper) for rank in ranks],
        pool_bases=[rank.source.base for rank in ranks],
    )


@pytest.mark.parametrize("seed", range(5))
def test_offsets_agree_whatever_the_lower_end_does_E28(seed: int) -> None:
    world = DeviceWorld(RANKS, granularity=GRANULARITY)
    ranks = filled(world, seed)
    offsets = [rank.offsets() for rank in ranks]
    assert offsets == [offsets[0]] * RANKS
    assert len({rank.source.base for rank in ranks}) == RANKS
    assert len({tuple(a.size for a in rank.lower) for rank in ranks}) == RANKS
    for rank in ranks:
        assert all(address.opaque % GRANULARITY == 0 for address in rank.upper)
        spans = sorted((a.opaque, a.opaque + a.size) for a in rank.upper + rank.lower)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    c = clustered(world, ranks)
    where = AllocationSlice(2, 64, 1024)

    def body(device: int, stage: Stage) -> None:
        window, _ = stage.memory.find_symmetric(KEY, 2)
        assert window is not None
        assert window.addr() == ranks[device].upper[2]
        ctx = context(stage, KEY, device)
        mine = ranks[device].upper[2].slice(where.offset, where.size)
        for reduce in (all_reduce_multimem, all_reduce_peer):
            ctx.write(mine, np.full(256, device + 1, np.int32))
            ctx.barrier()
            reduce(ctx, where, "i32", "add")
            assert (ctx.read(mine, "i32", 256) == 1 + 2 + 3 + 4).all()
            ctx.barrier()

    ask = ask_for(list(Kind), KEY, range(len(SIZES)))
    for outcome in c.run(ask, body):
        outcome.unwrap()
    for cache in c.caches:
        cache.clear()
    c.table.destroy()
    for rank in ranks:
        rank.close()


def test_another_order_on_one_rank_is_refused_E28() -> None:
    """The check of symmetric offsets names what every rank brought."""
    world = DeviceWorld(RANKS, granularity=GRANULARITY)
    ranks = [Rank(world, device) for device in range(RANKS)]
    for device, rank in enumerate(ranks):
        for size in (4096, 8192) if device != 2 else (8192, 4096):
            rank.take(size)
        if device == 2:
            rank.upper.reverse()
    c = clustered(world, ranks)
    for outcome in c.run(ask_for([Kind.SYMMETRIC], KEY, [0])):
        with pytest.raises(InvalidArgument, match=r"different offsets.*rank 2"):
            outcome.unwrap()


def test_offsets_may_differ_where_they_are_not_required_E28() -> None:
    world = DeviceWorld(2, granularity=GRANULARITY)
    pools = [world.allocate(d, 4 * GRANULARITY, collective=True) for d in range(2)]
    buffers = [
        BufferAllocations([DeviceAddress(p.opaque + d * GRANULARITY, 64)])
        for d, p in enumerate(pools)
    ]
    c = Cluster(world, [()] * 2, buffers=buffers)
    c.pool_bases = [p.opaque for p in pools]
    c.table.require_symmetric_offsets = False
    for outcome in c.run(ask_for([Kind.SYMMETRIC], all_of(2), [0])):
        outcome.unwrap()


def test_a_source_takes_only_its_own_regions_back() -> None:
    source = DeviceSubAllocator(DeviceWorld(1, granularity=GRANULARITY), 0)
    with pytest.raises(UnmappedAddress):
        _ = source.base
    got = source.alloc(256, 8192)
    assert got is not None
    with pytest.raises(UnmappedAddress):
        source.free(got[0], 4096)
    source.free(*got)
    with pytest.raises(UnmappedAddress):
        source.free(*got)
