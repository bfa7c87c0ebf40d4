"""Wrong uses of collective memory: refused by name, never wrong bytes or a hang."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from msa.runtime.collective import (
    AcquireParams,
    BufferAllocations,
    CliqueKey,
    CliqueTable,
    CollectiveMemoryRequests,
    DeviceAddress,
    DeviceWorld,
    Kind,
    Rendezvous,
    Stage,
    create_multicast_memory,
    execute_stages,
    launch,
    multimem_ld_reduce,
    multimem_red,
    multimem_st,
)
from msa.runtime.collective.multicast import f32_to_bf16
from msa.runtime.status import (
    InvalidArgument,
    OutOfRange,
    RendezvousTimeout,
    ResourceExhausted,
    UseAfterUnmap,
)

G = 4096


@pytest.fixture
def world() -> DeviceWorld:
    return DeviceWorld(2, granularity=G)


def bound(world: DeviceWorld) -> tuple[Any, list[DeviceAddress], list[DeviceAddress]]:
    """An object of one granule over memory of two; what each rank bound, and got."""
    memory = create_multicast_memory(world, G, 2)
    memory.subscribe(0)
    memory.subscribe(1)
    own = [world.allocate(d, 2 * G, collective=True) for d in (0, 1)]
    return memory, own, [memory.map(own[d], d) for d in (0, 1)]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.array([1.5, 2.5]), "i32"),
        (np.array([1.5], np.float32), "bf16"),
        (np.ones((2, 3), np.int32), "i32"),
        (np.ones(2, np.int64), "i32"),
        ([1, 2], "i32"),
        (np.ones(2, np.bool_), "pred"),
    ],
)
def test_stores_do_not_convert_elements_CM23(
    world: DeviceWorld, values: Any, dtype: str
) -> None:
    memory, own, multimem = bound(world)
    before = world.memory.resolve(own[0], 0).copy()
    with pytest.raises(InvalidArgument):
        multimem_st(world, multimem[0].opaque, values, dtype, 0)
    with pytest.raises(InvalidArgument):
        multimem_red(world, multimem[0].opaque, values, dtype, "add", 0)
    with pytest.raises(InvalidArgument):
        memory.store(0, values, dtype)
    assert np.array_equal(world.memory.resolve(own[0], 0), before)


def test_bf16_bits_are_stored_as_they_are_CM23(world: DeviceWorld) -> None:
    _, own, multimem = bound(world)
    bits = f32_to_bf16(np.array([1.5, -2.0], np.float32))
    multimem_st(world, multimem[0].opaque, bits, "bf16", 0)
    # 1.5 = 0x3FC0, -2 = 0xC000
    for device in (0, 1):
        assert world.read(own[device], "<u2", 2, device).tolist() == [0x3FC0, 0xC000]


def test_operations_stay_inside_their_object_CM23(world: DeviceWorld) -> None:
    memory, own, multimem = bound(world)
    beyond = DeviceAddress(own[1].opaque + G, G)
    world.write(beyond, np.full(G, 9, np.uint8), 1)
    last = np.full(1, 5, np.int32)
    memory.store(G - 4, last, "i32")
    assert memory.load_reduce(G - 4, 1, "i32", "add").tolist() == [10]
    for offset in (G - 4, G):
        with pytest.raises(OutOfRange):
            memory.load_reduce(offset, 2, "i32", "add")
        with pytest.raises(OutOfRange):
            memory.store(offset, np.ones(2, np.int32), "i32")
    for offset, count in ((-4, 1), (0, -1), (2, 1)):
        with pytest.raises(InvalidArgument):
            memory.load_reduce(offset, count, "i32", "add")
    with pytest.raises(InvalidArgument):
        multimem_ld_reduce(world, multimem[0].opaque + 64, -2, "i32", "add", 0)
    assert (world.memory.resolve(beyond, 1) == 9).all()


def test_use_after_teardown_names_the_place_of_allocation_E24(
    world: DeviceWorld,
) -> None:
    memory, _, multimem = bound(world)
    memory.close()
    with pytest.raises(UseAfterUnmap, match=r"allocated at test_misuse\.py:\d+"):
        multimem_st(world, multimem[0].opaque, np.ones(1, np.int32), "i32", 0)


def test_reads_and_writes_stay_inside_their_range(world: DeviceWorld) -> None:
    address = world.allocate(0, 16)
    for size in (17, 300):
        with pytest.raises(OutOfRange):
            world.write(address, np.ones(size, np.uint8), 0)
        with pytest.raises(OutOfRange):
            world.read(address, np.uint8, size, 0)
    with pytest.raises(InvalidArgument):
        world.read(address, np.uint8, -1, 0)
    world.write(address, np.arange(16, dtype=np.uint8), 0)
    assert world.read(address, np.uint8, 16, 0).tolist() == list(range(16))


def test_a_device_does_not_run_into_the_next_ones_addresses_CM20(
    world: DeviceWorld,
) -> None:
    first = world.memory.reserve(0, (1 << 40) - 2 * G, G)
    assert first == (1 << 40) + G
    with pytest.raises(ResourceExhausted):
        world.allocate(0, 2 * G)
    assert world.allocate(1, 64).opaque >= 2 << 40
    world.memory.check()


def test_look_ups_and_puts_refuse_what_is_none_CM11(world: DeviceWorld) -> None:
    key = CliqueKey.local(0, 1)
    table = CliqueTable(world)
    buffers = [
        BufferAllocations([world.allocate(d, G, collective=True)]) for d in (0, 1)
    ]

    def rank(device: int) -> None:
        requests = CollectiveMemoryRequests(buffers[device])
        for kind in Kind:
            requests.request(kind, key, 0)

        def body(stage: Stage) -> None:
            memory = stage.memory
            index: Any = np.int64(0)
            assert memory.find_peer(key, 1, index) == buffers[1].address(0)
            for what in ("x", None, 1.5):
                wrong: Any = what
                with pytest.raises(InvalidArgument):
                    memory.find_symmetric(key, wrong)
                with pytest.raises(InvalidArgument):
                    memory.find_multimem(key, wrong)
                with pytest.raises(InvalidArgument):
                    memory.find_peer(key, 0, wrong)
            window, _ = memory.find_symmetric(key, 0)
            assert window is not None
            for peer in (-1, 2, "x"):
                other: Any = peer
                with pytest.raises(InvalidArgument):
                    window.put(buffers[device].address(0), 0, 4, other)

        execute_stages(
            table, AcquireParams(world, device), requests, body, local_devices=2
        )

    for outcome in launch([0, 1], rank):
        outcome.unwrap()


def test_arrivals_at_a_given_up_leader_get_the_timeout_C10() -> None:
    table = Rendezvous()
    leave = threading.Event()
    waited = threading.Event()

    def slow(_: list[None]) -> int:
        assert leave.wait(10)
        return 1

    def body(rank: int) -> int:
        try:
            return table.join(
                "sum", 0, 2, slow, warn_timeout=0.01, terminate_timeout=0.01
            )
        except RendezvousTimeout:
            waited.set()
            raise

    def late() -> None:
        try:
            assert waited.wait(10)
            with pytest.raises(RendezvousTimeout) as caught:
                table.join("sum", 0, 2, slow)
            assert caught.value.everyone_arrived
        finally:
            leave.set()

    outcomes = launch([0, 1, 2], lambda r: late() if r == 2 else body(r), timeout=20)
    assert isinstance(outcomes[0].error, RendezvousTimeout)
    assert isinstance(outcomes[1].error, RendezvousTimeout)
    outcomes[2].unwrap()
    assert [o.unwrap() for o in launch([0, 1], lambda _: table.join(
        "sum", 0, 2, len, warn_timeout=10))] == [2, 2]  # fmt: skip


def test_the_timeout_of_a_launch_is_for_all_ranks_together() -> None:
    leave = threading.Event()
    begin = time.monotonic()
    try:
        # one after the other, waits of 0.2 s would let rank r leave at 0.15 (r + 1) s
        with pytest.raises(RendezvousTimeout):
            launch(
                list(range(6)), lambda rank: leave.wait(0.15 * (rank + 1)), timeout=0.2
            )
    finally:
        leave.set()
    assert time.monotonic() - begin < 10
