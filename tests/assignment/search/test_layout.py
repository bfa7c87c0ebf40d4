"""Room for chunks, against trying every offset."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.assignment.search.layout import Layout

CAPACITY, ALIGNMENT, LAST = 64, 4, 9


@st.composite
def layouts(
    draw: st.DrawFn,
) -> tuple[Layout, dict[int, tuple[int, int, int, int]]]:
    """A layout, and (start, end, low, high) of its chunks by number."""
    layout = Layout(CAPACITY, ALIGNMENT)
    chunks: dict[int, tuple[int, int, int, int]] = {}
    for number in range(draw(st.integers(0, 12))):
        start = draw(st.integers(0, LAST))
        end = draw(st.integers(start, LAST))
        low = draw(st.integers(0, CAPACITY // ALIGNMENT - 1)) * ALIGNMENT
        size = draw(st.integers(1, CAPACITY - low))
        if not met(chunks, start, end, low, low + size):
            layout.add(number, start, end, low, size)
            chunks[number] = (start, end, low, low + size)
    gone = draw(st.sets(st.sampled_from(sorted(chunks)))) if chunks else set()
    for number in gone:
        layout.remove(number)
        del chunks[number]
    return layout, chunks


def met(
    chunks: dict[int, tuple[int, int, int, int]],
    start: int,
    end: int,
    low: int,
    high: int,
) -> list[int]:
    return [
        n
        for n, (first, last, bottom, top) in chunks.items()
        if first <= end and start <= last and bottom < high and low < top
    ]


@settings(max_examples=200, deadline=None)
@given(made=layouts(), start=st.integers(0, LAST), size=st.integers(1, CAPACITY + 1))
def test_room_is_found_where_there_is_some(
    made: tuple[Layout, dict[int, tuple[int, int, int, int]]], start: int, size: int
) -> None:
    layout, chunks = made
    end = min(start + 2, LAST)
    offset = layout.find(start, end, size)
    free = [
        low
        for low in range(0, CAPACITY - size + 1, ALIGNMENT)
        if not met(chunks, start, end, low, low + size)
    ]
    if offset is None:
        assert not free
    else:
        assert offset in free


@settings(max_examples=200, deadline=None)
@given(
    made=layouts(),
    start=st.integers(0, LAST),
    length=st.integers(0, LAST),
    size=st.integers(1, CAPACITY + 1),
)
def test_bytes_are_free_in_pieces_if_every_step_leaves_as_many(
    made: tuple[Layout, dict[int, tuple[int, int, int, int]]],
    start: int,
    length: int,
    size: int,
) -> None:
    layout, chunks = made
    end = min(start + length, LAST)
    loads = [
        sum(high - low for a, b, low, high in chunks.values() if a <= step <= b)
        for step in range(start, end + 1)
    ]
    assert layout.has_bytes(start, end, size) == (max(loads) + size <= CAPACITY)


@settings(max_examples=200, deadline=None)
@given(made=layouts(), start=st.integers(0, LAST), size=st.integers(1, CAPACITY + 1))
def test_room_is_made_where_it_costs_the_least(
    made: tuple[Layout, dict[int, tuple[int, int, int, int]]], start: int, size: int
) -> None:
    layout, chunks = made
    end = min(start + 3, LAST)

    def cost(number: int) -> float:
        return math.inf if number % 5 == 4 else float(1 + number % 3)

    room = layout.make(start, end, size, cost)
    prices = [
        sum(cost(n) for n in met(chunks, start, end, low, low + size))
        for low in range(0, CAPACITY - size + 1, ALIGNMENT)
    ]
    if room is None:
        assert not prices
        return
    taken = met(chunks, start, end, room.offset, room.offset + size)
    assert sorted(room.taken_by) == sorted(taken)
    assert room.cost == sum(cost(n) for n in taken)
    assert room.cost == min(prices)


@settings(max_examples=200, deadline=None)
@given(
    made=layouts(),
    start=st.integers(0, LAST),
    size=st.integers(1, CAPACITY + 1),
    most=st.integers(0, 4),
)
def test_room_is_made_where_few_go(
    made: tuple[Layout, dict[int, tuple[int, int, int, int]]],
    start: int,
    size: int,
    most: int,
) -> None:
    layout, chunks = made
    end = min(start + 3, LAST)
    asked: list[int] = []

    def cost(number: int) -> float:
        asked.append(number)
        return float(1 + number % 3)

    room = layout.make(start, end, size, cost, most)
    few = {
        low: taken
        for low in range(0, CAPACITY - size + 1, ALIGNMENT)
        if len(taken := met(chunks, start, end, low, low + size)) <= most
    }
    assert len(asked) == len(set(asked)) == layout.priced
    assert set(asked) <= {number for taken in few.values() for number in taken}
    if room is None:
        assert not few
        return
    assert sorted(room.taken_by) == sorted(few[room.offset])
    assert room.cost == min(sum(1 + n % 3 for n in taken) for taken in few.values())


def test_few_offsets_are_looked_at_in_a_long_stay() -> None:
    count = 1000
    layout = Layout(count * ALIGNMENT, ALIGNMENT)
    for number in range(count):
        layout.add(number, number, number, number * ALIGNMENT, ALIGNMENT)
    room = layout.make(0, count - 1, ALIGNMENT, float)
    assert room == (0, (0,), 0.0)
    assert layout.priced <= 64
    assert layout.passed <= 100 * count


def test_the_smallest_gap_is_taken() -> None:
    layout = Layout(CAPACITY, ALIGNMENT)
    layout.add(0, 0, 5, 16, 8)  # leaves 0-16 and 24-64
    layout.add(1, 0, 5, 32, 8)  # leaves 0-16, 24-32 and 40-64
    assert layout.find(2, 3, 8) == 24
    assert layout.find(2, 3, 12) == 0
    assert layout.find(2, 3, 20) == 40
    assert layout.find(2, 3, 28) is None
    assert layout.find(6, 7, 28) == 0


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_it_grows(count: int) -> None:
    layout = Layout(count * ALIGNMENT, ALIGNMENT)
    for number in range(count):
        layout.add(number, 0, 1, number * ALIGNMENT, ALIGNMENT)
    assert len(layout) == count
    assert layout.find(1, 1, 1) is None
    layout.remove(count // 2)
    assert layout.find(1, 1, ALIGNMENT) == count // 2 * ALIGNMENT
