from __future__ import annotations

import numpy as np
import pytest

from msa.runtime.collective import (
    DeviceAddress,
    DeviceWorld,
    create_multicast_memory,
    multimem_ld_reduce,
    multimem_red,
    multimem_st,
)
from msa.runtime.collective.multicast import bf16_to_f32, f32_to_bf16
from msa.runtime.status import (
    AccessDenied,
    CrossesMapping,
    FailedPrecondition,
    InternalStatus,
    InvalidArgument,
    UnmappedAddress,
    UseAfterUnmap,
)

G = 4096


@pytest.fixture
def world() -> DeviceWorld:
    return DeviceWorld(4, granularity=G)


def test_double_subscription_E1(world: DeviceWorld) -> None:
    m = create_multicast_memory(world, G, 2)
    m.subscribe(0)
    with pytest.raises(InternalStatus):
        m.subscribe(0)


def test_map_before_all_subscribed_E2(world: DeviceWorld) -> None:
    m = create_multicast_memory(world, G, 2)
    m.subscribe(0)
    with pytest.raises(FailedPrecondition):
        m.map(world.allocate(0, G, collective=True), 0)


def test_third_subscription_E3(world: DeviceWorld) -> None:
    m = create_multicast_memory(world, G, 2)
    m.subscribe(0)
    m.subscribe(1)
    with pytest.raises(InvalidArgument):
        m.subscribe(2)


def bind(world: DeviceWorld, offsets: tuple[int, int], size: int = 32):  # type: ignore[no-untyped-def]
    m = create_multicast_memory(world, size, 2)
    places = []
    for device in (0, 1):
        m.subscribe(device)
        whole = world.allocate(device, 2 * G, collective=True)
        places.append(DeviceAddress(whole.opaque + offsets[device], size))
    return m, places, [m.map(p, d) for d, p in enumerate(places)]


@pytest.mark.parametrize("offsets", [(0, 0), (G, 0)], ids=["E4", "E6"])
def test_load_reduce(world: DeviceWorld, offsets: tuple[int, int]) -> None:
    _, places, multimem = bind(world, offsets)
    for device, place in enumerate(places):
        world.write(place, np.full(8, 2, np.int32), device)
    for device in (0, 1):
        got = multimem_ld_reduce(
            world, multimem[device].opaque, 8, "i32", "add", device
        )
        assert got.tolist() == [4] * 8


def test_misaligned_bind_E5(world: DeviceWorld) -> None:
    with pytest.raises(InternalStatus, match="invalid value"):
        bind(world, (32, 0))


def test_peer_capability_E7() -> None:
    world = DeviceWorld(2, can_access={(0, 1): False})
    assert world.can_access(0, 0)
    assert not world.can_access(0, 1)
    assert world.can_access(1, 0)
    assert not world.can_access(0, 9)
    assert not world.peer_access_enabled((0, 1))


def test_creation_errors_E8(world: DeviceWorld) -> None:
    with pytest.raises(InvalidArgument):
        create_multicast_memory(world, 0, 2)
    with pytest.raises(InvalidArgument):
        create_multicast_memory(world, G, 1)
    with pytest.raises(FailedPrecondition):
        create_multicast_memory(DeviceWorld(2, supports_multicast=False), G, 2)


def test_map_errors(world: DeviceWorld) -> None:
    m, places, _ = bind(world, (0, 0))
    with pytest.raises(FailedPrecondition, match="already"):
        m.map(places[0], 0)
    m = create_multicast_memory(world, 3 * G, 2)
    m.subscribe(0)
    m.subscribe(1)
    with pytest.raises(InvalidArgument, match="null"):
        m.map(DeviceAddress(0, 0), 0)
    with pytest.raises(InvalidArgument, match="collective"):
        m.map(world.allocate(0, 3 * G), 0)
    with pytest.raises(InternalStatus, match="leave the allocation"):
        m.map(world.allocate(0, G, collective=True), 0)
    with pytest.raises(FailedPrecondition, match="not subscribed"):
        m.map(world.allocate(3, 3 * G, collective=True), 3)


def test_free_while_bound_E22(world: DeviceWorld) -> None:
    m = create_multicast_memory(world, G, 2)
    blocks = [world.allocate(d, G, collective=True) for d in (0, 1)]
    for d in (0, 1):
        m.subscribe(d)
    for d in (0, 1):
        m.map(blocks[d], d)
    with pytest.raises(FailedPrecondition, match="still bound"):
        world.free(blocks[0])
    m.close()
    for block in blocks:
        world.free(block)
    with pytest.raises(InvalidArgument):
        world.free(blocks[0])


def test_teardown_order_E23(world: DeviceWorld) -> None:
    m, _, _ = bind(world, (0, 0))
    world.memory.trace.clear()
    m.close()
    m.close()
    assert [(event, device) for event, device, _ in world.memory.trace] == [
        ("unbind", 0), ("unmap", 0), ("release range", 0),
        ("unbind", 1), ("unmap", 1), ("release range", 1),
        ("release handle", -1),
    ]  # fmt: skip


def test_use_after_teardown_E24(world: DeviceWorld) -> None:
    m, _, multimem = bind(world, (0, 0))
    m.close()
    with pytest.raises(UseAfterUnmap):
        multimem_st(world, multimem[0].opaque, np.zeros(1, np.int32), "i32", 0)


def test_access_needs_a_grant_E27() -> None:
    world = DeviceWorld(2, granularity=G, enable_peer_access=False)
    block = world.allocate(0, 64, collective=True)
    with pytest.raises(AccessDenied):
        world.memory.resolve(block, 1)
    world.memory.set_access(block.opaque, 1, write=False)
    assert world.memory.resolve(block, 1, write=False)[0] == 0xCD
    with pytest.raises(AccessDenied, match="write"):
        world.memory.resolve(block, 1)


def test_ranges_are_checked(world: DeviceWorld) -> None:
    block = world.allocate(0, 100)
    with pytest.raises(CrossesMapping):
        world.memory.resolve(DeviceAddress(block.opaque + 200, 100), 0)
    with pytest.raises(UnmappedAddress):
        world.memory.resolve(DeviceAddress(0, 1), 0)
    assert "test_multicast.py" in world.leaks()[0]
    world.free(block)
    assert world.leaks() == []
    with pytest.raises(UseAfterUnmap, match="test_multicast.py:"):
        world.memory.resolve(block, 0)
    with pytest.raises(InvalidArgument, match="freed already.*test_multicast.py:"):
        world.free(block)


@pytest.mark.parametrize("dtype", ["i32", "u64", "f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("operation", ["add", "min", "max"])
def test_operations_against_numpy(
    world: DeviceWorld, dtype: str, operation: str
) -> None:
    _, places, multimem = bind(world, (0, 0), size=256)
    rng = np.random.default_rng(3)
    kinds = {"i32": np.int32, "u64": np.uint64, "f64": np.float64, "f32": np.float32}
    kinds |= {"f16": np.float16, "bf16": np.float32}
    data = [rng.integers(1, 50, 16).astype(kinds[dtype]) for _ in (0, 1)]
    raw = [f32_to_bf16(d) if dtype == "bf16" else d for d in data]
    for device in (0, 1):
        world.write(places[device], raw[device], device)
    got = multimem_ld_reduce(world, multimem[1].opaque, 16, dtype, operation, 1)
    reference = {"add": np.add, "min": np.minimum, "max": np.maximum}[operation]
    # Sums of integers below 100 are exact in every one of these types.
    shown = bf16_to_f32(got) if dtype == "bf16" else got
    assert shown.tolist() == reference(*data).tolist()
    multimem_red(world, multimem[0].opaque, raw[0], dtype, operation, 0)
    for device in (0, 1):
        mine = world.read(places[device], raw[0].dtype, 16, device)
        shown = bf16_to_f32(mine) if dtype == "bf16" else mine
        assert shown.tolist() == reference(data[device], data[0]).tolist()


def test_half_precision_accumulates_in_single() -> None:
    world = DeviceWorld(3, granularity=G)
    m = create_multicast_memory(world, 32, 3)
    blocks = [world.allocate(d, G, collective=True) for d in range(3)]
    for d in range(3):
        m.subscribe(d)
    multimem = [m.map(blocks[d], d) for d in range(3)]
    # In half precision 2048 + 1 is 2048; summed in single precision it is 2050.
    for d, value in enumerate((2048, 1, 1)):
        world.write(blocks[d], np.full(4, value, np.float16), d)
    got = multimem_ld_reduce(world, multimem[0].opaque, 4, "f16", "add", 0)
    assert got.tolist() == [2050.0] * 4


def test_bf16_rounds_to_nearest_even() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -0.0, np.inf, 3e38], np.float32)
    # Steps near 1 are 1/128: both ties go to the even neighbour.
    expected = np.array([1.0, 1.0, 1.015625, -0.0, np.inf, 3.0e38], np.float32)
    got = bf16_to_f32(f32_to_bf16(values))
    assert got[:5].tolist() == expected[:5].tolist()
    assert got[5] == pytest.approx(3e38, rel=1 / 128)
    assert np.isnan(bf16_to_f32(f32_to_bf16(np.array([np.nan], np.float32))))[0]


def test_multimem_misuse(world: DeviceWorld) -> None:
    _, places, multimem = bind(world, (0, 0))
    base = multimem[0].opaque
    with pytest.raises(InvalidArgument, match="aligned"):
        multimem_ld_reduce(world, base + 2, 1, "i32", "add", 0)
    with pytest.raises(InvalidArgument, match="needs integers"):
        multimem_ld_reduce(world, base, 1, "f32", "xor", 0)
    with pytest.raises(InvalidArgument):
        multimem_ld_reduce(world, base, 1, "c64", "add", 0)
    with pytest.raises(InvalidArgument, match="not a multimem"):
        multimem_st(world, places[0].opaque, np.zeros(1, np.int32), "i32", 0)
    with pytest.raises(AccessDenied):
        multimem_st(world, base, np.zeros(1, np.int32), "i32", 3)
    with pytest.raises(CrossesMapping):
        multimem_st(world, base, np.zeros(2 * G, np.int32), "i32", 0)


def test_operations_need_every_device_mapped(world: DeviceWorld) -> None:
    m = create_multicast_memory(world, G, 2)
    m.subscribe(0)
    m.subscribe(1)
    multimem = m.map(world.allocate(0, G, collective=True), 0)
    with pytest.raises(FailedPrecondition, match="1 of 2"):
        multimem_st(world, multimem.opaque, np.zeros(1, np.int32), "i32", 0)
