"""Who holds the room: against counting every address, and in the words of a plan."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msa
from assignment.crowded import CROWDED
from assignment.sketch import SMALL, Sketch
from msa.assignment.allocation import (
    Allocation,
    MemorySpace,
    PinnedAllocation,
    Position,
    ScopedAllocation,
    Slice,
    SlicedCopyAllocation,
)
from msa.assignment.crowding import Occupancy, crowding
from msa.heap.chunk import Chunk

CAPACITY, STEPS = 24, 8
ALTERNATE = MemorySpace.ALTERNATE


def pinned(value: int, offset: int, size: int, start: int, end: int) -> Allocation:
    return PinnedAllocation(
        value=value,
        position=Position(value, ()),
        space=ALTERNATE,
        chunk=Chunk(offset, size),
        start=start,
        end=end,
    )


def sketch_problem(alignment: int, size: int) -> msa.assignment.Problem:
    """Value 0 is the one that wants room."""
    sketch = Sketch(replace(SMALL, capacity=CAPACITY, alignment=alignment))
    sketch.op("wanted", (), size)
    sketch.chain("x", STEPS - 1, 0, 4)
    return sketch.problem()


@st.composite
def spans(draw: st.DrawFn, last: int) -> tuple[int, int]:
    one, two = draw(st.integers(0, last)), draw(st.integers(0, last))
    return min(one, two), max(one, two)


@st.composite
def stays(draw: st.DrawFn) -> Allocation:
    offset, top = draw(spans(CAPACITY))
    return pinned(
        draw(st.integers(1, STEPS - 1)), offset, top - offset, *draw(spans(STEPS))
    )


@given(
    stays=st.lists(stays(), max_size=6),
    span=spans(STEPS),
    size=st.integers(1, CAPACITY + 4),
    alignment=st.sampled_from([1, 4]),
)
def test_room_is_measured_as_by_counting_addresses(
    stays: list[Allocation], span: tuple[int, int], size: int, alignment: int
) -> None:
    problem = sketch_problem(alignment, size)
    start, end = span
    found = crowding(problem, stays, problem.values[0], start, end)

    def taken(step: int) -> set[int]:
        return {
            address
            for x in stays
            if x.chunk is not None and x.start <= step <= x.end
            for address in range(x.chunk.offset, x.chunk.end)
        }

    def hole(without: str) -> int:
        used = {
            address
            for x in stays
            if x.chunk is not None
            and problem.describe(x.position) != without
            and x.start <= end
            and x.end >= start
            for address in range(x.chunk.offset, x.chunk.end)
        }
        runs = [0]
        for low in range(0, CAPACITY, alignment):
            run = 0
            while low + run < CAPACITY and low + run not in used:
                run += 1
            runs.append(run)
        return max(runs)

    counts = {step: len(taken(step)) for step in range(start, end + 1)}
    most = max(counts.values())
    needed = -(-size // alignment) * alignment
    assert (found.needed, found.taken) == (needed, most)
    assert found.step == next(step for step, n in counts.items() if n == most)
    assert found.hole == hole("")
    assert found.missing == max(0, most + needed - CAPACITY)
    assert found.missing_in_one_piece == max(0, needed - hole(""))
    free = Occupancy(problem, stays).free_hole(problem.values[0], start, end)
    assert free == (found.hole if found.hole >= needed else None)
    if most:
        there = {h.name for h in found.holders if h.chunk.size}
        assert there == {
            problem.describe(x.position)
            for x in stays
            if x.start <= found.step <= x.end and x.chunk is not None and x.chunk.size
        }
        assert {n for n in there if hole(n) >= needed} == there & set(found.enough)


def test_storage_of_the_value_itself_does_not_stand_in_its_way() -> None:
    problem = sketch_problem(1, 8)
    found = crowding(problem, [pinned(0, 0, 8, 0, 4)], problem.values[0], 0, 4)
    assert (found.taken, found.holders, found.hole) == (0, (), CAPACITY)


def test_scratch_and_slices_hold_room_while_they_are_there() -> None:
    """Scratch at step 2 only; the second slice of a copy from step 4 on."""
    problem = sketch_problem(1, 8)
    source = pinned(1, 0, 0, 0, 0)
    stays = [
        ScopedAllocation(
            value=-1,
            position=Position(2, ()),
            space=ALTERNATE,
            chunk=Chunk(0, 20),
            start=2,
            end=2,
        ),
        SlicedCopyAllocation(
            value=1,
            position=Position(1, ()),
            space=ALTERNATE,
            chunk=Chunk(0, 16),
            start=3,
            end=6,
            source=source,
            slices=(Slice((), Chunk(0, 8), 2), Slice((), Chunk(8, 8), 3)),
            done_before=6,
        ),
    ]
    wanted = problem.values[0]
    scratch = crowding(problem, stays, wanted, 2, 3)
    assert [h.name for h in scratch.holders] == ["scratch of x1"]
    assert (scratch.taken, scratch.missing) == (20, 4)
    assert crowding(problem, stays, wanted, 3, 3).taken == 8
    assert crowding(problem, stays, wanted, 3, 4).taken == 16


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_no_room_names_holders_bytes_missing_and_a_change(strategy: str) -> None:
    """2048 B next to 1024 B: 1024 B are missing in 2048 B, whoever was first."""
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=2048)
    plan = msa.assign(msa.parse(CROWDED), target, msa.Options(strategy=strategy))
    kept = {
        plan.problem.describe(a.position) for a in plan.allocations if a.is_alternate
    }
    inside, outside = ("a{}", "b{}") if "a{}" in kept else ("b{}", "a{}")
    assert outside not in kept
    text = plan.why_not(outside)
    assert "no room" in text
    assert "1 KiB (1,024 B) are missing" in text
    size = {"a{}": "1 KiB", "b{}": "2 KiB"}
    assert f"held there by {inside} ({size[inside]}, steps " in text
    assert f"it would fit if {inside} were not there" in text
    assert "it takes 3 KiB (3,072 B) of fast memory" in text
    # The search is not advised to those who have it.
    assert ('strategy="search"' in text) == (strategy == "greedy")
    assert ("the search (effort 8)" in text) == (strategy == "search")
    assert text.split("\n")[1].strip() in plan.explain(outside)


def test_larger_than_the_fast_memory_is_said_of_those_that_are() -> None:
    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes=1024)
    plan = msa.assign(msa.parse(CROWDED), target)
    assert "larger than the fast memory" in plan.why_not("b")
    assert "larger than" not in plan.why_not("a")


EVICTED = """
HloModule evicted, is_scheduled=true
ENTRY main {
  p = f32[256]{0} parameter(0)
  q = f32[512]{0} parameter(1)
  a = f32[256]{0} negate(p)
  b = f32[256]{0} exponential(a)
  c = f32[512]{0} sine(q)
  d = f32[512]{0} cosine(c)
  e = f32[512]{0} tanh(d)
  f = f32[512]{0} sine(e)
  g = f32[512]{0} cosine(f)
  h = f32[512]{0} tanh(g)
  r = f32[256]{0} add(a, b)
  ROOT t = (f32[256]{0}, f32[512]{0}) tuple(r, h)
}
"""


def test_an_eviction_is_told_by_start_finish_cause_and_next_read() -> None:
    from msa.assignment.allocation import CopyAllocation

    target = msa.Target.preset("tpu_v5e").replace(alternate_memory_bytes="4KiB")
    seen = 0
    for capacity in (1024, 2048, 3072, 4096, 5120):
        plan = msa.assign(
            msa.parse(EVICTED), target.replace(alternate_memory_bytes=capacity)
        )
        names = plan.problem.names
        for copy in plan.allocations:
            if not isinstance(copy, CopyAllocation) or copy.is_alternate:
                continue
            seen += 1
            name = plan.problem.describe(copy.position)
            text = plan.explain(name)
            line = next(x for x in text.splitlines() if "evicted" in x)
            start, done = copy.start_after, copy.done_before
            assert f"the copy starts after {names[start]} (step {start})" in line
            assert (
                f"must be finished before {names[done]} (step {done}), because its room "
                f"in fast memory is kept until step {copy.source.end} only"
            ) in line
            after = min(use for use in copy.uses)
            expected = f"{plan.problem.describe_use(after)} (step {after.step})"
            assert f"next read from slow memory: {expected}" in line
            assert after.step > done
            taken = re.search(r"; (\S+) is there from step (\d+)", line)
            if taken:
                assert int(taken[2]) >= copy.source.end
            assert "needed before" not in text
    assert seen


def test_a_name_without_a_near_one_says_how_to_list_names() -> None:
    plan = msa.assign(msa.parse(EVICTED), msa.Target.preset("tpu_v5e"))
    with pytest.raises(msa.errors.PlanError, match="msa explain MODULE") as caught:
        plan.explain("zzzzzz")
    assert str(caught.value).count("(try:") == 1
    with pytest.raises(msa.errors.PlanError, match=r"named 'tt'; did you mean 't'\?$"):
        plan.explain("tt")
