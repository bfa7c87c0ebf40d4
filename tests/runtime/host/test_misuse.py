"""Wrong uses and many threads: host pools and transfers."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from msa.hlo import parse_shape
from msa.runtime.collective import DeviceWorld, launch
from msa.runtime.host import (
    AsyncTransferManager,
    HostMemoryPool,
    LeakError,
    MemoryRange,
    ScratchPool,
    ShapedBuffer,
    Simulation,
    TransferManager,
    TransferModel,
    TransferQueue,
)
from msa.runtime.status import (
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
)


def divide() -> None:
    raise ZeroDivisionError("callback")


def staged(world: DeviceWorld) -> TransferManager:
    return TransferManager(world, HostMemoryPool(1 << 20), staging_bytes=1024)


@pytest.fixture
def switching() -> Any:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_eight_threads_share_staging_memory_and_clock_G5() -> None:
    world, simulation = DeviceWorld(1), Simulation()
    manager = staged(world)

    def body(rank: int) -> int:
        stream = simulation.stream(0)
        wrong = 0
        for turn in range(10):
            data = np.random.default_rng([rank, turn]).integers(0, 256, 3000, np.uint8)
            back = np.zeros(3000, np.uint8)
            address = world.allocate(0, 3000)
            manager.copy_to_device(stream, data, address)
            manager.copy_from_device(stream, address, back)
            stream.block_until_done()
            wrong += not np.array_equal(data, back)
            world.free(address)
        return wrong

    assert [o.unwrap() for o in launch(range(8), body)] == [0] * 8
    assert manager.staged_chunks == 8 * 10 * 2 * 3  # 3000 = 1024 + 1024 + 952
    assert world.leaks() == []


@pytest.mark.usefixtures("switching")
def test_eight_threads_share_a_queue_G13() -> None:
    queue = TransferQueue(Simulation())
    data = [np.full(16, rank + 1, np.uint8) for rank in range(8)]
    device = [np.zeros(16, np.uint8) for _ in range(8)]

    def body(rank: int) -> bool:
        for turn in range(20):
            back = np.zeros(16, np.uint8)
            there = MemoryRange((rank + 1) << 20, device[rank])
            here = MemoryRange((1 << 40) + ((rank * 20 + turn) << 8), back)
            queue.h2d(MemoryRange(rank << 8, data[rank]), there)
            queue.d2h(there, here).result()
            if not np.array_equal(back, data[rank]):
                return False
        return True

    assert [o.unwrap() for o in launch(range(8), body)] == [True] * 8
    queue.drain()
    assert queue.statistics().bytes == 8 * 20 * 2 * 16
    assert queue.close() == []


def test_nothing_is_staged_after_close() -> None:
    world = DeviceWorld(1)
    manager, stream = staged(world), Simulation().stream(0)
    address = world.allocate(0, 16)
    manager.copy_to_device(stream, np.zeros(16, np.uint8), address)
    stream.block_until_done()
    manager.close()
    manager.close()
    with pytest.raises(FailedPrecondition, match="closed"):
        manager.copy_to_device(stream, np.zeros(16, np.uint8), address)
    assert manager.pool.close() == []


def test_staged_copies_check_their_host_memory_TM3() -> None:
    world = DeviceWorld(1)
    manager, stream = staged(world), Simulation().stream(0)
    address = world.allocate(0, 16)
    with pytest.raises(FailedPrecondition, match="16 bytes .* 12 bytes"):
        manager.copy_from_device(stream, address, np.zeros(12, np.uint8))
    wide: Any = np.zeros(16, np.float32)
    with pytest.raises(InvalidArgument, match="float32"):
        manager.copy_from_device(stream, address, wide)
    with pytest.raises(InvalidArgument, match="float32"):
        manager.copy_to_device(stream, wide[:4], address)
    assert stream.pending == 0


def test_literals_of_another_type_are_refused_TM4() -> None:
    world = DeviceWorld(1)
    manager, stream = TransferManager(world), Simulation().stream(0)
    buffer = ShapedBuffer.allocate(world, 0, parse_shape("f32[4]"))
    with pytest.raises(InternalStatus, match="int32"):
        manager.transfer_to_device(stream, np.ones(4, np.int32), buffer)
    manager.transfer_to_device(stream, np.ones(4, np.float32), buffer)
    assert manager.transfer_from_device(stream, buffer).tolist() == [1.0] * 4


def test_done_is_called_once_on_a_broken_stream_G6() -> None:
    world, simulation = DeviceWorld(1), Simulation()
    manager, stream = TransferManager(world), simulation.stream(0)
    buffer = ShapedBuffer.allocate(world, 0, parse_shape("f32[4]"))
    stream.host_callback(divide)
    got: list[BaseException | None] = []
    manager.transfer_from_device(stream, buffer, got.append, callback_is_safe=True)
    simulation.run()
    assert [type(error) for error in got] == [ZeroDivisionError]


def test_pieces_are_bytes_and_end_with_close_G9() -> None:
    simulation = Simulation()
    manager = AsyncTransferManager(
        DeviceWorld(1), simulation.stream(0), [parse_shape("f32[4]")]
    )
    wide: Any = np.ones(4, np.float32)
    with pytest.raises(InvalidArgument, match="float32"):
        manager.transfer_sub(0, wide, 0, 4, is_last=True)
    manager.transfer_raw(0, wide.view(np.uint8))
    assert manager.close() == []
    with pytest.raises(FailedPrecondition, match="closed"):
        manager.transfer_sub(0, np.zeros(4, np.uint8), 0, 4, is_last=False)


@pytest.mark.parametrize("size", [0, 8])
def test_an_error_in_a_callback_is_the_buffers_G11(size: int) -> None:
    simulation = Simulation()
    stream = simulation.stream(0)
    shape = parse_shape("f32[4]")
    manager = AsyncTransferManager(DeviceWorld(1), stream, [shape, shape])
    data = np.zeros(8, np.uint8)
    manager.transfer_sub(0, data, 0, size, is_last=True, on_done=divide)
    manager.transfer_sub(1, data, 0, 8, is_last=True)
    simulation.run()
    assert isinstance(manager.buffer(0).defined.error, ZeroDivisionError)
    assert manager.buffer(1).defined.ready
    assert manager.buffer(1).defined.error is None


def test_a_broken_stream_fails_its_buffer_at_once_G11() -> None:
    simulation = Simulation()
    stream = simulation.stream(0)
    manager = AsyncTransferManager(DeviceWorld(1), stream, [parse_shape("f32[4]")])
    stream.host_callback(divide)
    simulation.run()
    manager.transfer_sub(0, np.zeros(8, np.uint8), 0, 8, is_last=False)
    assert isinstance(manager.buffer(0).defined.error, ZeroDivisionError)


def test_a_failed_request_does_not_hold_others_up_G13() -> None:
    queue = TransferQueue(Simulation())
    locked = np.zeros(4, np.uint8)
    locked.flags.writeable = False
    data = np.arange(4, dtype=np.uint8)
    bad = queue.h2d(MemoryRange(0, data), MemoryRange(1 << 20, locked))
    target = np.zeros(4, np.uint8)
    good = queue.h2d(MemoryRange(0, data), MemoryRange(2 << 20, target))
    with pytest.raises(ValueError, match="read-only"):
        bad.result()
    good.result()
    assert target.tolist() == [0, 1, 2, 3]
    queue.drain()
    assert queue.close() == []
    wide: Any = np.zeros(4, np.float32)
    with pytest.raises(InvalidArgument, match="float32"):
        queue.h2d(MemoryRange(0, wide), MemoryRange(2 << 20, target))


def test_pageable_requests_take_pageable_time_TM2() -> None:
    model = TransferModel(latency=0.0, pinned_bandwidth=8.0, pageable_bandwidth=2.0)
    simulation = Simulation(model)
    queue = TransferQueue(simulation)
    data, target = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
    here, there = MemoryRange(0, data), MemoryRange(1 << 20, target)
    pinned = queue.h2d(here, there)
    assert not pinned.done
    pinned.result()
    assert simulation.now == 2.0  # 16 bytes at 8 bytes/s
    assert queue.h2d(here, there, pinned=False).done
    assert simulation.now == 10.0  # and 16 at 2


def test_times_of_frees_ascend_HM8() -> None:
    class Counter:
        times = iter([5, 5, 3, 0, 6, 9])

        def next(self) -> int:
            return next(self.times)

    pool = HostMemoryPool(1 << 20, counter=Counter())
    first, second = pool.allocate(256), pool.allocate(256)
    first.release()
    for _ in range(3):
        with pytest.raises(InvalidArgument):
            pool.bfc.deallocate(second.address)
        pool.check()
        assert [leak.address for leak in pool.leaks()] == [second.address]
    second.release()
    pool.bfc.set_safe_frontier(7)
    both = pool.allocate(512)
    assert both.address == first.address  # the two were merged
    both.release()
    pool.check()


def test_a_closed_pool_lends_nothing_and_leaked_buffers_expire_HM10() -> None:
    pool = HostMemoryPool(1 << 20)
    leaked = pool.allocate(300)
    with pytest.raises(LeakError, match=r"300 B .* from test_misuse\.py:\d+"):
        pool.close()
    with pytest.raises(FailedPrecondition, match=r"allocated at test_misuse\.py:\d+"):
        _ = leaked.data
    leaked.release()
    with pytest.raises(FailedPrecondition, match="closed"):
        pool.allocate(300)


def test_arguments_of_pools_are_whole_numbers() -> None:
    wrong: Any
    for wrong in (-1, "a", 1.5):
        with pytest.raises(InvalidArgument):
            ScratchPool().acquire(wrong)
        with pytest.raises(InvalidArgument):
            HostMemoryPool(1 << 20).allocate(4, freed_before=wrong)


def test_a_wait_ends_when_another_thread_completes_the_work_TM1() -> None:
    simulation = Simulation()
    inside, go = threading.Event(), threading.Event()

    def slow() -> None:
        inside.set()
        assert go.wait(10)

    stream = simulation.stream(0)
    stream.host_callback(slow)

    def body(rank: int) -> float:
        if rank:
            assert inside.wait(10)
            threading.Timer(0.05, go.set).start()
        return stream.block_until_done()

    assert [o.unwrap() for o in launch([0, 1], body, timeout=20)] == [0.0, 0.0]
