"""Eight devices, shuffled requests, delays, early exits and failures: no deadlock."""

from __future__ import annotations

import random
import time

import pytest

from collective_support import HASTY, PATIENT, cluster, context
from msa.errors import MsaError
from msa.runtime.collective import (
    AllocationSlice,
    CliqueKey,
    CollectiveMemoryRequests,
    Kind,
    Stage,
)
from msa.runtime.collective.kernels import all_reduce_peer

DEVICES = 8


class EarlyExitError(Exception):
    """A rank that gives up before it joins anyone."""


def play(rounds: int, seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    c = cluster(DEVICES, sizes=(4096, 4096))
    whole = CliqueKey.local(*range(DEVICES))
    counts = {"fine": 0, "failed": 0}
    where = AllocationSlice(0, 0, 64)
    for number in range(rounds):
        pairs = list(range(DEVICES))
        rng.shuffle(pairs)
        cliques = [
            CliqueKey.local(*sorted(pairs[i : i + 2])) for i in range(0, DEVICES, 2)
        ]
        quad = CliqueKey.local(*sorted(rng.sample(range(DEVICES), 4)))
        quitter = rng.randrange(DEVICES) if rng.random() < 0.02 else -1
        kinds = rng.sample(list(Kind), 2)
        order = [*cliques, quad]
        rng.shuffle(order)

        def ask(
            device: int,
            requests: CollectiveMemoryRequests,
            number: int = number,
            quitter: int = quitter,
            kinds: list[Kind] = kinds,
            order: list[CliqueKey] = order,
        ) -> None:
            mine = random.Random(seed * 1_000_003 + number * 31 + device)
            if device == quitter:
                raise EarlyExitError
            if mine.random() < 0.05:
                time.sleep(mine.random() * 0.01)
            for clique in order:
                if clique.rank(device) is not None:
                    for kind in kinds:
                        requests.request(kind, clique, 0)
            requests.request(Kind.PEER, whole, 0)

        def body(device: int, stage: Stage, number: int = number) -> None:
            all_reduce_peer(context(stage, whole, device, number), where, "i32", "max")

        c.wait(PATIENT if quitter < 0 else HASTY)
        began = time.monotonic()
        outcomes = c.run(ask, body, run_id=number)
        assert time.monotonic() - began < 20
        if quitter < 0:
            for outcome in outcomes:
                outcome.unwrap()
            counts["fine"] += 1
            continue
        counts["failed"] += 1
        for device, outcome in enumerate(outcomes):
            # Every participant learns of the failure, by a typed error.
            expected = EarlyExitError if device == quitter else MsaError
            assert isinstance(outcome.error, expected), (device, outcome)
    c.close()
    return counts


def test_a_short_soak() -> None:
    counts = play(60, seed=1)
    assert counts["fine"] > 40


@pytest.mark.slow
def test_a_thousand_rounds() -> None:
    counts = play(1000, seed=2)
    assert counts["failed"] > 5
