"""Eight devices in any sequence of rounds, failures, evictions and tear-downs.

The model is plain numpy: what each rank's buffer must hold after each round.
"""

from __future__ import annotations

import random
import time

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from collective_support import HASTY, PATIENT, cluster, context
from msa.errors import MsaError
from msa.runtime.collective import (
    AllocationSlice,
    CliqueKey,
    CollectiveMemoryRequests,
    Kind,
    Stage,
    Timeouts,
)
from msa.runtime.collective.kernels import all_reduce_multimem, all_reduce_peer
from msa.runtime.status import FailedPrecondition, InternalStatus

DEVICES = 8
COUNT = 64
BYTES = 4 * COUNT
SOME_FAIL = Timeouts(warn=0.15, terminate=0.6)
"""Ranks of one clique wait in vain, those of the others must have time."""


class EarlyExitError(Exception):
    """A rank that leaves before it joins anyone."""


def partition(seed: int) -> list[CliqueKey]:
    """Devices shuffled into cliques of two to four, each clique in device order."""
    chance = random.Random(seed)
    devices = list(range(DEVICES))
    chance.shuffle(devices)
    size = chance.choice([2, 4])
    return [
        CliqueKey.local(*sorted(devices[i : i + size])) for i in range(0, DEVICES, size)
    ]


class CollectivesMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.cluster = cluster(DEVICES, sizes=(4096, 4096))
        self.round = 0
        self.contents = np.zeros((DEVICES, COUNT), np.int32)
        for device in range(DEVICES):
            self.store(device)

    def store(self, device: int) -> None:
        address = self.cluster.buffers[device].address(0)
        self.cluster.world.write(address, self.contents[device], by=device)

    def play(
        self, seed: int, kind: Kind, *, quitter: int = -1, thrower: int = -1
    ) -> list[CliqueKey]:
        """One execution: each clique reduces its ranks' buffers; failures are seen."""
        self.round += 1
        number = self.round
        cliques = partition(seed)
        where = AllocationSlice(0, 0, BYTES)

        def mine(device: int) -> CliqueKey:
            return next(k for k in cliques if k.rank(device) is not None)

        def ask(device: int, requests: CollectiveMemoryRequests) -> None:
            chance = random.Random(seed * DEVICES + device)
            if device == quitter:
                raise EarlyExitError
            if chance.random() < 0.2:
                time.sleep(chance.random() * 0.005)
            # Each rank asks in an order of its own.
            kinds = list(Kind)
            chance.shuffle(kinds)
            for wanted in kinds:
                requests.request(wanted, mine(device), 0)

        def body(device: int, stage: Stage) -> None:
            if device == thrower:
                raise InternalStatus(f"device {device} broke")
            ctx = context(stage, mine(device), device, number)
            reduce = all_reduce_multimem if kind is Kind.MULTICAST else all_reduce_peer
            reduce(ctx, where, "i32", "add")

        if quitter >= 0:
            self.cluster.wait(HASTY)
        else:
            self.cluster.wait(PATIENT if thrower < 0 else SOME_FAIL)
        began = time.monotonic()
        outcomes = self.cluster.run(ask, body, run_id=number)
        assert time.monotonic() - began < 20
        broken = {
            d for d in range(DEVICES) if {quitter, thrower} & set(mine(d).devices)
        }
        for device, outcome in enumerate(outcomes):
            if device == quitter:
                assert isinstance(outcome.error, EarlyExitError)
            elif quitter >= 0 or device in broken:
                # The initial rendezvous counts all devices: a quitter fails all.
                assert isinstance(outcome.error, MsaError), (device, outcome)
            else:
                outcome.unwrap()
        for key in cliques:
            if quitter < 0 and not broken & set(key.devices):
                total = self.contents[list(key.devices)].sum(axis=0, dtype=np.int32)
                self.contents[list(key.devices)] = total
        return cliques

    @rule(seed=st.integers(0, 999), kind=st.sampled_from([Kind.MULTICAST, Kind.PEER]))
    def reduce(self, seed: int, kind: Kind) -> None:
        self.play(seed, kind)

    @rule(seed=st.integers(0, 999), quitter=st.integers(0, DEVICES - 1))
    def reduce_with_an_early_exit(self, seed: int, quitter: int) -> None:
        self.play(seed, Kind.PEER, quitter=quitter)

    @rule(seed=st.integers(0, 999), thrower=st.integers(0, DEVICES - 1))
    def reduce_with_an_exception(self, seed: int, thrower: int) -> None:
        self.play(seed, Kind.PEER, thrower=thrower)

    @rule(device=st.integers(0, DEVICES - 1), value=st.integers(-5, 5))
    def write(self, device: int, value: int) -> None:
        self.contents[device] = np.arange(COUNT) * value
        self.store(device)

    @rule()
    def forget(self) -> None:
        for cache in self.cluster.caches:
            cache.clear()

    @rule()
    def destroy_cliques(self) -> None:
        self.cluster.table.destroy()

    @rule(seed=st.integers(0, 999), device=st.integers(0, DEVICES - 1))
    def free_while_bound(self, seed: int, device: int) -> None:
        self.play(seed, Kind.MULTICAST)
        address = self.cluster.buffers[device].address(0)
        try:
            self.cluster.world.free(address)
        except FailedPrecondition:
            return
        raise AssertionError("bound memory was freed")

    @invariant()
    def memory_is_what_numpy_says(self) -> None:
        world = self.cluster.world
        world.memory.check()
        for device in range(DEVICES):
            address = self.cluster.buffers[device].address(0)
            held = world.read(address, np.int32, COUNT, by=device)
            assert (held == self.contents[device]).all(), device

    def teardown(self) -> None:
        """Everything can be taken down; nothing is left."""
        if hasattr(self, "cluster"):
            self.cluster.close()


TestCollectivesMachine = CollectivesMachine.TestCase
TestCollectivesMachine.settings = settings(
    max_examples=8, stateful_step_count=12, deadline=None
)
