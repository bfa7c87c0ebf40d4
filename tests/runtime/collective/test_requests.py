from __future__ import annotations

import random

import pytest

from msa.runtime.collective import (
    AllocationSlice,
    BufferAllocations,
    CliqueKey,
    CollectiveMemoryRequests,
    DeviceAddress,
    Kind,
)
from msa.runtime.status import InternalStatus, InvalidArgument

K0, K1, K2 = (
    CliqueKey.local(2, 3),
    CliqueKey.local(0, 1),
    CliqueKey.local(0, 1, 2, 3),
)
BASE = DeviceAddress(4096, 10)
SLICE = AllocationSlice(0, 2, 2)


def requests(*addresses: DeviceAddress) -> CollectiveMemoryRequests:
    return CollectiveMemoryRequests(BufferAllocations(addresses or (BASE,)))


@pytest.mark.parametrize("kind", list(Kind), ids=["A1", "A2", "A3"])
def test_order_and_ids(kind: Kind) -> None:
    r = requests()
    r.request(kind, K0, 0)
    r.request(kind, K0, 1)
    r.request(kind, K1, 0)
    r.request(kind, K2, r.buffers.address(SLICE))
    rows = [(x.clique, x.id, x.allocations) for x in r.ordered(kind)]
    assert rows == [(K2, 2, (0,)), (K0, 0, (0, 1)), (K1, 1, (0,))]


def test_plural_addresses_share_an_entry_A4() -> None:
    two = [DeviceAddress(4096, 64), DeviceAddress(8192, 64)]
    r = requests(*two)
    r.request_all(Kind.SYMMETRIC, K1, two)
    assert [x.allocations for x in r.ordered(Kind.SYMMETRIC)] == [(0, 1)]


def test_plural_stops_at_the_first_error_but_keeps_earlier_ones() -> None:
    r = requests()
    with pytest.raises(InternalStatus):
        r.request_all(Kind.PEER, K1, [0, DeviceAddress(1, 1), 5])
    assert [x.allocations for x in r.ordered(Kind.PEER)] == [(0,)]


def test_address_outside_records_nothing_A5() -> None:
    r = requests()
    with pytest.raises(InternalStatus, match="no allocation contains"):
        r.request(Kind.SYMMETRIC, K0, DeviceAddress(99, 4))
    assert r.size(Kind.SYMMETRIC) == 0
    assert r.requested_cliques() == []


def test_repeats_collapse_A6() -> None:
    r = requests()
    for _ in range(3):
        r.request(Kind.MULTICAST, K0, 0)
    assert r.size(Kind.MULTICAST) == 1
    assert r.ordered(Kind.MULTICAST)[0].allocations == (0,)


def test_communication_ids_separate_A7() -> None:
    r = requests()
    r.request(Kind.PEER, K1, 0)
    r.request(Kind.PEER, CliqueKey.local(0, 1, communication_id=1), 0)
    assert r.size(Kind.PEER) == 2


@pytest.mark.parametrize("seed", range(20), ids=lambda s: f"A8-{s}")
def test_order_never_depends_on_hashing(seed: int) -> None:
    rng = random.Random(seed)
    cliques = [
        CliqueKey.local(*sorted(rng.sample(range(16), rng.randint(1, 8))))
        for _ in range(12)
    ]
    first = {c: i for i, c in reversed(list(enumerate(dict.fromkeys(cliques))))}
    r = requests()
    for c in cliques:
        r.request(Kind.SYMMETRIC, c, 0)
    expected = sorted(first, key=lambda c: (-len(c.devices), first[c]))
    assert [x.clique for x in r.ordered(Kind.SYMMETRIC)] == expected


def test_peer_cliques_are_listed_A9() -> None:
    r = requests()
    r.request(Kind.PEER, K0, 0)
    assert r.requested_cliques() == [K0]
    assert r.requested_cliques(xla_compatible=True) == []


def test_subsets_B1_B2() -> None:
    small, big = CliqueKey.local(0, 1), CliqueKey.local(0, 1, 2, 3)
    assert small.is_subset_of(big)
    assert small.is_subset_of(small)
    assert not CliqueKey.local(0, 1, communication_id=1).is_subset_of(big)
    assert not small.is_subset_of(CliqueKey.local(1, 2, 3))
    assert not small.is_subset_of(CliqueKey.local(2, 3))
    a = CliqueKey((0, 1), 2, 0, (1, 2))
    b = CliqueKey((0, 1), 2, 0, (1, 3))
    assert not a.is_subset_of(b)
    assert not b.is_subset_of(a)


@pytest.mark.parametrize(
    ("count", "roots"),
    [(1, (0,)), (2, (0, 2)), (3, (0, 2, 3)), (4, (0, 1, 2, 3))],
    ids=lambda v: f"B3-{v}",
)
def test_roots(count: int, roots: tuple[int, ...]) -> None:
    assert CliqueKey.local(0, 1, 2, 3).root_devices(count) == roots


def test_too_many_roots() -> None:
    with pytest.raises(InvalidArgument):
        CliqueKey.local(0, 1).root_devices(3)


def test_total_order_B4() -> None:
    assert CliqueKey((0, 1), 1) < CliqueKey((1, 2, 3), 1)
    assert CliqueKey.local(0, 2) < CliqueKey.local(0, 1, 2, 3)


def test_ranks_B5() -> None:
    assert [CliqueKey.local(0, 1).rank(d) for d in range(4)] == [0, 1, None, None]


def test_text_B6() -> None:
    assert str(CliqueKey.local(0, 1)) == (
        "devices=2:[0,1]; local_participants=2; communication_id=0; incarnations=[]"
    )
    assert "devices=100:[0,1,2,3,4,5,6,7...98,99];" in str(CliqueKey.local(*range(100)))
    assert str(CliqueKey((0,), 1, 0, (5, 6))).endswith("incarnations=[5, 6]")


def test_communication_id_orders_B7() -> None:
    a, b = CliqueKey.local(0, 1), CliqueKey.local(0, 1, communication_id=1)
    assert a != b
    assert a < b
    assert len({a: 0, b: 1}) == 2


@pytest.mark.parametrize(
    ("address", "index"),
    [(4096, 0), (8192 + 32, 1), (1, None), (8192 + 64, None), (4096 + 63, 0)],
    ids=lambda v: f"B8-{v}",
)
def test_find_index(address: int, index: int | None) -> None:
    buffers = BufferAllocations([DeviceAddress(4096, 64), DeviceAddress(8192, 64)])
    assert buffers.find_index(DeviceAddress(address, 1000)) == index


def test_first_of_overlapping_buffers_wins_B9() -> None:
    buffers = BufferAllocations([DeviceAddress(100, 50), DeviceAddress(120, 50)])
    assert buffers.find_index(DeviceAddress(130, 1)) == 0


def test_tear_down_attempts_every_free_B10() -> None:
    addresses = [DeviceAddress(256 * (i + 1), 8) for i in range(5)]
    freed: list[int] = []

    def free(address: DeviceAddress) -> None:
        if address.opaque in (512, 768):
            raise InternalStatus(f"cannot free {address.opaque}")
        freed.append(address.opaque)

    with pytest.raises(InternalStatus, match="512"):
        BufferAllocations(addresses).tear_down(
            free,
            live=[addresses[4]],
            maybe_live_out=[0, 4],
            preallocated_temps=[1, 2, 3],
        )
    assert freed == [256, 1024]


def test_index_out_of_range_is_a_programming_error() -> None:
    with pytest.raises(IndexError):
        BufferAllocations([BASE]).address(1)
