from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest

from collective_support import (
    GRANULARITY,
    QUICK,
    Cluster,
    all_of,
    ask_for,
    cluster,
    context,
)
from msa.runtime.collective import (
    AcquireParams,
    AllocationSlice,
    BufferAllocations,
    CliqueKey,
    CollectiveMemoryRequests,
    DeviceAddress,
    DeviceWorld,
    Kind,
    Stage,
    execute_stages,
    multimem_ld_reduce,
)
from msa.runtime.collective.kernels import (
    RankContext,
    all_gather_multimem,
    all_gather_peer,
    all_reduce_multimem,
    all_reduce_peer,
    all_to_all_peer,
    broadcast_symmetric,
    reduce_scatter_multimem,
)
from msa.runtime.status import (
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
    OutOfRange,
    RendezvousTimeout,
    Unimplemented,
)

K2 = all_of(4)
ALL = list(Kind)
SLICE = AllocationSlice(0, 64, 16)


def test_every_lookup_form_E9() -> None:
    c = cluster()

    def body(device: int, stage: Stage) -> None:
        ctx = context(stage, K2, device)
        mine = c.buffers[device].address(SLICE)
        ctx.write(mine, np.full(4, device + 1, np.int32))
        ctx.barrier()
        for what in (SLICE, mine):
            window, offset = stage.memory.find_symmetric(K2, what)
            assert window is not None
            assert offset == 64
            base, offset = stage.memory.find_multimem(K2, what)
            assert base is not None
            assert offset == 64
            total = multimem_ld_reduce(
                c.world, base.opaque + offset, 4, "i32", "add", device
            )
            assert total.tolist() == [10] * 4
            for rank in range(4):
                there = window.peer_addr(rank).slice(64, 16)
                assert stage.memory.find_peer(K2, rank, what) == there
                assert ctx.read(there, "i32", 4).tolist() == [rank + 1] * 4
        window, offset = stage.memory.find_symmetric(K2, 0)
        assert window is not None
        assert (window.addr(), offset) == (c.buffers[device].address(0), 0)
        assert stage.memory.find_peer(K2, 3, 1) == c.buffers[3].address(1)
        assert window.multimem_addr().size == 8192

    for o in c.run(ask_for(ALL, K2, [0, 1]), body):
        o.unwrap()
    c.close()


def test_different_bases_same_offsets_E10() -> None:
    world = DeviceWorld(2, granularity=GRANULARITY)
    for _ in range(3):
        world.allocate(1, 5000, collective=True)
    c = Cluster(world, [(8192,), (8192,)])
    bases = [b.address(0).opaque & ((1 << 40) - 1) for b in c.buffers]
    assert bases[0] != bases[1]

    def body(device: int, stage: Stage) -> list[int]:
        ctx = context(stage, all_of(2), device)
        ctx.write(c.buffers[device].address(SLICE), np.full(4, device + 5, np.int32))
        all_reduce_peer(ctx, SLICE, "i32")
        return ctx.read(c.buffers[device].address(SLICE), "i32", 4).tolist()

    out = c.run(ask_for(ALL, all_of(2), [0]), body)
    assert [o.unwrap() for o in out] == [[11] * 4] * 2


def test_not_found_is_a_value_E11() -> None:
    c = cluster()
    other = CliqueKey.local(0, 1, 2, 3, communication_id=7)

    def body(_: int, stage: Stage) -> None:
        m = stage.memory
        outside = DeviceAddress(77, 4)
        for clique, what in ((other, 0), (K2, 1), (K2, outside), (K2, 99)):
            assert m.find_symmetric(clique, what) == (None, 0)
            assert m.find_multimem(clique, what) == (None, 0)
            assert m.find_peer(clique, 0, what) is None
        assert m.find_symmetric(other, SLICE) == (None, 0)
        assert m.find_peer(K2, 9, 0) is None
        with pytest.raises(OutOfRange):
            m.find_peer(K2, 1, AllocationSlice(0, 8190, 16))

    for o in c.run(ask_for(ALL, K2, [0]), body):
        o.unwrap()
    c.close()


def test_two_processes_E12() -> None:
    world = DeviceWorld(4, granularity=GRANULARITY, processes=(0, 0, 1, 1))
    spanning = CliqueKey((0, 1, 2, 3), 2)
    for kind in (Kind.MULTICAST, Kind.PEER):
        c = Cluster(world, [(8192,)] * 4)
        for o in c.run(ask_for([kind], spanning, [0])):
            with pytest.raises(Unimplemented, match="multi-process"):
                o.unwrap()
    c = Cluster(world, [(8192,)] * 4)

    def body(device: int, stage: Stage) -> None:
        window, _ = stage.memory.find_symmetric(spanning, 0)
        assert window is not None
        window.peer_addr(device ^ 1)
        with pytest.raises(FailedPrecondition):
            window.peer_addr(device ^ 2)
        with pytest.raises(Unimplemented):
            window.multimem_addr()

    for o in c.run(ask_for([Kind.SYMMETRIC], spanning, [0]), body):
        o.unwrap()


@pytest.mark.parametrize("kind", ALL, ids=lambda k: f"E13-{k.value}")
def test_a_missing_rank_is_named(kind: Kind) -> None:
    c = cluster(timeouts=QUICK)

    def ask(device: int, requests: CollectiveMemoryRequests) -> None:
        if device == 2:
            raise RuntimeError("left early")
        requests.request(kind, K2, 0)

    begin = time.monotonic()
    out = c.run(ask)
    assert time.monotonic() - begin < 5
    assert isinstance(out[2].error, RuntimeError)
    for device in (0, 1, 3):
        error = out[device].error
        assert isinstance(error, RendezvousTimeout)
        assert "rank 2" in error.missing_names
        assert not error.everyone_arrived


@pytest.mark.parametrize("kind", ALL, ids=lambda k: f"E14-{k.value}")
def test_sizes_must_agree(kind: Kind) -> None:
    world = DeviceWorld(2, granularity=GRANULARITY)
    c = Cluster(world, [(4096,), (8192,)])
    out = c.run(ask_for([kind], all_of(2), [0]))
    if kind is Kind.PEER:
        assert all(o.error is None for o in out)
        return
    for o in out:
        with pytest.raises(InvalidArgument, match="rank 0: 4096, rank 1: 8192"):
            o.unwrap()


@pytest.mark.parametrize("kind", ALL, ids=lambda k: f"E15-{k.value}")
def test_index_sets_must_agree(kind: Kind) -> None:
    c = cluster(2, sizes=(4096, 4096))

    def ask(device: int, requests: CollectiveMemoryRequests) -> None:
        requests.request(kind, all_of(2), 0)
        if device == 1:
            requests.request(kind, all_of(2), 1)

    for o in c.run(ask):
        with pytest.raises(InvalidArgument, match=r"\[1\]"):
            o.unwrap()


def test_unknown_index_fails_on_every_rank_A10() -> None:
    for kind in ALL:
        c = cluster(2, sizes=(4096,))
        for o in c.run(ask_for([kind], all_of(2), [7])):
            assert isinstance(o.error, IndexError)


def test_random_arrival_orders_never_deadlock_E16() -> None:
    cliques = [CliqueKey.local(0, 1), CliqueKey.local(2, 3), K2]
    c = cluster(sizes=(4096,))
    for run in range(100):

        def ask(
            device: int, requests: CollectiveMemoryRequests, run: int = run
        ) -> None:
            rng = random.Random(run * 10 + device)
            for clique in cliques:
                if rng.random() < 0.2:
                    time.sleep(rng.random() * 0.003)
                if clique.rank(device) is not None:
                    requests.request(ALL[run % 3], clique, 0)

        out = [o.unwrap() for o in c.run(ask, run_id=run)]
        orders = [[key for _, key, _ in stage.trace.events] for stage in out]
        assert orders[0] == orders[1] == [K2, cliques[0]]
        assert orders[2] == orders[3] == [K2, cliques[1]]
    c.close()


def test_second_execution_hits_the_cache_E17_E18() -> None:
    c = cluster()
    ask = ask_for([Kind.SYMMETRIC, Kind.MULTICAST], K2, [0, 1])
    first = [o.unwrap().trace.registrations for o in c.run(ask, run_id=1)]
    assert first == [4] * 4
    second = [o.unwrap().trace.registrations for o in c.run(ask, run_id=2)]
    assert second == [0] * 4
    assert [cache.stats.hits for cache in c.caches] == [4, 2, 2, 2]
    c.table.destroy()
    third = [o.unwrap().trace.registrations for o in c.run(ask, run_id=3)]
    assert third == [4] * 4
    assert c.caches[1].stats.expired == 2
    c.close()


def test_cliques_do_not_share_cached_windows_E17() -> None:
    c = cluster()
    pairs = {0: CliqueKey.local(0, 1), 1: CliqueKey.local(0, 1)}
    pairs |= {2: CliqueKey.local(2, 3), 3: CliqueKey.local(2, 3)}

    def ask(device: int, requests: CollectiveMemoryRequests) -> None:
        for clique in (K2, pairs[device]):
            requests.request(Kind.SYMMETRIC, clique, 0)

    def body(device: int, stage: Stage) -> list[int]:
        windows = [
            stage.memory.find_symmetric(clique, 0)[0] for clique in (K2, pairs[device])
        ]
        return [0 if w is None else len(w.window.bases) for w in windows]

    for run in (1, 2):
        out = [o.unwrap() for o in c.run(ask, body, run_id=run)]
        assert out == [[4, 2]] * 4
    c.close()


def test_ranks_that_disagree_about_hits_E19() -> None:
    c = cluster()
    ask = ask_for([Kind.SYMMETRIC], K2, [0, 1])
    for o in c.run(ask, run_id=1):
        o.unwrap()
    c.caches[1].clear()
    for o in c.run(ask, run_id=2):
        assert o.unwrap().trace.registrations == 2
    assert [cache.stats.inconsistent for cache in c.caches] == [2] * 4
    c.close()

    c = cluster(timeouts=QUICK, consistency="trust")
    for o in c.run(ask, run_id=1):
        o.unwrap()
    c.caches[1].clear()
    out = c.run(ask, run_id=2)
    assert isinstance(out[1].error, RendezvousTimeout)


def _pool_cluster(gap: int, shift: int, coalesce: str) -> Cluster:
    """Three allocations cut from one pool on each rank."""
    world = DeviceWorld(2, granularity=GRANULARITY)
    vectors = []
    for device in range(2):
        pool = world.allocate(device, 8 * GRANULARITY, collective=True)
        at, addresses = pool.opaque, []
        for place in range(3):
            addresses.append(DeviceAddress(at, GRANULARITY))
            step = gap if place == 0 else 0
            at += GRANULARITY + step + (shift if device == 1 and place == 1 else 0)
        vectors.append(BufferAllocations(addresses))
    return Cluster(world, [()] * 2, coalesce=coalesce, buffers=vectors)


@pytest.mark.parametrize(
    ("gap", "shift", "coalesce", "registrations", "fallbacks"),
    [
        (0, 0, "adjacent", 1, 0),
        (0, 0, "none", 3, 0),
        (GRANULARITY, 0, "adjacent", 2, 0),
        (GRANULARITY, 0, "span", 1, 0),
        (GRANULARITY, GRANULARITY, "span", 3, 1),
    ],
    ids=["E20", "E20-none", "E20-gap", "E21-span", "E21"],
)
@pytest.mark.parametrize("kind", [Kind.SYMMETRIC, Kind.MULTICAST])
def test_merging(
    gap: int, shift: int, coalesce: str, registrations: int, fallbacks: int, kind: Kind
) -> None:
    c = _pool_cluster(gap, shift, coalesce)
    key = all_of(2)

    def body(device: int, stage: Stage) -> tuple[int, int]:
        ctx = context(stage, key, device)
        for index in range(3):
            mine = c.buffers[device].address(index)
            ctx.write(mine, np.full(4, 10 * index + device, np.int32))
        ctx.barrier()
        for index in range(3):
            if kind is Kind.SYMMETRIC:
                window, offset = stage.memory.find_symmetric(key, index)
                assert window is not None
                for rank in range(2):
                    there = window.peer_addr(rank).slice(offset, 16)
                    assert ctx.read(there, "i32", 4).tolist() == [10 * index + rank] * 4
            else:
                base, offset = stage.memory.find_multimem(key, index)
                assert base is not None
                total = multimem_ld_reduce(
                    c.world, base.opaque + offset, 4, "i32", "add", device
                )
                assert total.tolist() == [20 * index + 1] * 4
        ctx.barrier()
        return stage.trace.registrations, stage.trace.layout_fallbacks

    out = c.run(ask_for([kind], key, [0, 1, 2]), body)
    assert [o.unwrap() for o in out] == [(registrations, fallbacks)] * 2


def test_a_smaller_request_hits_inside_a_cached_run() -> None:
    c = _pool_cluster(0, 0, "adjacent")
    key = all_of(2)
    for o in c.run(ask_for([Kind.SYMMETRIC], key, [0, 1, 2]), run_id=1):
        o.unwrap()

    def body(_: int, stage: Stage) -> tuple[int, int]:
        return stage.trace.registrations, stage.memory.find_symmetric(key, 2)[1]

    out = c.run(ask_for([Kind.SYMMETRIC], key, [2]), body, run_id=2)
    assert [o.unwrap() for o in out] == [(0, 2 * GRANULARITY)] * 2


@pytest.mark.parametrize("dtype", ["f32", "i32", "f16"])
@pytest.mark.parametrize("count", [1, 7, 1024])
def test_all_reduce_E25(dtype: str, count: int) -> None:
    c = cluster()
    kind = {"f32": np.float32, "i32": np.int32, "f16": np.float16}[dtype]
    where = AllocationSlice(1, 128, count * np.dtype(kind).itemsize)
    rng = np.random.default_rng(count)
    data = [rng.integers(-20, 20, count).astype(kind) for _ in range(4)]
    wide = np.float32 if dtype == "f16" else kind
    expected = sum(d.astype(wide) for d in data).astype(kind)

    def body(device: int, stage: Stage) -> None:
        ctx = context(stage, K2, device)
        mine = c.buffers[device].address(where)
        for reduce in (all_reduce_multimem, all_reduce_peer):
            ctx.write(mine, data[device])
            reduce(ctx, where, dtype)
            assert ctx.read(mine, dtype, count).tolist() == expected.tolist()
            ctx.barrier()

    for o in c.run(ask_for(ALL, K2, [1]), body):
        o.unwrap()
    c.close()


class SlowReader(RankContext):
    """A rank that takes its time over every read."""

    def read(self, address: DeviceAddress, dtype: str, count: int) -> Any:
        time.sleep(0.01)
        return super().read(address, dtype, count)


def test_no_rank_writes_before_all_have_read_E25() -> None:
    c = cluster()

    def body(device: int, stage: Stage) -> None:
        ctx = context(stage, K2, device)
        if device == 3:
            ctx = SlowReader(ctx.clique, ctx.rank, ctx.memory)
        mine = c.buffers[device].address(SLICE)
        ctx.write(mine, np.full(4, 10**device, np.int32))
        all_reduce_peer(ctx, SLICE, "i32")
        assert ctx.read(mine, "i32", 4).tolist() == [1111] * 4
        ctx.barrier()

    for o in c.run(ask_for(ALL, K2, [0]), body):
        o.unwrap()
    c.close()


def test_the_other_collectives() -> None:
    c = cluster()
    where = AllocationSlice(0, 64, 64)
    data = np.arange(64, dtype=np.int32).reshape(4, 16)

    def body(device: int, stage: Stage) -> None:
        ctx = context(stage, K2, device)
        mine = c.buffers[device].address(where)
        for gather in (all_gather_multimem, all_gather_peer):
            ctx.write(mine, np.zeros(16, np.int32))
            gather(ctx, where, data[device][:4], "i32")
            assert ctx.read(mine, "i32", 16).tolist() == data[:, :4].ravel().tolist()
            ctx.barrier()
        ctx.write(mine, data[device])
        part = reduce_scatter_multimem(ctx, where, "i32")
        assert part.tolist() == data.sum(0)[device * 4 : device * 4 + 4].tolist()
        all_to_all_peer(ctx, where, "i32")
        expected = data.reshape(4, 4, 4)[:, device].ravel()
        assert ctx.read(mine, "i32", 16).tolist() == expected.tolist()
        ctx.barrier()
        ctx.write(mine, data[device])
        broadcast_symmetric(ctx, where, root=2)
        assert ctx.read(mine, "i32", 16).tolist() == data[2].tolist()
        ctx.barrier()
        with pytest.raises(InvalidArgument):
            reduce_scatter_multimem(ctx, AllocationSlice(0, 0, 12), "i32")

    for o in c.run(ask_for(ALL, K2, [0]), body):
        o.unwrap()
    c.close()


def test_nothing_requested_E26() -> None:
    c = cluster()
    out = c.run(lambda *_: None, devices=[0])
    assert out[0].unwrap().trace.events == []
    assert c.table.table.records == []
    # Nor does anybody wait for the other devices of the world.
    alone = execute_stages(
        cluster(timeouts=QUICK).table,
        AcquireParams(c.world, device=0),
        CollectiveMemoryRequests(c.buffers[0]),
        lambda stage: stage.trace.events,
    )
    assert alone == []


def test_a_stranger_is_refused() -> None:
    c = cluster()
    out = c.run(ask_for([Kind.PEER], CliqueKey.local(0, 1), [0]), devices=[3])
    assert isinstance(out[0].error, InternalStatus)


def test_put_is_bounds_checked() -> None:
    c = cluster(2)
    key = all_of(2)

    def body(device: int, stage: Stage) -> None:
        window, _ = stage.memory.find_symmetric(key, 0)
        assert window is not None
        with pytest.raises(OutOfRange):
            window.put(window.addr(), 8000, 4096, 1 - device)
        with pytest.raises(InvalidArgument):
            window.peer_addr(5)

    for o in c.run(ask_for([Kind.SYMMETRIC], key, [0]), body):
        o.unwrap()


def test_symmetric_windows_of_four_ranks_C11() -> None:
    """Buffers of 300 B and 5000 B at granularity 4096."""
    c = cluster(4, sizes=(300, 5000))

    def body(device: int, stage: Stage) -> list[int]:
        places = []
        for index in (0, 1):
            window, _ = stage.memory.find_symmetric(K2, index)
            assert window is not None
            places.append(window.addr().opaque - ((device + 1) << 40))
        return places

    places = [o.unwrap() for o in c.run(ask_for([Kind.SYMMETRIC], K2, [0, 1]), body)]
    assert all(p % GRANULARITY == 0 for row in places for p in row)
    assert places.count(places[0]) == 4
    c.close()


def test_misaligned_or_unequal_windows_name_the_rank_C11() -> None:
    world = DeviceWorld(4, granularity=GRANULARITY)
    pools = [world.allocate(d, 4 * GRANULARITY, collective=True) for d in range(4)]
    shifted = [
        BufferAllocations([DeviceAddress(p.opaque + (32 if d == 3 else 0), 300)])
        for d, p in enumerate(pools)
    ]
    c = Cluster(world, [()] * 4, buffers=shifted)
    for o in c.run(ask_for([Kind.MULTICAST], K2, [0])):
        with pytest.raises(InternalStatus, match="device 3"):
            o.unwrap()
