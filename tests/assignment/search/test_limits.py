"""What options ask of copies, and values that have to stay, do not stop a search."""

from __future__ import annotations

from itertools import combinations

import pytest

import msa
from msa.assignment.allocation import (
    CopyAllocation,
    MemorySpace,
    PinnedAllocation,
    Position,
    SlicedCopyAllocation,
)
from msa.assignment.options import InstructionCountPicker, SlicedPrefetchOptions
from msa.assignment.search.limits import Limits
from msa.testing import random_module

ARRAY = "f32[512,512]{1,0}"
MIB = 1 << 20


def program(colour: str = "") -> msa.Module:
    """A chain whose values find no room at once; one small value may be coloured."""
    return msa.parse(f"""HloModule m, is_scheduled=true
ENTRY e {{
  p0 = {ARRAY} parameter(0)
  p1 = {ARRAY} parameter(1)
  p2 = {ARRAY} parameter(2)
  k = f32[128]{{0}} parameter(3)
  kn = f32[128]{{0{colour}}} negate(k)
  kk = f32[128]{{0}} abs(kn)
  v0 = {ARRAY} add(p1, p0)
  v1 = {ARRAY} add(v0, p1)
  v2 = {ARRAY} add(v1, p2)
  v3 = {ARRAY} add(v2, p2)
  ROOT t = ({ARRAY}, f32[128]{{0}}) tuple(v3, kk)
}}""")


def plan(module: msa.Module, room: int, **options: object) -> msa.Assignment:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=room)
    return msa.assign(module, target, msa.Options(**options))  # type: ignore[arg-type]


def spans(found: msa.Assignment, *, to_fast: bool) -> list[tuple[int, int]]:
    """After which step each copy starts, and before which it has landed."""
    made = []
    for a in found.allocations:
        if a.is_alternate == to_fast and isinstance(a, CopyAllocation):
            made.append((a.start_after, a.done_before))
        if a.is_alternate == to_fast and isinstance(a, SlicedCopyAllocation):
            made += [(piece.start_after, a.done_before) for piece in a.slices]
    return made


def most_at_once(copies: list[tuple[int, int]]) -> int:
    return max((sum(s < step <= d for s, d in copies) for _, step in copies), default=0)


ROOM = MIB + 4096
OPTIONS: dict[str, dict[str, object]] = {
    "slices": {"sliced_prefetch_options": SlicedPrefetchOptions(max_slices=2)},
    "prefetches": {"max_outstanding_prefetches": 1},
    "evictions": {"max_outstanding_evictions": 1},
    "order": {"enforce_prefetch_fifo_order": True},
    "all": {
        "sliced_prefetch_options": SlicedPrefetchOptions(max_slices=3),
        "max_outstanding_prefetches": 2,
        "max_outstanding_evictions": 1,
        "enforce_prefetch_fifo_order": True,
    },
}


@pytest.mark.parametrize("name", [n for n in OPTIONS if n != "all"])
def test_the_search_finds_the_same_as_without(name: str) -> None:
    """The best plan of this program copies nothing: no limit stands in its way."""
    free = plan(program(), ROOM, strategy="search").estimate.after_seconds
    greedy = plan(program(), ROOM, **OPTIONS[name]).estimate.after_seconds
    found = plan(program(), ROOM, strategy="search", **OPTIONS[name])
    assert found.estimate.after_seconds == pytest.approx(free)
    assert free < greedy


def test_a_value_that_the_program_pins_stays_and_stops_nothing() -> None:
    module = program(":S(1)")
    free = plan(program(), ROOM, strategy="search").estimate.after_seconds
    found = plan(module, ROOM, strategy="search")
    found.verify()
    found.prove()
    assert found.estimate.after_seconds <= free * (1 + 1e-9)
    assert "kn{}" in found.chunks


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_random_plans_keep_the_limits(seed: int, name: str) -> None:
    elements = (5000, 200_000)[seed % 2]
    module = random_module(seed, size=60, vector=elements)
    found = plan(module, 12 * elements, strategy="search", **OPTIONS[name])
    greedy = plan(module, 12 * elements, **OPTIONS[name]).estimate.after_seconds
    found.verify()
    found.prove()
    assert found.estimate.after_seconds <= greedy * (1 + 1e-9)
    options = found.options
    for to_fast, limit in (
        (True, options.max_outstanding_prefetches),
        (False, options.max_outstanding_evictions),
    ):
        if limit >= 0:
            assert most_at_once(spans(found, to_fast=to_fast)) <= limit
    if options.enforce_prefetch_fifo_order:
        for one, other in combinations(sorted(spans(found, to_fast=True)), 2):
            assert one[0] == other[0] or one[1] <= other[1]


@pytest.mark.parametrize("seed", range(4))
def test_plans_may_be_planned_again(seed: int) -> None:
    """What is coloured by the first plan has to stay in the second."""
    elements = (5000, 200_000)[seed % 2]
    module = random_module(seed, size=60, vector=elements)
    coloured = plan(module, 12 * elements).module
    greedy = plan(coloured, 24 * elements).estimate.after_seconds
    found = plan(coloured, 24 * elements, strategy="search")
    found.verify()
    found.prove()
    assert found.estimate.after_seconds <= greedy * (1 + 1e-9)


def copy(start_after: int, done_before: int, space: MemorySpace) -> CopyAllocation:
    source = PinnedAllocation(
        value=0, position=Position(0), space=space.other, chunk=None, start=0, end=9
    )
    return CopyAllocation(
        value=0,
        position=Position(0),
        space=space,
        chunk=None,
        start=start_after + 1,
        end=9,
        source=source,
        start_after=start_after,
        done_before=done_before,
    )


def test_limits_count_each_direction_by_itself() -> None:
    limits = Limits.of(msa.Options(max_outstanding_prefetches=1))
    assert limits is not None
    fetch = copy(2, 5, MemorySpace.ALTERNATE)
    assert limits.admit(fetch)
    limits.add(fetch)
    assert not limits.admit(copy(4, 6, MemorySpace.ALTERNATE))
    assert limits.admit(copy(5, 6, MemorySpace.ALTERNATE))
    assert limits.admit(copy(4, 6, MemorySpace.DEFAULT))
    limits.remove(fetch)
    assert limits.admit(copy(4, 6, MemorySpace.ALTERNATE))
    assert Limits.of(msa.Options()) is None


def test_limits_on_the_order_hold_for_prefetches() -> None:
    limits = Limits.of(msa.Options(enforce_prefetch_fifo_order=True))
    assert limits is not None
    limits.add(copy(2, 7, MemorySpace.ALTERNATE))
    assert not limits.admit(copy(3, 6, MemorySpace.ALTERNATE))
    assert not limits.admit(copy(1, 8, MemorySpace.ALTERNATE))
    assert limits.admit(copy(3, 8, MemorySpace.ALTERNATE))
    assert limits.admit(copy(3, 6, MemorySpace.DEFAULT))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"effort": 0}, "effort=0"),
        (
            {"prefetch_interval_picker": InstructionCountPicker(1, 4)},
            "prefetch_interval_picker counts instructions",
        ),
        (
            {"enable_sync_copy_replacement": True},
            "synchronous copies or slices are replaced",
        ),
    ],
    ids=["effort", "picker", "replacing"],
)
def test_explanations_say_that_the_search_did_not_run(
    options: dict[str, object], why: str
) -> None:
    found = plan(program(), ROOM, strategy="search", **options)
    said = [found.why_not(f"v{n}") for n in range(4)]
    assert any(f"the search did not run: {why}" in text for text in map(str, said))
    assert not any("found no better exchange" in text for text in map(str, said))
    searched = plan(program(), ROOM, strategy="search")
    assert not any("did not run" in str(searched.why_not(f"v{n}")) for n in range(4))
