"""Plans spoiled at random: proving them gives a proof or a typed error, and no wrong
module is proved."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import msa
from msa.errors import MsaError
from msa.runtime.evaluator.context import LoopTurns
from msa.runtime.proving.inputs import random_inputs
from msa.runtime.proving.prove import prove_lowered
from runtime.proving.random_faults import FAULTS, Places, Victim
from runtime.proving.test_faults import random_problem

TIMINGS = ("late", "eager", "random", None)


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(equal, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def proves(plan: msa.Assignment, victim: Victim, seed: int) -> bool:
    """Whether a spoiled plan is proved; anything but an `MsaError` passes through."""
    try:
        prove_lowered(
            plan.original,
            victim.module,
            plan.target,
            chunks=victim.places,
            scratch=victim.scratch,
            seed=seed,
            timings=[victim.chance.choice(TIMINGS)],
        )
    except MsaError:
        return False
    return True


def means_the_same(plan: msa.Assignment, victim: Victim, seed: int) -> bool:
    """The evaluator's judgement of a spoiled module, wherever its arrays lie."""
    inputs = random_inputs(plan.original, seed)
    expected = msa.execute(plan.original, inputs)
    try:
        got = msa.execute(victim.module, inputs, turns=LoopTurns(limit=10_000))
    except MsaError:
        return False
    return equal(expected, got)


def spoil(victim: Victim) -> bool:
    """One to three faults; False if they do not go together."""
    faults = victim.chance.choices(FAULTS, k=victim.chance.choice([1, 1, 1, 2, 3]))
    try:
        for fault in faults:
            fault(victim)
    except MsaError:
        return False
    return True


def check(seeds: range, times: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        module, target = random_problem(seed)
        plan = msa.assign(module, target)
        for number in range(times):
            victim = Victim(
                plan.module, plan.chunks, plan.scoped_chunks, seed * 1000 + number
            )
            if not spoil(victim):
                continue
            held = proves(plan, victim, seed)
            counts["held" if held else "caught"] += 1
            if held:
                assert means_the_same(plan, victim, seed), (seed, number)
    return counts


def test_spoiled_plans_are_proved_or_refuted_in_our_terms() -> None:
    counts = check(range(12), 20)
    assert counts["caught"] > 100
    assert counts["held"] > 10


@pytest.mark.slow
def test_many_spoiled_plans() -> None:
    counts = check(range(12, 300), 40)
    assert counts["caught"] > 8000


@pytest.mark.parametrize(
    "key", ["loop{}", "init{}", "zero{}", "wn{}", "n2{}", "a{0}", "a", "{}", "a{,}"]
)
def test_places_of_tuples_scalars_and_fused_values_are_refused(key: str) -> None:
    """Tuples, fused values and what is not there have no place; scalars may."""
    text = """
    HloModule m, is_scheduled=true
    inner {
      w = s32[64] parameter(0)
      wn = s32[64] not(w)
      ROOT n2 = s32[64] abs(wn)
    }
    body {
      s = (s32[], s32[64]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      r = s32[64] get-tuple-element(s), index=1
      one = s32[] constant(1)
      j = s32[] add(i, one)
      ROOT t = (s32[], s32[64]) tuple(j, r)
    }
    test {
      later = (s32[], s32[64]) parameter(0)
      i2 = s32[] get-tuple-element(later), index=0
      two = s32[] constant(2)
      ROOT c = pred[] compare(i2, two), direction=LT
    }
    ENTRY e {
      p = s32[64] parameter(0)
      a = s32[64] fusion(p), kind=kLoop, calls=inner
      zero = s32[] constant(0)
      i0 = s32[] copy(zero)
      init = (s32[], s32[64]) tuple(i0, a)
      loop = (s32[], s32[64]) while(init), condition=test, body=body
      g = s32[64] get-tuple-element(loop), index=1
      ROOT n = s32[64] negate(g)
    }"""
    module = msa.parse(text)
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=4096)
    places: Places = {key: (0, 256)}
    with pytest.raises(MsaError):
        prove_lowered(module, module, target, chunks=places)


def test_loops_that_do_not_end_are_refuted() -> None:
    text = """
    HloModule m, is_scheduled=true
    body {
      i = s32[] parameter(0)
      one = s32[] constant(1)
      ROOT j = s32[] add(i, one)
    }
    test {
      k = s32[] parameter(0)
      top = s32[] constant(5)
      ROOT c = pred[] compare(k, top), direction=LT
    }
    ENTRY e {
      p = s32[] parameter(0)
      p1 = s32[] copy(p)
      ROOT w = s32[] while(p1), condition=test, body=body
    }"""
    module = msa.parse(text)
    stuck = msa.parse(text.replace("constant(1)", "constant(0)"))
    target = msa.Target.preset("tpu_v5e")
    prove_lowered(module, module, target, seed=1)
    with pytest.raises(MsaError, match="turns"):
        prove_lowered(module, stuck, target, inputs=[0])
