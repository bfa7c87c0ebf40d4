"""Absurd arguments to collective and host memory: typed errors, and nothing hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from msa.errors import RuntimeMemoryError
from msa.hlo.shape import Shape
from msa.runtime.collective import (
    BufferAllocations,
    CliqueKey,
    CollectiveMemoryRequests,
    DeviceAddress,
    DeviceWorld,
    Kind,
    Rendezvous,
    Timeouts,
    create_multicast_memory,
    launch,
)
from msa.runtime.collective.rendezvous import _all_stacks
from msa.runtime.host import (
    AsyncTransferManager,
    BFCAllocator,
    HostMemoryPool,
    Simulation,
    TransferManager,
)
from msa.runtime.host.suballocator import SimSubAllocator
from msa.runtime.status import InvalidArgument, RendezvousTimeout

NO_NUMBER: list[Any] = [None, True, "1", 1.5, float("nan"), float("inf"), -1, 10**30]
NO_NUMBER += [[], (), object(), b"x", lambda: 0]
NO_SECONDS: list[Any] = [float("nan"), -0.5, "1", True, [], object()]
WORLD = DeviceWorld(2, granularity=4096)
KEY = CliqueKey.local(0, 1)


def requests() -> CollectiveMemoryRequests:
    return CollectiveMemoryRequests(BufferAllocations([DeviceAddress(4096, 64)]))


def pool() -> BFCAllocator:
    return BFCAllocator(SimSubAllocator(0), 1 << 20)


def pieces() -> AsyncTransferManager:
    shapes = [Shape.array("u8", (8,))]
    return AsyncTransferManager(WORLD, Simulation().stream(0), shapes)


DATA = np.zeros(8, np.uint8)
COUNTS: dict[str, Callable[[Any], Any]] = {
    "threads": lambda x: Rendezvous().join("r", 0, x, len),
    "barrier": lambda x: Rendezvous().barrier("r", 0, x),
    "devices": DeviceWorld,
    "granularity": lambda x: DeviceWorld(2, granularity=x),
    "device": lambda x: WORLD.allocate(x, 8),
    "size": lambda x: WORLD.allocate(0, x),
    "alignment": lambda x: WORLD.allocate(0, 8, alignment=x),
    "device id": lambda x: CliqueKey.local(0, x),
    "participants": lambda x: CliqueKey((0, 1), x),
    "communication id": lambda x: CliqueKey.local(0, 1, communication_id=x),
    "multicast size": lambda x: create_multicast_memory(WORLD, x, 2),
    "multicast devices": lambda x: create_multicast_memory(WORLD, 4096, x),
    "subscribe": lambda x: create_multicast_memory(WORLD, 4096, 2).subscribe(x),
    "pool": lambda x: BFCAllocator(SimSubAllocator(0), x),
    "pool size": lambda x: pool().allocate(x),
    "pool alignment": lambda x: pool().allocate(8, x),
    "host pool": HostMemoryPool,
    "host size": lambda x: HostMemoryPool(1 << 20).allocate(x),
    "staging": lambda x: TransferManager(WORLD, staging_bytes=x),
    "buffer": lambda x: pieces().buffer(x),
    "offset": lambda x: pieces().transfer_sub(0, DATA, x, 4, is_last=False),
    "piece": lambda x: pieces().transfer_sub(0, DATA, 0, x, is_last=False),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_whole_numbers(name: str) -> None:
    for value in NO_NUMBER:
        if (name, value) == ("pool size", 10**30):
            continue  # what no pool has room for is None there
        with pytest.raises(RuntimeMemoryError) as caught:
            COUNTS[name](value)
        assert str(caught.value)


SECONDS: dict[str, Callable[[Any], Any]] = {
    "warn": lambda x: Rendezvous().join("r", 0, 2, len, warn_timeout=x),
    "terminate": lambda x: Rendezvous().join("r", 0, 2, len, terminate_timeout=x),
    "Timeouts": Timeouts,
    "launch": lambda x: launch([0], lambda _: 0, timeout=x),
}


@pytest.mark.parametrize("name", SECONDS)
def test_timeouts_are_seconds(name: str) -> None:
    for value in NO_SECONDS:
        with pytest.raises(InvalidArgument, match="seconds"):
            SECONDS[name](value)


def test_timeouts_at_the_bounds() -> None:
    with pytest.raises(RendezvousTimeout):
        Rendezvous().join("r", 0, 2, len, warn_timeout=0, terminate_timeout=0)
    assert launch([0], lambda rank: rank, timeout=1e300)[0].unwrap() == 0
    table = Rendezvous()
    out = launch(
        [0, 1], lambda r: table.join("r", 0, 2, sum, r, warn_timeout=float("inf"))
    )
    assert [o.unwrap() for o in out] == [1, 1]


def test_a_refused_call_leaves_no_trace() -> None:
    table = Rendezvous()
    for bad in ({"num_threads": 0}, {"key": []}, {"function": None}):
        call = {"num_threads": 2, "key": 0, "function": sum} | bad
        with pytest.raises(InvalidArgument):
            table.join("r", call["key"], call["num_threads"], call["function"], 1)  # type: ignore[arg-type]
    out = launch([0, 1], lambda r: table.join("r", 0, 2, sum, r))
    assert [o.unwrap() for o in out] == [1, 1]


def test_a_device_takes_part_once() -> None:
    with pytest.raises(InvalidArgument, match=r"takes part once: \[0, 1, 0\]"):
        CliqueKey.local(0, 1, 0)
    with pytest.raises(InvalidArgument, match="a tuple"):
        CliqueKey([0, 1], 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="3 processes"):
        DeviceWorld(2, processes=(0, 0, 0))


def _named(value: Any) -> str:
    """The same name in every run: a bare object's text holds its address."""
    return "object" if type(value) is object else repr(value)


WRONG_THINGS: list[Any] = [None, 1.5, "x", [], object()]


@pytest.mark.parametrize("value", WRONG_THINGS, ids=_named)
def test_things_of_the_wrong_kind(value: Any) -> None:
    multicast = create_multicast_memory(WORLD, 4096, 2)
    for call in (
        lambda: WORLD.free(value),
        lambda: multicast.map(value, 0),
        lambda: requests().request(value, KEY, 0),
        lambda: requests().request(Kind.PEER, value, 0),
        lambda: requests().request(Kind.PEER, KEY, value),
        lambda: launch([0], value),
        lambda: pool().allocate(8, end=value),
    ):
        with pytest.raises(RuntimeMemoryError):
            call()


@pytest.mark.parametrize("value", [1.5, "x", [], object(), -1, 10**30, 7], ids=_named)
def test_pointers_that_are_none(value: Any) -> None:
    with pytest.raises(RuntimeMemoryError):
        pool().deallocate(value)


def test_numpy_numbers_are_numbers() -> None:
    host = HostMemoryPool(1 << 20)
    buffer = host.allocate(np.int64(100))  # type: ignore[arg-type]
    assert buffer.size == 100
    buffer.release()
    address = WORLD.allocate(0, np.int32(8))  # type: ignore[arg-type]
    WORLD.free(address)
    assert host.close() == []


def test_a_timeout_without_room_for_its_report(monkeypatch: Any) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("tempfile.TemporaryFile", no_room)
    assert _all_stacks() == ""
    table = Rendezvous()

    def body(rank: int) -> int:
        return table.join(
            "r", 0, 3, sum, rank, warn_timeout=0.02, terminate_timeout=0.05
        )

    assert all(isinstance(o.error, RendezvousTimeout) for o in launch([0, 1], body))


def test_stacks_of_threads_that_come_and_go() -> None:
    """Reports are written while other threads start, run and end."""
    stop = threading.Event()

    def busy(_: int) -> int:
        count = 0
        while not stop.is_set():
            thread = threading.Thread(target=sum, args=(range(50),))
            thread.start()
            thread.join()
            count += 1
        return count

    def report(_: int) -> int:
        for _ in range(100):
            assert "thread" in _all_stacks()
        stop.set()
        return 100

    out = launch(range(5), lambda rank: report(rank) if rank == 4 else busy(rank))
    assert all(o.unwrap() > 0 for o in out)
