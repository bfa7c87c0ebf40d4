"""Chunks, midpoints, the free list, statistics and composite algorithms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.errors import CapacityError, RuntimeMemoryError
from msa.heap import (
    BreadthFirstMidpointIterator,
    ChooseBestHeap,
    Chunk,
    FreeChunks,
    GlobalDecreasingSizeBestFitHeap,
    HeapResult,
    HeapWithFallback,
    NoFragmentationStatsHeap,
    Result,
)
from msa.heap.free_chunks import END_OF_MEMORY


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 0, [0]),
        (1, 2, [2, 1]),
        (1, 5, [3, 2, 5, 1, 4]),
        (0, 10, [5, 2, 8, 1, 4, 7, 10, 0, 3, 6, 9]),
        (3, 2, []),
        (2**63 - 3, 2**63 - 1, [2**63 - 2, 2**63 - 3, 2**63 - 1]),
    ],
    ids=lambda value: f"10.11-{value}" if isinstance(value, int) else None,
)
def test_midpoints(start, end, expected):
    iterator = BreadthFirstMidpointIterator(start, end)
    assert list(iterator) == expected
    assert list(iterator) == expected


@given(st.integers(-9, 9), st.integers(-9, 40))
def test_midpoints_visit_everything_once(start, end):
    visited = list(BreadthFirstMidpointIterator(start, end))
    assert sorted(visited) == list(range(start, end + 1))


def test_empty_chunks_do_not_overlap():
    assert not Chunk(5, 0).overlaps(Chunk(0, 10))
    assert Chunk(5, 1).overlaps(Chunk(0, 10))
    assert Chunk.from_end(3, 9) == Chunk(3, 6)


def ranges(free):
    return [(chunk.offset, chunk.end) for chunk in free]


def test_free_chunks_after_taking_the_middle_10_11():
    free = FreeChunks()
    free.allocate(10, 20)
    assert ranges(free) == [(0, 10), (20, END_OF_MEMORY)]


@pytest.mark.parametrize(
    ("freed", "expected"),
    [
        ((10, 15), [(0, 15), (20, END_OF_MEMORY)]),
        ((15, 20), [(0, 10), (15, END_OF_MEMORY)]),
        ((10, 20), [(0, END_OF_MEMORY)]),
        ((12, 15), [(0, 10), (12, 15), (20, END_OF_MEMORY)]),
    ],
    ids=["10.11-below", "10.11-above", "10.11-both", "10.11-neither"],
)
def test_deallocation_merges(freed, expected):
    free = FreeChunks()
    free.allocate(10, 20)
    free.deallocate(*freed)
    assert ranges(free) == expected
    free.check()


def test_just_large_enough_10_11():
    free = FreeChunks(end=100)
    assert free.find_just_large_enough(5) == Chunk(0, 100)
    free.allocate(10, 20)
    free.allocate(26, 90)
    assert free.find_just_large_enough(5) == Chunk(20, 6)
    assert free.find_just_large_enough(7) == Chunk(0, 10)
    assert free.find_just_large_enough(11) is None
    # With alignment only the aligned part counts: [24, 26) and [96, 100).
    aligned = FreeChunks(8, end=100)
    aligned.allocate(0, 20)
    aligned.allocate(26, 90)
    assert aligned.find_just_large_enough(3) == Chunk(90, 10)


def test_misuse_of_the_free_list_is_refused():
    free = FreeChunks()
    free.allocate(10, 20)
    with pytest.raises(RuntimeMemoryError):
        free.allocate(5, 12)
    with pytest.raises(RuntimeMemoryError):
        free.deallocate(5, 12)
    free.check()


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=20))
def test_free_chunks_agree_with_a_set(requests):
    free, cells, held = FreeChunks(4, end=40), set(range(40)), []
    for offset, size in requests:
        wanted = set(range(offset, offset + size))
        if wanted <= cells:
            free.allocate(offset, offset + size)
            cells -= wanted
            held.append((offset, offset + size))
        elif held:
            low, high = held.pop(offset % len(held))
            free.deallocate(low, high)
            cells |= set(range(low, high))
        free.check()
        assert {a for low, high in ranges(free) for a in range(low, high)} == cells


@pytest.mark.parametrize(
    ("calls", "expected"),
    [("a10 a20 a30 a30 f f f f", 90), ("a10 a20 f a30 f a5 f", 40), ("", 0)],
    ids=["10.3-all", "10.3-some", "10.3-empty"],
)
def test_no_fragmentation(calls, expected):
    heap, live = NoFragmentationStatsHeap(), []
    for number, call in enumerate(calls.split()):
        if call[0] == "a":
            live.append((number, int(call[1:])))
            heap.alloc(*live[-1])
        else:
            heap.free(*live.pop())
    assert heap.finish().heap_size == expected
    assert heap.finish().heaps[0].chunk_map == {}


class Fixed:
    """An algorithm that answers with a given size, or raises."""

    def __init__(self, answer):
        self.answer, self.calls = answer, []

    def alloc(self, *arguments):
        self.calls.append(("alloc", *arguments))

    def share_with(self, *arguments):
        self.calls.append(("share_with", *arguments))

    def free(self, *arguments):
        self.calls.append(("free", *arguments))

    def finish(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return Result.of_heaps([HeapResult({}, self.answer)])


def replay(heap):
    heap.alloc(0, 8)
    heap.share_with(1, 0, 8)
    heap.free(0, 8)
    heap.free(1, 8)
    return heap.finish()


def test_choose_best_takes_the_first_smallest():
    parts = [Fixed(9), Fixed(7), Fixed(7)]
    best = ChooseBestHeap(parts)
    assert replay(best).heap_size == 7
    assert parts[0].calls == parts[1].calls == parts[2].calls
    assert len(parts[0].calls) == 4
    with pytest.raises(ZeroDivisionError):
        ChooseBestHeap([Fixed(1), Fixed(ZeroDivisionError())]).finish()


@pytest.mark.parametrize(
    ("primary", "limit", "expected"),
    [
        (50, 0, 50),
        (50, 50, 50),
        (51, 50, 60),
        (CapacityError("full"), 0, 60),
    ],
    ids=["no-limit", "within", "over", "exhausted"],
)
def test_fallback(primary, limit, expected):
    made = []

    def fallback():
        made.append(Fixed(60))
        return made[-1]

    first = Fixed(primary)
    heap = HeapWithFallback(first, fallback, limit)
    assert replay(heap).heap_size == expected
    if expected == 60:
        assert made[0].calls == first.calls
    else:
        assert not made


def test_fallback_passes_other_errors_on():
    with pytest.raises(ZeroDivisionError):
        replay(HeapWithFallback(Fixed(ZeroDivisionError()), lambda: Fixed(1)))


def test_composites_place_like_their_parts():
    alone = GlobalDecreasingSizeBestFitHeap()
    best = ChooseBestHeap([GlobalDecreasingSizeBestFitHeap()])
    assert replay(alone) == replay(best)
