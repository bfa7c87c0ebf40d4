"""Faults in a plan, one at a time: each must be caught by executing it."""

from __future__ import annotations

import random

import pytest

import msa
from msa.errors import ExecutionError, MsaError
from msa.runtime import prove_lowered
from msa.testing import RandomModuleOptions, random_module
from runtime.proving.fault_rows import (
    CAPACITY,
    ORIGINAL,
    PLACE_DROPPED,
    PLACE_FAULTS,
    PLACE_SHORT,
    PLACES,
    PLANNED,
    SIZE,
    TEXT_FAULTS,
    Edits,
)
from runtime.proving.rule_rows import RULES

MODULES = 60
"""Random modules among which each bent rule must show."""

MANY_CALLS = {**RandomModuleOptions().weights, "call": 12}

Chunks = dict[str, tuple[int, int]]
TARGET = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=CAPACITY)


def chunks_of(places: dict[str, int]) -> Chunks:
    return {key: (offset, SIZE) for key, offset in places.items()}


def prove(text: str, chunks: Chunks, scratch: Chunks | None = None) -> None:
    """Both branches, two seeds, all copy timings."""
    original = msa.parse(ORIGINAL)
    planned = msa.parse(text, verify=False)
    for seed in (1, 2, 3):
        prove_lowered(
            original, planned, TARGET, chunks=chunks, scratch=scratch, seed=seed
        )


def edited(edits: Edits) -> str:
    text = PLANNED
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_plan_itself_holds() -> None:
    prove(PLANNED, chunks_of(PLACES), {"e": (1792, 256)})
    msa.parse(PLANNED)


@pytest.mark.parametrize("fault", TEXT_FAULTS)
def test_faults_in_the_text_are_caught(fault: str) -> None:
    text = edited(TEXT_FAULTS[fault])
    # A place whose owner is gone goes with it.
    names = {f"{i.name}{{}}" for c in msa.parse(text, verify=False).computations
             for i in c.instructions}  # fmt: skip
    places = {key: offset for key, offset in PLACES.items() if key in names}
    with pytest.raises(MsaError):
        prove(text, chunks_of(places))


@pytest.mark.parametrize("fault", PLACE_FAULTS)
def test_faults_in_the_places_are_caught(fault: str) -> None:
    with pytest.raises(MsaError):
        prove(PLANNED, chunks_of({**PLACES, **PLACE_FAULTS[fault]}))


@pytest.mark.parametrize("key", PLACE_DROPPED)
def test_dropped_places_are_caught(key: str) -> None:
    chunks = chunks_of(PLACES)
    del chunks[key]
    with pytest.raises(MsaError):
        prove(PLANNED, chunks)


@pytest.mark.parametrize(
    "place", [None, "x", (1, 2, 3), (0.5, 256), (0, None), 7, b"ab", {0: 1}]
)
def test_malformed_places_are_refused_by_name(place: object) -> None:
    chunks: dict[str, object] = {**chunks_of(PLACES), "pd{}": place}
    with pytest.raises(ExecutionError, match="'pd{}'"):
        prove(PLANNED, chunks)  # type: ignore[arg-type]


def test_places_are_a_mapping() -> None:
    with pytest.raises(ExecutionError, match="mapping"):
        prove(PLANNED, [("pd{}", (0, 256))])  # type: ignore[arg-type]


def test_nothing_is_proved_by_no_run() -> None:
    original, planned = msa.parse(ORIGINAL), msa.parse(PLANNED)
    with pytest.raises(ExecutionError, match="at least one"):
        prove_lowered(original, planned, TARGET, chunks=chunks_of(PLACES), timings=())
    with pytest.raises(ExecutionError, match="seed"):
        prove_lowered(
            original,
            planned,
            TARGET,
            chunks=chunks_of(PLACES),
            seed=None,  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("key", PLACE_SHORT)
def test_short_places_are_caught(key: str) -> None:
    with pytest.raises(MsaError):
        prove(PLANNED, {**chunks_of(PLACES), key: (PLACES[key], SIZE - 4)})


@pytest.mark.parametrize(
    ("name", "place"),
    [("b", (256, 4)), ("c", (512, 256)), ("e", (300, 8)), ("d", (1920, 256))],
)
def test_scratch_over_live_bytes_is_caught(name: str, place: tuple[int, int]) -> None:
    with pytest.raises(MsaError):
        prove(PLANNED, chunks_of(PLACES), {name: place})


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("loop", (1024, 4)),  # what it carries
        ("loop", (768, 256)),  # what it only reads
        ("picked", (1024, 64)),  # read by the operation that starts next
        ("start", (1536, 64)),  # the branch's result, read later
        ("ps", (1792, 512)),  # beyond the end
        ("init", (900, 4)),  # a tuple may have scratch too
        ("done", (2048, 4)),
    ],
)
def test_scratch_of_what_calls_or_waits_is_watched(
    name: str, place: tuple[int, int]
) -> None:
    with pytest.raises(MsaError):
        prove(PLANNED, chunks_of(PLACES), {name: place})


@pytest.mark.parametrize(
    ("name", "place"),
    [("loop", (0, 768)), ("loop", (1280, 768)), ("picked", (0, 768)), ("done", (0, 1))],
)
def test_scratch_of_what_calls_may_lie_where_nothing_is_needed(
    name: str, place: tuple[int, int]
) -> None:
    """The loop's own temporary is written and read within one turn."""
    prove(PLANNED, chunks_of(PLACES), {name: place})


def random_problem(seed: int) -> tuple[msa.Module, msa.Target]:
    """A module and a memory that holds about four of its arrays.

    Every third module has calls in plenty, which are rare in the others.
    """
    chance = random.Random(seed)
    module = random_module(
        seed,
        size=chance.randrange(20, 80),
        vector=chance.choice([64, 256, 1024]),
        options=RandomModuleOptions(weights=MANY_CALLS) if seed % 3 == 2 else None,
    )
    largest = max(
        leaf.byte_size()
        for x in module.entry.instructions
        for _, leaf in x.shape.leaves()
        if leaf.is_array
    )
    capacity = -(-4 * largest // 1024) * 1024
    return module, TARGET.replace(alternate_memory_bytes=capacity)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_bent_rules_are_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some plan made without the rule is refuted by executing it."""
    monkeypatch.setattr(*RULES[rule])
    for seed in range(MODULES):
        module, target = random_problem(seed)
        try:
            plan = msa.assign(module, target)
        except MsaError:
            continue  # the planner noticed by itself
        try:
            plan.prove(seed=seed)
        except MsaError:
            return
    pytest.fail("no plan was refuted")


def test_rules_are_those_of_the_library() -> None:
    """What a row bends is still there under its name."""
    assert [
        name for name, (owner, part, _) in RULES.items() if not hasattr(owner, part)
    ] == []


def test_there_are_enough_faults() -> None:
    single = len(TEXT_FAULTS) + len(PLACE_FAULTS) + len(PLACE_DROPPED)
    assert single + len(PLACE_SHORT) >= 60
    assert len(RULES) >= 28
