from __future__ import annotations

import random
import threading
import time

import pytest

from msa.runtime.collective import Rendezvous, RendezvousFlag, launch
from msa.runtime.status import InternalStatus, RendezvousError, RendezvousTimeout


def test_one_participant_C1() -> None:
    assert Rendezvous().join("r", 0, 1, lambda _: 42) == 42


def test_two_share_one_object_C2() -> None:
    table, calls = Rendezvous(), []

    def make(values: list[None]) -> object:
        calls.append(values)
        return object()

    a, b = launch([0, 1], lambda _: table.join("r", 0, 2, make))
    assert a.unwrap() is b.unwrap()
    assert len(calls) == 1


def test_values_reach_the_function_C3() -> None:
    table = Rendezvous()
    out = launch([0, 1], lambda rank: table.join("r", 0, 2, sum, rank))
    assert [o.unwrap() for o in out] == [1, 1]


@pytest.mark.parametrize("outer", [True, False], ids=["C4", "C5"])
def test_rounds_under_one_key(outer: bool) -> None:
    table = Rendezvous()
    gate = threading.Barrier(2)

    def body(rank: int) -> list[int]:
        seen = []
        for number in range(10):
            if outer:
                gate.wait(5)
            seen.append(table.join("r", 0, 2, sum, number * 10 + rank))
        return seen

    for outcome in launch([0, 1], body):
        assert outcome.unwrap() == [number * 20 + 1 for number in range(10)]


def test_failure_reaches_everyone_C6() -> None:
    table = Rendezvous()

    def fail(_: list[None]) -> None:
        raise InternalStatus("test error")

    for outcome in launch([0, 1, 2], lambda _: table.join("r", 0, 3, fail)):
        with pytest.raises(InternalStatus, match="test error"):
            outcome.unwrap()


def test_flag_lets_one_round_happen_C7() -> None:
    table, flag, calls = Rendezvous(), RendezvousFlag(), []

    def body(_: int) -> object:
        return flag.join(table, "r", 0, 2, lambda v: calls.append(v) or "ran")

    assert [o.unwrap() for o in launch([0, 1], body)] == ["ran", "ran"]
    assert flag.completed
    assert body(0) is None
    assert len(calls) == 1


def test_flag_with_many_keys_C8() -> None:
    table, flag = Rendezvous(), RendezvousFlag()
    gate = threading.Barrier(16 * 8)

    def body(rank: int) -> object:
        if not flag.try_join():
            return None
        gate.wait(20)
        try:
            return table.join("r", rank % 16, 8, len, rank)
        finally:
            flag.leave()

    assert [o.unwrap() for o in launch(range(128), body)] == [8] * 128
    assert flag.completed


def test_missing_participant_is_named_and_state_is_clean_C9_C12() -> None:
    table = Rendezvous()
    options = {"participants": ("a", "b"), "warn_timeout": 0.05}

    begin = time.monotonic()
    with pytest.raises(RendezvousTimeout) as caught:
        table.join("r", 0, 2, sum, 1, participant="a", terminate_timeout=0.1, **options)
    assert time.monotonic() - begin < 2
    error = caught.value
    assert (error.arrived, error.expected) == (1, 2)
    assert error.arrived_names == ("a",)
    assert error.missing_names == ("b",)
    assert not error.everyone_arrived
    assert "thread" in error.stacks
    assert [(r.everyone_arrived, r.resolved) for r in table.records] == [(False, False)]
    out = launch([0, 1], lambda rank: table.join("r", 0, 2, sum, rank))
    assert [o.unwrap() for o in out] == [1, 1]


def _slow_leader(sleep: float, terminate: float) -> tuple[Rendezvous, list[object]]:
    table = Rendezvous()

    def slow(values: list[int]) -> int:
        time.sleep(sleep)
        return sum(values)

    def body(rank: int) -> int:
        return table.join(
            "r", 0, 2, slow, rank, warn_timeout=0.05, terminate_timeout=terminate
        )

    return table, [o.error or o.value for o in launch([0, 1], body)]


def test_late_leader_times_waiters_out_C10() -> None:
    table, results = _slow_leader(0.5, 0.1)
    timeouts = [r for r in results if isinstance(r, RendezvousTimeout)]
    assert timeouts
    assert timeouts[0].everyone_arrived
    assert table.records[0].everyone_arrived


def test_false_alarm_C11() -> None:
    table, results = _slow_leader(0.2, 5)
    assert results == [1, 1]
    assert [r.resolved for r in table.records] == [False, True]


def test_extra_arrival_C13() -> None:
    table = Rendezvous()
    leading, extra_done = threading.Event(), threading.Event()

    def wait(values: list[int]) -> int:
        leading.set()
        assert extra_done.wait(5)
        return len(values)

    def body(rank: int) -> int:
        if rank == 2:
            assert leading.wait(5)
            try:
                return table.join("r", 0, 2, wait, rank)
            finally:
                extra_done.set()
        return table.join("r", 0, 2, wait, rank)

    a, b, extra = launch([0, 1, 2], body)
    assert (a.unwrap(), b.unwrap()) == (2, 2)
    with pytest.raises(RendezvousError):
        extra.unwrap()


def test_unequal_counts_fail_everywhere() -> None:
    table = Rendezvous()
    for outcome in launch([2, 3], lambda n: table.join("r", 0, n, sum, 1)):
        with pytest.raises(RendezvousError, match="different numbers"):
            outcome.unwrap()


def test_groups_with_random_delays_C14() -> None:
    table = Rendezvous()

    def body(thread: int) -> bool:
        rng = random.Random(thread)
        group = thread % 4
        for number in range(200):
            if rng.random() < 0.05:
                time.sleep(rng.random() * 0.002)
            total = table.join("r", (group, number % 3), 4, sum, group * 1000 + number)
            if total != 4 * (group * 1000 + number):
                return False
        return True

    assert all(o.unwrap() for o in launch(range(16), body))


def test_domains_do_not_meet() -> None:
    table = Rendezvous()

    def body(rank: int) -> int:
        return table.join(
            "r", 0, 2, sum, 1, domain=str(rank),
            warn_timeout=0.02, terminate_timeout=0.02,
        )  # fmt: skip

    assert all(isinstance(o.error, RendezvousTimeout) for o in launch([0, 1], body))


def test_an_injected_clock_only_moves_timeouts() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    table = Rendezvous(clock)
    with pytest.raises(RendezvousTimeout):
        table.join("r", 0, 2, sum, 1, warn_timeout=100, terminate_timeout=100)
