"""Eight threads at meetings of their choice, against a model of who must wait.

Time only passes when the machine says so, and after every step all threads are where
the model says: blocked in a meeting, or back with the result that it foresees.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from msa.runtime.collective import Rendezvous
from msa.runtime.status import InternalStatus, RendezvousError, RendezvousTimeout

DEVICES = 8
KEYS = {"pair": 2, "three": 3, "five": 5, "all": 8}
WARN, TERMINATE = 10, 20
PATIENCE = 5.0
"""Real seconds until a thread that does not move counts as deadlocked."""


@dataclass(eq=False)
class Caller:
    """A thread inside one `join`."""

    device: int
    value: int
    thread: threading.Thread
    outcome: list[Any] = field(default_factory=list)
    deadline: int = 0
    warned: bool = False


@dataclass
class Round:
    """Who waits at a key now."""

    waiting: list[Caller] = field(default_factory=list)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "a thread does not move"
        time.sleep(0.0002)


class RendezvousMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = self.calls = 0
        self.looks: Counter[str] = Counter()
        self.rendezvous = Rendezvous(self.clock)
        self.rounds = {key: Round() for key in KEYS}
        self.busy: dict[int, Caller] = {}
        self.threads: list[threading.Thread] = []

    def clock(self) -> float:
        """The time; who asked is counted, which tells how far each thread is."""
        self.looks[threading.current_thread().name] += 1
        return self.now

    def await_looks(self, callers: list[Caller], count: int) -> None:
        """Wait until each of the callers looked at the clock so many times more."""
        goals = {c.thread.name: self.looks[c.thread.name] + count for c in callers}
        wait_until(lambda: all(self.looks[n] >= goal for n, goal in goals.items()))

    # -- steps -------------------------------------------------------------------

    def start(
        self, device: int, key: str, count: int, value: int, *, fail: bool
    ) -> Caller:
        def function(values: list[int]) -> tuple[int, ...]:
            if fail:
                raise InternalStatus(f"{device} cannot")
            return tuple(values)

        def body() -> None:
            try:
                result = self.rendezvous.join(
                    key,
                    key,
                    count,
                    function,
                    value,
                    domain="machine",
                    participant=f"device {device}",
                    participants=[f"device {d}" for d in range(DEVICES)],
                    warn_timeout=WARN,
                    terminate_timeout=TERMINATE,
                )
            except Exception as error:
                caller.outcome.append(error)
            else:
                caller.outcome.append(result)

        self.calls += 1
        name = f"call {self.calls}"
        thread = threading.Thread(target=body, daemon=True, name=name)
        caller = Caller(device, value, thread)
        self.threads.append(thread)
        thread.start()
        # The first look is for the record, the second sets the deadline.
        wait_until(lambda: self.looks[name] >= 2 or bool(caller.outcome))
        return caller

    def returned(self, callers: list[Caller]) -> list[Any]:
        """The outcomes of callers that must come back now."""
        wait_until(lambda: all(caller.outcome for caller in callers))
        for caller in callers:
            caller.thread.join(PATIENCE)
            assert not caller.thread.is_alive()
            self.busy.pop(caller.device, None)
        return [caller.outcome[0] for caller in callers]

    @precondition(lambda self: len(self.busy) < DEVICES)
    @rule(
        pick=st.integers(0, DEVICES - 1),
        key=st.sampled_from(sorted(KEYS)),
        value=st.integers(0, 99),
        fail=st.booleans(),
    )
    def arrive(self, pick: int, key: str, value: int, fail: bool) -> None:
        idle = [d for d in range(DEVICES) if d not in self.busy]
        device = idle[pick % len(idle)]
        caller = self.start(device, key, KEYS[key], value, fail=fail)
        round_ = self.rounds[key]
        if len(round_.waiting) + 1 < KEYS[key]:
            caller.deadline = self.now + WARN
            round_.waiting.append(caller)
            self.busy[device] = caller
            return
        together = [*round_.waiting, caller]
        round_.waiting = []
        outcomes = self.returned(together)
        # One computation, by the last arriver: one object for all of them.
        assert all(outcome is outcomes[0] for outcome in outcomes)
        if fail:
            assert isinstance(outcomes[0], InternalStatus)
            assert f"{device} cannot" in str(outcomes[0])
        else:
            assert outcomes[0] == tuple(c.value for c in together)

    @precondition(
        lambda self: (
            len(self.busy) < DEVICES and any(r.waiting for r in self.rounds.values())
        )
    )
    @rule(pick=st.integers(0, 63), wrong=st.integers(2, 9))
    def arrive_with_another_count(self, pick: int, wrong: int) -> None:
        keys = sorted(key for key, round_ in self.rounds.items() if round_.waiting)
        key = keys[pick % len(keys)]
        if wrong == KEYS[key]:
            return
        device = min(d for d in range(DEVICES) if d not in self.busy)
        caller = self.start(device, key, wrong, 0, fail=False)
        together = [*self.rounds[key].waiting, caller]
        self.rounds[key].waiting = []
        for outcome in self.returned(together):
            assert isinstance(outcome, RendezvousError)

    @rule(seconds=st.integers(1, 25))
    def pass_time(self, seconds: int) -> None:
        before = len(self.rendezvous.records)
        self.now += seconds
        warned: list[Caller] = []
        for key, round_ in self.rounds.items():
            over = [c for c in round_.waiting if c.deadline <= self.now]
            if any(c.warned for c in over):
                self.time_out(key, round_)
                continue
            for caller in over:
                caller.warned = True
                caller.deadline = self.now + TERMINATE
                warned.append(caller)
        wait_until(lambda: len(self.rendezvous.records) >= before + len(warned))
        self.await_looks(warned, 1)  # the next look sets the second deadline
        for record in self.rendezvous.records[before:]:
            assert not record.everyone_arrived
            assert record.arrived < record.expected == KEYS[record.name]

    def time_out(self, key: str, round_: Round) -> None:
        """All that wait at the key learn who came and who is missing."""
        together, round_.waiting = round_.waiting, []
        present = {f"device {c.device}" for c in together}
        for outcome in self.returned(together):
            assert isinstance(outcome, RendezvousTimeout)
            assert set(outcome.arrived_names) == present
            assert not present & set(outcome.missing_names)
            assert len(outcome.missing_names) == DEVICES - len(present)
            assert (outcome.arrived, outcome.expected) == (len(together), KEYS[key])
            assert not outcome.everyone_arrived

    # -- what always holds ---------------------------------------------------------

    @invariant()
    def nobody_left_early(self) -> None:
        for caller in self.busy.values():
            assert not caller.outcome, (caller.device, caller.outcome)
            assert caller.thread.is_alive()

    def teardown(self) -> None:
        """Whatever happened, time releases everyone: nobody is stuck."""
        try:
            self.everyone_is_released()
        finally:
            self.leave_no_thread_behind()

    def leave_no_thread_behind(self) -> None:
        """After a failure too: a thread that outlives the run could end it badly."""
        end = time.monotonic() + PATIENCE
        while any(t.is_alive() for t in self.threads) and time.monotonic() < end:
            self.now += WARN + TERMINATE
            time.sleep(0.005)
        assert not any(t.is_alive() for t in self.threads)

    def everyone_is_released(self) -> None:
        for _ in range(3):
            self.pass_time(WARN + TERMINATE)
        assert not self.busy
        for key, count in KEYS.items():
            if count == 2:
                callers = [self.start(d, key, 2, d, fail=False) for d in (0, 1)]
                assert self.returned(callers) == [(0, 1), (0, 1)]


TestRendezvousMachine = RendezvousMachine.TestCase
TestRendezvousMachine.settings = settings(
    max_examples=20, stateful_step_count=40, deadline=None
)
