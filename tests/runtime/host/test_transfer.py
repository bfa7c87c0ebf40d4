from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.hlo.layout import Layout
from msa.hlo.shape import Shape
from msa.runtime.collective import DeviceAddress, DeviceWorld
from msa.runtime.host import (
    AllocatorConfig,
    AsyncTransferManager,
    HostMemoryPool,
    HostValuePool,
    LeakError,
    MemoryKind,
    MemoryRange,
    MemorySpace,
    MultiDeviceAllocator,
    ScratchPool,
    ShapedBuffer,
    SimEvent,
    Simulation,
    TransferManager,
    TransferModel,
    TransferQueue,
    build_allocators,
)
from msa.runtime.host.transfer import StagingBuffer, pack_sub_byte, unpack_sub_byte
from msa.runtime.status import (
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
    NotFound,
    OutOfRange,
    ResourceExhausted,
    Unimplemented,
)

F32 = Shape.array("f32", (2, 3))


@pytest.fixture
def world() -> DeviceWorld:
    return DeviceWorld(2, granularity=4096)


@pytest.fixture
def manager(world: DeviceWorld) -> TransferManager:
    return TransferManager(world, HostMemoryPool(1 << 20), staging_bytes=1024)


# -- literals ----------------------------------------------------------------------


def test_tuple_there_and_back_G1(world: DeviceWorld, manager: TransferManager) -> None:
    shape = Shape.tuple_of(F32, Shape.array("s32", (4,)))
    literal = (
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array([5, 6, 7, 8], np.int32),
    )
    buffer = ShapedBuffer.allocate(world, 0, shape)
    stream = Simulation().stream(0)
    manager.transfer_to_device(stream, literal, buffer)
    stream.block_until_done()
    table = world.read(buffer.addresses[()], np.uint64, 2, 0)
    assert table.tolist() == [buffer.addresses[(i,)].opaque for i in (0, 1)]
    back = manager.transfer_from_device(stream, buffer)
    for a, b in zip(back, literal, strict=True):
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("kind", ["s4", "u4", "s2", "u2", "s1", "u1"])
def test_sub_byte_types_are_packed_G2(
    world: DeviceWorld, manager: TransferManager, kind: str
) -> None:  # fmt: skip
    bits = int(kind[1:])
    shape = Shape.array(kind, (5,))
    low = -(1 << (bits - 1)) if kind[0] == "s" else 0
    values = np.array([(low + i) % (1 << bits) + 2 * low * 0 for i in range(5)])
    values = np.array(
        [v - (1 << bits) if kind[0] == "s" and v >= 1 << (bits - 1) else v
         for v in values]
    ).astype(np.int8 if kind[0] == "s" else np.uint8)  # fmt: skip
    buffer = ShapedBuffer.allocate(world, 0, shape)
    assert buffer.addresses[()].size == -(-5 * bits // 8)
    stream = Simulation().stream(0)
    manager.transfer_to_device(stream, values, buffer)
    assert manager.transfer_from_device(stream, buffer).tolist() == values.tolist()


def test_element_zero_is_lowest() -> None:
    packed = pack_sub_byte(np.array([1, 2, 3, 4, 5]), 4)
    assert packed.tolist() == [0x21, 0x43, 0x05]
    assert unpack_sub_byte(packed, 4, 5, signed=True).tolist() == [1, 2, 3, 4, 5]


@given(st.sampled_from([1, 2, 4]), st.lists(st.integers(0, 255), max_size=40))
def test_packing_round_trips(bits: int, raw: list[int]) -> None:
    values = np.array([v % (1 << bits) for v in raw], np.uint8)
    packed = pack_sub_byte(values, bits)
    assert len(packed) == -(-len(values) * bits // 8)
    assert unpack_sub_byte(packed, bits, len(values), signed=False).tolist() == (
        values.tolist()
    )


def test_the_device_has_its_own_layout_G3(
    world: DeviceWorld, manager: TransferManager
) -> None:  # fmt: skip
    shape = Shape.array("f32", (2, 3), Layout((0, 1)))
    literal = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer = ShapedBuffer.allocate(world, 0, shape)
    stream = Simulation().stream(0)
    manager.transfer_to_device(stream, literal, buffer)
    stream.block_until_done()
    raw = world.read(buffer.addresses[()], np.float32, 6, 0)
    assert raw.tolist() == [0, 3, 1, 4, 2, 5]
    assert manager.transfer_from_device(stream, buffer).tolist() == literal.tolist()


def test_too_small_destination_G4(world: DeviceWorld, manager: TransferManager) -> None:
    small = ShapedBuffer(0, F32, {(): world.allocate(0, 20)})
    with pytest.raises(FailedPrecondition, match="24 bytes.*20 bytes"):
        manager.transfer_to_device(
            Simulation().stream(0), np.zeros((2, 3), np.float32), small
        )
    stream = Simulation().stream(0)
    with pytest.raises(FailedPrecondition, match="16 bytes from 8 to 32"):
        stream.memcpy("h2d", np.zeros(8, np.uint8), np.zeros(32, np.uint8), 16)


def test_wrong_shapes_and_devices(world: DeviceWorld, manager: TransferManager) -> None:
    buffer = ShapedBuffer.allocate(world, 0, F32)
    stream = Simulation().stream(0)
    with pytest.raises(InternalStatus, match="shape"):
        manager.transfer_to_device(stream, np.zeros((3, 2), np.float32), buffer)
    with pytest.raises(InternalStatus, match="float64"):
        manager.transfer_to_device(stream, np.zeros((2, 3)), buffer)
    with pytest.raises(InternalStatus, match="device 1"):
        manager.transfer_to_device(
            Simulation().stream(1), np.zeros((2, 3), np.float32), buffer
        )
    with pytest.raises(Unimplemented):
        manager.infeed()
    dynamic = Shape(Shape.array("s4", ()).element_type, (4,), (True,), Layout((0,)))
    buffer = ShapedBuffer.allocate(world, 0, dynamic)
    with pytest.raises(Unimplemented, match="sub-byte"):
        manager.transfer_to_device(stream, np.zeros(4, np.int8), buffer)


# -- staging ---------------------------------------------------------------------------


def test_staged_chunks(world: DeviceWorld, manager: TransferManager) -> None:
    block = world.allocate(0, 2500)
    stream = Simulation().stream(0)
    data = np.random.default_rng(0).integers(0, 256, 2500).astype(np.uint8)
    assert manager.copy_to_device(stream, data, block) == 3
    back = np.zeros(2500, np.uint8)
    assert manager.copy_from_device(stream, block, back) == 3
    stream.block_until_done()
    assert back.tolist() == data.tolist()
    sizes = [size for _, size in manager._chunks(2500)]
    assert sizes == [1024, 1024, 452]
    assert manager.copy_to_device(stream, data[:0], block) == 0


def test_two_streams_share_one_staging_buffer_G5(
    world: DeviceWorld, manager: TransferManager
) -> None:  # fmt: skip
    simulation = Simulation()
    first, second = simulation.stream(0), simulation.stream(0)
    blocks = [world.allocate(0, 3000) for _ in range(2)]
    rng = np.random.default_rng(1)
    data = [rng.integers(0, 256, 3000).astype(np.uint8) for _ in range(2)]
    for stream, block, values in zip((first, second), blocks, data, strict=True):
        manager.copy_to_device(stream, values, block)
    second.block_until_done()
    assert first.pending == 0, "the second waits for the first's event"
    for block, values in zip(blocks, data, strict=True):
        got = world.read(block, np.uint8, 3000, 0)
        assert got.tolist() == values.tolist()


def test_done_callbacks_G6(world: DeviceWorld, manager: TransferManager) -> None:
    buffer = ShapedBuffer.allocate(world, 0, F32)
    stream = Simulation().stream(0)
    manager.transfer_to_device(stream, np.ones((2, 3), np.float32), buffer)
    calls: list[object] = []
    manager.transfer_from_device(stream, buffer, calls.append, callback_is_safe=True)
    assert calls == []
    stream.block_until_done()
    assert calls == [None]
    manager.transfer_from_device(stream, buffer, calls.append)
    assert calls == [None, None]

    def fail() -> None:
        raise InternalStatus("broken")

    stream.kernel(fail, 1e-6)
    manager.transfer_from_device(stream, buffer, calls.append)
    assert isinstance(calls[2], InternalStatus)


# -- asynchronous manager ----------------------------------------------------------------


def test_pieces_in_any_order_G7(world: DeviceWorld) -> None:
    stream = Simulation().stream(0)
    m = AsyncTransferManager(world, stream, [Shape.array("u8", (12,))])
    order: list[str] = []
    m.buffer(0).defined.on_ready(lambda _: order.append("defined"))
    data = np.arange(12, dtype=np.uint8)
    m.transfer_sub(0, data[8:], 8, 4, is_last=False)
    m.transfer_sub(0, data[:4], 0, 4, is_last=False)
    m.transfer_sub(
        0, data[4:8], 4, 4, is_last=True, on_done=lambda: order.append("done")
    )
    assert order == []
    stream.block_until_done()
    assert order == ["done", "defined"]
    address = m.buffer(0).address
    assert address is not None
    assert world.read(address, np.uint8, 12, 0).tolist() == data.tolist()


def test_memory_is_allocated_with_the_first_data_G8(world: DeviceWorld) -> None:
    stream = Simulation().stream(0)
    m = AsyncTransferManager(world, stream, [F32, F32])
    assert world.live_allocations == []
    assert m.buffer_size(1) == 24
    m.transfer_literal(0, np.zeros((2, 3), np.float32))
    assert len(world.live_allocations) == 1
    assert m.buffer(0).allocated.ready
    assert not m.buffer(1).allocated.ready


def test_nothing_after_the_last_piece_G9(world: DeviceWorld) -> None:
    m = AsyncTransferManager(world, Simulation().stream(0), [F32, F32])
    literal = np.zeros((2, 3), np.float32)
    m.transfer_literal(0, literal)
    with pytest.raises(InvalidArgument):
        m.transfer_literal(0, literal)
    with pytest.raises(InvalidArgument):
        m.set_buffer_error(0, RuntimeError())
    m.set_buffer_error(1, RuntimeError("gone"))
    with pytest.raises(InvalidArgument):
        m.transfer_sub(1, np.zeros(1, np.uint8), 0, 1, is_last=False)
    assert isinstance(m.buffer(1).defined.error, RuntimeError)
    assert m.retrieve(0) is not None
    assert m.retrieve(0) is None
    with pytest.raises(InvalidArgument):
        m.retrieve(7)


def test_closing_early_G10(world: DeviceWorld) -> None:
    stream = Simulation().stream(0)
    m = AsyncTransferManager(world, stream, [F32, F32, F32])
    m.transfer_literal(0, np.zeros((2, 3), np.float32))
    m.transfer_sub(1, np.zeros(24, np.uint8), 0, 8, is_last=False)
    m.add_metadata({"who": "test"})
    assert m.close() == [1, 2]
    assert m.buffer(0).defined.error is None
    assert isinstance(m.buffer(2).defined.error, InternalStatus)
    assert "deleted before" in str(m.buffer(1).defined.error)
    assert m.buffer(1).defined.metadata == {"who": "test"}
    assert stream.pending == 0
    assert m.close() == []


def test_a_failing_copy_G11(world: DeviceWorld) -> None:
    stream = Simulation().stream(0)
    m = AsyncTransferManager(world, stream, [F32, F32])
    m.transfer_sub(0, np.zeros(24, np.uint8), 0, 8, is_last=False)
    m.fail_transfer(0, InternalStatus("dma error"))
    assert isinstance(m.buffer(0).defined.error, InternalStatus)
    m.transfer_literal(1, np.ones((2, 3), np.float32))
    stream.block_until_done()
    assert m.buffer(1).defined.ready
    assert m.buffer(1).defined.error is None


def test_manager_arguments(world: DeviceWorld) -> None:
    stream = Simulation().stream(0)
    with pytest.raises(InvalidArgument, match="layouts"):
        AsyncTransferManager(world, stream, [F32], [None, None])
    with pytest.raises(Unimplemented):
        AsyncTransferManager(world, stream, [Shape.tuple_of(F32)])
    m = AsyncTransferManager(world, stream, [F32], [Layout((0, 1))])
    m.transfer_literal(0, np.arange(6, dtype=np.float32).reshape(2, 3))
    stream.block_until_done()
    address = m.buffer(0).address
    assert address is not None
    assert world.read(address, np.float32, 6, 0).tolist() == [0, 3, 1, 4, 2, 5]
    n = AsyncTransferManager(world, stream, [F32])
    with pytest.raises(OutOfRange):
        n.transfer_sub(0, np.zeros(8, np.uint8), 20, 8, is_last=False)


# -- pools --------------------------------------------------------------------------------


def test_128_values_G12() -> None:
    pool = HostValuePool("int32")
    held = [pool.acquire() for _ in range(128)]
    with pytest.raises(ResourceExhausted, match=r"128.*concurrency"):
        pool.acquire()
    held[5].release()
    held[5].release()
    held[3].release()
    assert pool.acquire()._slot == 5
    assert pool.acquire()._slot == 3
    held[0].set(9)
    assert held[0].get("int32") == 9
    with pytest.raises(InvalidArgument):
        held[0].get("float32")
    held[0].assign(held[1])
    with pytest.raises(FailedPrecondition):
        held[1].get()
    assert len(pool.close()) == 127
    assert "test_transfer.py" in pool.close()[0]


def test_host_buffers_name_their_place_after_release() -> None:
    pool = HostMemoryPool(1 << 16)
    buffer = pool.allocate(100)
    buffer.data[:] = 3
    assert buffer.address % 64 == 0
    buffer.release()
    buffer.release()
    with pytest.raises(FailedPrecondition, match=r"test_transfer.py:\d+"):
        _ = buffer.data
    kept = pool.allocate(10)
    with pytest.raises(ResourceExhausted, match="largest free block"):
        pool.allocate(1 << 17)
    with pytest.raises(LeakError, match="test_transfer.py"):
        pool.close()
    assert kept.size == 10
    with pool.allocate(0) as nothing:
        assert nothing.size == 0
    with pytest.raises(InvalidArgument):
        pool.allocate(-1)


def test_map_hooks() -> None:
    seen: list[tuple[str, int]] = []
    pool = HostMemoryPool(
        1 << 16,
        on_map=lambda _, size: seen.append(("map", size)),
        on_unmap=lambda _, size: seen.append(("unmap", size)),
    )
    with pool.allocate(100):
        pass
    assert seen == [("map", 100), ("unmap", 100)]


def test_scratch_falls_back_to_unpinned() -> None:
    pool = ScratchPool()
    held = [pool.acquire(8) for _ in range(1024)]
    assert all(b.pinned for b in held)
    assert not pool.acquire(8).pinned
    assert not pool.acquire(129).pinned
    last = held.pop()
    address = last.address
    last.release()
    assert pool.acquire(1).address == address
    assert pool.outstanding == 1024


def test_memory_spaces() -> None:
    a = MemorySpace(3, 0, MemoryKind.PINNED_HOST)
    b = MemorySpace(4, 0, MemoryKind.UNPINNED_HOST)
    assert str(a) == "PINNED_HOST_3"
    assert a.kind_id != b.kind_id
    assert a.kind_id < 1 << 32


def test_wiring() -> None:
    total = 64 << 20
    config = AllocatorConfig(
        total, preallocate=True, spatial_partitioning=True, granularity=4096
    )
    by_color = build_allocators(0, config)
    assert sorted(by_color) == [0, 1, 5]
    router = MultiDeviceAllocator({0: by_color})
    low = router.allocate(0, 100)
    high = router.allocate(0, 100, color=1)
    assert high.opaque % 4096 == 0
    assert high.opaque > low.opaque
    assert router.allocate(0, 0).is_null
    with pytest.raises(NotFound):
        router.allocate(1, 100)
    with pytest.raises(NotFound):
        router.allocate(0, 100, color=2)
    router.deallocate(0, high, color=1)
    router.deallocate(0, low)
    assert by_color[0].pool.stats().bytes_in_use == 0
    with pytest.raises(InvalidArgument):
        build_allocators(0, AllocatorConfig(total, spatial_partitioning=True))
    separate = build_allocators(0, AllocatorConfig(total, temp_coloring=True))
    assert sorted(separate) == [0, 1, 2, 5]
    assert separate[1].pool.limit == total // 4
    assert separate[5].pool.limit == 64 << 30
    assert by_color[5].pool.limit == 16 << 30


# -- streams ----------------------------------------------------------------------------------


def test_copy_duration() -> None:
    model = TransferModel(latency=10e-6, pinned_bandwidth=25e9)
    assert model.seconds("h2d", 10**9) == pytest.approx(40.010e-3)
    assert model.seconds("h2d", 0) == 10e-6


def test_events_order_streams() -> None:
    simulation = Simulation()
    a, b = simulation.stream(0), simulation.stream(1)
    event, order = SimEvent(), []
    b.wait(event)  # never recorded: complete
    a.kernel(lambda: order.append("a"), 5.0)
    a.record(event)
    b.wait(event)
    b.kernel(lambda: order.append("b"), 1.0)
    assert b.block_until_done() == pytest.approx(6.0)
    assert order == ["a", "b"]


def test_engines_serve_one_at_a_time() -> None:
    simulation = Simulation()
    for _ in range(3):
        simulation.stream(0).kernel(lambda: None, 2.0)
    simulation.stream(1).kernel(lambda: None, 2.0)
    assert simulation.run() == pytest.approx(6.0)
    assert simulation.counters[0, "compute"].busy_seconds == pytest.approx(6.0)


def test_data_moves_at_completion() -> None:
    stream = Simulation().stream(0)
    source, target = np.zeros(4, np.uint8), np.zeros(4, np.uint8)
    stream.memcpy("h2d", source, target, 4)
    source[:] = 9  # too early to reuse the source
    stream.block_until_done()
    assert target.tolist() == [9] * 4


def test_a_broken_stream_skips_the_rest() -> None:
    stream = Simulation().stream(0)
    event, order = SimEvent(), []

    def fail() -> None:
        raise InternalStatus("kernel failed")

    stream.kernel(fail, 1.0)
    stream.kernel(lambda: order.append(1), 1.0)
    stream.record(event)
    with pytest.raises(InternalStatus, match="kernel failed"):
        stream.block_until_done()
    assert order == []
    assert not stream.ok
    assert event.done


def test_host_callbacks_may_not_use_devices() -> None:
    simulation = Simulation()
    stream, other = simulation.stream(0), simulation.stream(0)
    stream.host_callback(lambda: other.memset(np.zeros(1, np.uint8), 1))
    with pytest.raises(FailedPrecondition, match="callback"):
        stream.block_until_done()


def test_a_wait_that_nothing_completes_is_reported() -> None:
    simulation = Simulation()
    a, b = simulation.stream(0), simulation.stream(0)
    event = SimEvent()
    never = SimEvent()
    a.wait(never)
    a.record(event)
    a.block_until_done()
    c, first, second = simulation.stream(0), SimEvent(), SimEvent()
    second._latest = first._latest
    b.record(first)
    c.wait(first)
    c.block_until_done()
    from msa.runtime.host.streams import _Record

    second._latest = _Record()
    c.wait(second)
    with pytest.raises(FailedPrecondition, match="nothing completes"):
        c.block_until_done()


def test_pageable_copies_keep_the_caller_waiting() -> None:
    simulation = Simulation(TransferModel(latency=0.0, pageable_bandwidth=1.0))
    stream = simulation.stream(0)
    stream.memcpy("h2d", np.zeros(4, np.uint8), np.zeros(4, np.uint8), 4, pinned=False)
    assert simulation.now == pytest.approx(4.0)


def test_a_shared_bus_halves() -> None:
    model = TransferModel(
        latency=0, pinned_bandwidth=10.0, bus_bandwidth=10.0, share_bus=True
    )
    simulation = Simulation(model)
    for kind in ("h2d", "d2h"):
        data = np.zeros(10, np.uint8)
        simulation.stream(0).memcpy(kind, data, data.copy(), 10)  # type: ignore[arg-type]
    assert simulation.run() == pytest.approx(2.0)


# -- queue ---------------------------------------------------------------------------------------


def span(address: int, size: int, value: int = 0) -> MemoryRange:
    return MemoryRange(address, np.full(size, value, np.uint8))


def test_hazards_keep_order_G13() -> None:
    simulation = Simulation()
    queue = TransferQueue(simulation)
    device = span(1000, 16)
    first = queue.h2d(span(0, 16, 1), device)
    back = queue.d2h(device, out := span(5000, 16), priority=9)
    apart = queue.d2h(span(2000, 16, 3), span(6000, 16), priority=0)
    over = queue.h2d(span(100, 16, 2), device, priority=9)
    queue.drain()
    assert first.end <= back.start
    assert back.end <= over.start
    assert apart.start < first.end, "disjoint requests overlap in time"
    assert out.data.tolist() == [1] * 16
    assert device.data.tolist() == [2] * 16


def test_priorities_among_disjoint_requests() -> None:
    queue = TransferQueue(Simulation())
    a, b, c = (
        queue.h2d(span(i * 100, 8, i), span(10_000 + i * 100, 8), priority=p)
        for i, p in enumerate((0, 0, 5))
    )
    queue.drain()
    assert a.start < c.start < b.start
    stats = queue.statistics()
    assert (stats.bytes, stats.pinned) == (24, 3)
    assert stats.delay_p95 > stats.delay_p50 > 0


def test_cancel_and_lost_transfers() -> None:
    queue = TransferQueue(Simulation())
    running = queue.h2d(span(0, 8), span(1000, 8))
    waiting = queue.h2d(span(100, 8), span(1100, 8))
    assert not queue.cancel(running)
    lost = queue.close()
    assert len(lost) == 2
    assert "test_transfer.py" in lost[0]
    assert queue.cancel(waiting)
    with pytest.raises(FailedPrecondition):
        waiting.result()
    running.result()
    assert queue.close() == []


def test_overlap_with_compute() -> None:
    simulation = Simulation(TransferModel(latency=0.0, pinned_bandwidth=1.0))
    queue = TransferQueue(simulation)
    assert queue.overlap() == 1.0
    simulation.stream(0).kernel(lambda: None, 6.0)
    queue.h2d(span(0, 8), span(100, 8))
    queue.drain()
    simulation.run()
    assert queue.overlap() == pytest.approx(6 / 8)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)),
                max_size=15))  # fmt: skip
def test_any_order_gives_the_sequential_result(
    requests: list[tuple[int, int, int]],
) -> None:
    """Blocks copied around by a queue end up as if copied one after another."""
    queue = TransferQueue(Simulation())
    blocks = [span(100 * i, 4, i) for i in range(4)]
    expected = [b.data.copy() for b in blocks]
    for (source, target, priority), kind in zip(
        requests, itertools.cycle(("h2d", "d2h", "d2d")), strict=False
    ):
        getattr(queue, kind)(blocks[source], blocks[target], priority)
        expected[target][:] = expected[source]
    queue.drain()
    assert [b.data.tolist() for b in blocks] == [e.tolist() for e in expected]


def test_staging_buffers_run_their_function_once() -> None:
    calls: list[int] = []
    pool = HostMemoryPool(4096)
    staging = StagingBuffer(pool.allocate(16), lambda: calls.append(1))
    assert len(staging.data()) == 16
    staging.close()
    staging.close()
    assert calls == [1]


def test_addresses_slice() -> None:
    with pytest.raises(OutOfRange):
        DeviceAddress(8, 4).slice(2, 4)
