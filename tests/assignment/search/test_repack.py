"""Packing anew: what is in pieces becomes one room, and nothing ever overlaps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignment.sketch import SMALL
from assignment.sketch import Sketch as Program
from msa.assignment.allocation import (
    AliasedOffset,
    Allocation,
    MemorySpace,
    MirroredAllocation,
    PinnedAllocation,
    Position,
    ScopedAllocation,
    Use,
)
from msa.assignment.problem import Problem
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import FreePlace, FreeUse
from msa.assignment.search.improve import Improver
from msa.assignment.search.repack import repack
from msa.assignment.search.sketches import Sketch, Wish
from msa.heap.chunk import Chunk

CAPACITY, STEPS = 48, 12


def chain(steps: int = STEPS, capacity: int = CAPACITY) -> Problem:
    """A program in which every step reads the one before."""
    program = Program(replace(SMALL, capacity=capacity, alignment=8))
    program.parameter("p", 16)
    for step in range(1, steps):
        program.op(f"v{step}", (step - 1,), 16)
    return program.problem()


def in_fast(
    step: int, end: int, offset: int, size: int, shared: AliasedOffset | None = None
) -> PinnedAllocation:
    return PinnedAllocation(
        value=step,
        position=Position(step),
        space=MemorySpace.ALTERNATE,
        chunk=Chunk(offset, size),
        start=step,
        end=end,
        aliased_offset=shared or AliasedOffset(offset),
    )


def wish(step: int, last: int, size: int, gain: float = 1.0) -> Wish:
    use = FreeUse(Use(last, 0), float(size), False, False)
    place = FreePlace(step, size, Position(step), 0, float(size), True, (use,))
    return Wish(gain, place, Sketch(last))


def spans(allocations: list[Allocation]) -> list[tuple[Allocation, Chunk]]:
    return [(a, a.chunk) for a in allocations if a.is_alternate and a.chunk is not None]


def check_apart(allocations: list[Allocation], capacity: int) -> None:
    """No two that share no offset lie on each other, and all lie inside."""
    placed = spans(allocations)
    for number, (one, chunk) in enumerate(placed):
        assert chunk.offset >= 0
        assert chunk.offset % 8 == 0
        assert chunk.offset + chunk.size <= capacity
        for other, at in placed[:number]:
            if one.aliased_offset is other.aliased_offset is not None:
                assert chunk.offset == at.offset
            elif one.start <= other.end and other.start <= one.end:
                assert (
                    chunk.offset + chunk.size <= at.offset
                    or at.offset + at.size <= chunk.offset
                )


def test_two_pieces_become_one_room() -> None:
    # 16 bytes are free below, and 16 above what lies in the middle.
    middle = in_fast(0, 5, 16, 16)
    draft = Draft(chain(), [middle], CAPACITY, 8)
    assert draft.layout.find(1, 4, 32) is None
    found = repack(draft, [wish(1, 4, 32)], STEPS, 1e6)
    assert found is not None
    assert [place.position for place in found.places] == [Position(1)]
    check_apart(found.allocations, CAPACITY)
    assert {a.position.step for a in found.allocations} == {0, 1}
    assert middle.chunk == Chunk(16, 16)  # that of the draft is as it was


def test_what_has_too_few_bytes_gets_none() -> None:
    draft = Draft(chain(), [in_fast(0, 5, 16, 16)], CAPACITY, 8)
    assert repack(draft, [wish(1, 4, 40)], STEPS, 1e6) is None


def test_the_dearest_wish_comes_first() -> None:
    draft = Draft(chain(), [in_fast(0, 5, 16, 16)], CAPACITY, 8)
    wishes = [wish(2, 4, 32, 2.0), wish(1, 4, 32, 1.0)]
    found = repack(draft, wishes, STEPS, 1e6)
    assert found is not None
    assert [place.position for place in found.places] == [Position(2)]


def test_scratch_stays_where_it_is() -> None:
    scratch = ScopedAllocation(
        value=-1,
        position=Position(3),
        space=MemorySpace.ALTERNATE,
        chunk=Chunk(16, 16),
        start=3,
        end=3,
    )
    draft = Draft(chain(), [scratch], CAPACITY, 8)
    assert repack(draft, [wish(1, 4, 32)], STEPS, 1e6) is None
    found = repack(draft, [wish(1, 4, 16)], STEPS, 1e6)
    assert found is not None
    check_apart(found.allocations, CAPACITY)
    assert [a.chunk for a in found.allocations if a.value < 0] == [Chunk(16, 16)]


def test_no_more_is_packed_than_the_budget_allows() -> None:
    """Scratch in the middle leaves two pieces of 16 bytes, but at steps 0 to 2.

    The dearer two wishes have bytes enough, but no piece; the others have room.
    """
    scratch = [
        ScopedAllocation(
            value=-1,
            position=Position(step),
            space=MemorySpace.ALTERNATE,
            chunk=Chunk(16, 16),
            start=step,
            end=step,
        )
        for step in range(3)
    ]
    draft = Draft(chain(), scratch, CAPACITY, 8)
    fitting = [wish(4, 5, 16, 2.0), wish(7, 8, 16, 1.0)]
    never = [wish(0, 1, 32, 1.5), wish(2, 3, 32, 0.5)]
    found = repack(draft, [fitting[0], *never, fitting[1]], STEPS, 1e9)
    assert found is not None
    assert fitting[0].place in found.places
    assert not {w.place.position for w in never} & {p.position for p in found.places}
    # One packing of all fails and uses the budget up.
    assert repack(draft, [fitting[0], *never, fitting[1]], STEPS, 1.0) is None


@st.composite
def drafts(draw: st.DrawFn) -> tuple[list[Allocation], list[Wish]]:
    """Chunks that do not overlap, some that share an offset, scratch; and wishes."""
    allocations: list[Allocation] = []
    for step in draw(st.sets(st.integers(0, STEPS - 2), max_size=6)):
        end = draw(st.integers(step, STEPS - 1))
        size = draw(st.integers(1, 24))
        offset = 8 * draw(st.integers(0, (CAPACITY - size) // 8))
        made: Allocation = in_fast(step, end, offset, size)
        if draw(st.integers(0, 4)) == 0:
            made = ScopedAllocation(
                value=-1,
                position=Position(step),
                space=MemorySpace.ALTERNATE,
                chunk=Chunk(offset, size),
                start=step,
                end=end,
            )
        group = [made]
        if made.value >= 0 and end + 1 < STEPS and draw(st.booleans()):
            group.append(
                MirroredAllocation(
                    value=made.value,
                    position=Position(end + 1),
                    space=MemorySpace.ALTERNATE,
                    chunk=Chunk(offset, size),
                    start=end + 1,
                    end=draw(st.integers(end + 1, STEPS - 1)),
                    aliased_offset=made.aliased_offset,
                    original=made,
                )
            )
        if all(
            a.end < b.start
            or b.end < a.start
            or chunk.end <= at.offset
            or at.end <= chunk.offset
            for a, chunk in spans(group)
            for b, at in spans(allocations)
        ):
            allocations += group
    taken = {a.position.step for a in allocations}
    wishes = [
        wish(step, draw(st.integers(step + 1, STEPS - 1)), draw(st.integers(1, 40)))
        for step in range(STEPS - 1)
        if step not in taken and draw(st.booleans())
    ]
    return allocations, wishes


@settings(max_examples=300, deadline=None)
@given(made=drafts())
def test_everything_has_room_afterwards_and_nothing_is_lost(
    made: tuple[list[Allocation], list[Wish]],
) -> None:
    allocations, wishes = made
    draft = Draft(chain(), allocations, CAPACITY, 8)
    before = [(a, a.chunk, a.aliased_offset) for a in allocations]
    found = repack(draft, wishes, STEPS, 1e9)
    assert [(a, a.chunk, a.aliased_offset) for a in draft.sequence()] == before
    if found is None:
        return
    check_apart(found.allocations, CAPACITY)
    granted = [place.position for place in found.places]
    expected = [(a.position, a.start, a.end) for a in allocations]
    kept = [(a.position, a.start, a.end) for a in found.allocations]
    assert kept[: len(expected)] == expected
    assert sorted(p for p, _, _ in kept[len(expected) :]) == sorted(granted)
    groups = [
        [b.aliased_offset is a.aliased_offset for b in allocations] for a in allocations
    ]
    again = found.allocations[: len(expected)]
    assert groups == [
        [b.aliased_offset is a.aliased_offset for b in again] for a in again
    ]
    for old, new in zip(allocations, again, strict=True):
        if old.value < 0:
            assert new.chunk == old.chunk


@pytest.mark.parametrize("taken", [16, 24])
def test_wishes_are_what_has_bytes_but_no_room(taken: int) -> None:
    problem = chain()
    middle = in_fast(0, STEPS - 1, 16, taken)
    draft = Draft(problem, [middle], CAPACITY, 8)
    place = wish(2, 4, 32)[1]
    budget = 1e6
    improver = Improver(problem, draft, {place.position: place})
    wishes = improver.scattered(budget)
    # 48 bytes less 16 are enough for 32 of them, less 24 are not.
    assert [w.place for w in wishes] == ([place] if taken == 16 else [])
    assert all(w.gain > 0 for w in wishes)
    assert improver.left < budget
    assert draft.sequence() == [middle]
