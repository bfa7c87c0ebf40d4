"""Pausing the collector: nothing runs inside, what is kept is old, garbage goes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import msa
from msa import collection
from msa.collection import collection_paused


class Node:
    """Part of a cycle."""

    def __init__(self) -> None:
        self.other: object = self


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """The collector is on before and after."""
    assert gc.isenabled()
    yield
    gc.enable()


def test_nothing_is_collected_inside() -> None:
    runs: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        runs.append(phase)

    gc.callbacks.append(note)
    try:
        with collection_paused(keep=True):
            runs.clear()
            kept = [Node() for _ in range(5000)]
            assert not runs
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert len(kept) == 5000


@pytest.mark.parametrize("keep", [False, True])
def test_a_collector_that_is_off_stays_off(keep: bool) -> None:
    gc.disable()
    with collection_paused(keep=keep):
        pass
    assert not gc.isenabled()


def test_the_collector_is_on_again_after_an_error() -> None:
    with pytest.raises(KeyError), collection_paused(keep=True):
        raise KeyError
    assert gc.isenabled()


def test_many_that_are_kept_are_in_the_oldest_generation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection, "_MANY", 0)
    with collection_paused(keep=True):
        node = Node()
        assert any(x is node for x in gc.get_objects(generation=0))
    assert any(x is node for x in gc.get_objects(generation=2))


def test_few_objects_cost_no_walk_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    monkeypatch.setattr(collection._Oldest, "take_all", lambda self: walks.append(1))
    module = msa.parse("ENTRY e { ROOT p = f32[4] parameter(0) }")
    assert not walks
    with collection_paused(keep=True):
        kept = [Node() for _ in range(collection._MANY)]
    assert walks == [1]
    assert (len(kept), module.entry.name) == (collection._MANY, "e")


def test_what_the_caller_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        with collection_paused(keep=True):
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_dropped_cycles_are_collected_once_they_may_be_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection, "_FEW", 1000)
    monkeypatch.setattr(collection, "_MANY", 1000)
    monkeypatch.setattr(collection, "_oldest", collection._Oldest())
    collection._oldest.take_all()  # counts: none were so far
    alive = len(gc.get_objects())
    dropped: list[weakref.ref[Node]] = []
    for _ in range(4):
        with collection_paused(keep=True):
            nodes = [Node() for _ in range(alive // 2 + 1000)]
            dropped.append(weakref.ref(nodes[0]))
            del nodes
    # Each round leaves half as many objects again: not more than three may stay.
    assert dropped[0]() is None
    assert sum(ref() is not None for ref in dropped) < 4


def test_few_dropped_cycles_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_FEW", 1 << 60)
    monkeypatch.setattr(collection, "_MANY", 0)
    with collection_paused(keep=True):
        first = weakref.ref(Node())
    assert first() is not None
    gc.collect()
    assert first() is None
