"""Global best fit: tables of calls and offsets, and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.errors import InternalError
from msa.heap import (
    BufferInterval,
    Chunk,
    ConstrainedGlobalDecreasingSizeBestFitHeap,
    GlobalDecreasingSizeBestFitHeap,
    SlicedBufferInterval,
)


def replay(heap, calls):
    """Calls such as `A10` (alloc), `S C A 40` (share), `F A`; names are letters."""
    sizes = {}
    for call in calls:
        match call:
            case ("A", name, size):
                heap.alloc(ord(name), size)
                sizes[name] = size
            case ("S", name, other, size):
                heap.share_with(ord(name), ord(other), size)
                sizes[name] = size
            case ("F", name):
                heap.free(ord(name), sizes[name])
    return heap.finish()


def parse(text):
    calls = []
    for word in text.split():
        if word[0] == "F":
            calls += [("F", name) for name in word[1:]]
        elif "=" in word:
            name, rest = word.split("=")
            calls.append(("S", name, rest[0], int(rest[1:])))
        else:
            calls.append(("A", word[0], int(word[1:])))
    return calls


GLOBAL = [
    ("decreasing", 1, "A10 B30 C20 D40 FABCD", 100, "A90 B40 C70 D0"),
    ("alignment", 20, "A10 B20 C50 FA D40 FBCD", 120, "A60 B100 C0 D60"),
    ("best-fit", 1, "A10 B20 C40 FA D30 E50 FBCDE", 140, "A90 B120 C50 D90 E0"),
    ("colocated", 1, "A40 FA B20 FB C=A40 FC", 40, "A0 B0 C0"),
    ("colocated-II", 1, "A40 FA B20 C=A40 FC FB", 60, "A0 B40 C0"),
    ("colocated-III", 1, "A10 FA B30 C=A10 FC FB", 40, "A30 B0 C30"),
    ("smaller-share", 1, "A40 FA B20 C=A30 FC FB", 60, "A0/40 B40 C0/40"),
    ("larger-share", 1, "A40 FA B20 C=A50 FC FB", 70, "A0/50 B50 C0/50"),
    ("empty", 1, "", 0, ""),
]


@pytest.mark.parametrize(
    ("alignment", "calls", "height", "offsets"),
    [row[1:] for row in GLOBAL],
    ids=[f"10.4-{row[0]}" for row in GLOBAL],
)
def test_global(alignment, calls, height, offsets):
    result = replay(GlobalDecreasingSizeBestFitHeap(alignment), parse(calls))
    assert result.heap_size == height
    assert len(result.heaps) == 1
    for word in offsets.split():
        offset, _, size = word[1:].partition("/")
        chunk = result.chunk(ord(word[0]))
        assert chunk.offset == int(offset)
        if size:
            assert chunk.size == int(size)
    assert len(result.heaps[0].chunk_map) == len(offsets.split())


def test_empty_buffers_get_an_empty_chunk():
    heap = GlobalDecreasingSizeBestFitHeap()
    heap.alloc(0, 0)
    heap.share_with(1, 0, 0)
    heap.free(0, 0)
    assert heap.finish().chunk(1) == Chunk(0, 0)


def test_free_of_another_size_is_refused():
    heap = GlobalDecreasingSizeBestFitHeap()
    heap.alloc(0, 8)
    with pytest.raises(InternalError):
        heap.free(0, 16)


# size, start, end, preferred, expected offset, expected heap size
CANDIDATES = [
    (5, 6, 10, 5, 5, 10),
    (10, 3, 5, -1, 0, 10),
    (5, 2, 8, -1, 10, 15),
    (5, 0, 2, 10, 0, 15),
    (10, 11, 13, 10, 10, 20),
    (5, 3, 5, 20, 20, 25),
    (10, 4, 8, 15, 25, 35),
]


def test_chunk_candidates_10_5():
    heap = GlobalDecreasingSizeBestFitHeap()
    for number, (size, start, end, preferred, offset, height) in enumerate(CANDIDATES):
        interval = BufferInterval(number, size, start, end)
        chunk = heap.find_chunk_candidate(interval, preferred)
        assert (chunk.offset, chunk.size) == (offset, size)
        heap.commit(interval, chunk)
        assert heap.heap_size == height


def test_sliced_candidates_10_5():
    heap = GlobalDecreasingSizeBestFitHeap()
    a = BufferInterval(0, 10, 5, 15)
    heap.commit(a, heap.find_chunk_candidate(a))
    c = BufferInterval(2, 15, 10, 20, need_allocation=False)
    b = BufferInterval(1, 10, 25, 35, colocations=(2,))
    heap.intervals = {1: b, 2: c}
    sliced = SlicedBufferInterval.of(b).with_slices([5, 5])
    sliced = sliced.with_inclusive_start_times([25, 30])
    assert heap.find_chunk_candidates(sliced) == [Chunk(10, 5), Chunk(15, 5)]
    heap.interval_tree.add(25, 30, Chunk(10, 5))
    whole = BufferInterval(1, 10, 30, 35, colocations=(2,))
    heap.commit(whole, Chunk(10, 10))
    assert heap.chunk_map[1] == heap.chunk_map[2] == Chunk(10, 15)
    for number, (size, start, end, offset) in enumerate(
        [(5, 25, 35, 0), (10, 30, 35, 25), (10, 25, 29, 15)], 3
    ):
        interval = BufferInterval(number, size, start, end)
        chunk = heap.find_chunk_candidate(interval)
        assert chunk.offset == offset
        heap.commit(interval, chunk)
    assert heap.heap_size == 35


def test_latest_end_at_preferred_offset():
    heap = GlobalDecreasingSizeBestFitHeap(alignment=8)
    heap.interval_tree.add(10, 12, Chunk(0, 10))
    heap.interval_tree.add(20, 22, Chunk(24, 8))
    latest = heap.find_latest_end_with_free_chunk_at_preferred_offset
    # [0,10) is taken up to 16 because of the alignment.
    assert latest(BufferInterval(0, 8, 5, 30), 8) == 9
    assert latest(BufferInterval(0, 8, 5, 30), 16) == 30
    assert latest(BufferInterval(0, 16, 5, 30), 16) == 19
    assert latest(BufferInterval(0, 8, 11, 30), 0) == 9


CONSTRAINED = [
    ("limit", 50, 1, "spatial", "A10 B30 C20 D40 FABCD", 100, ["AD", "BC"]),
    ("align", 70, 20, "spatial", "A10 B20 C50 FA D40 FBCD", 130, ["AC", "BD"]),
    ("share", 50, 20, "spatial", "A30 FA B20 C=A40 FC FB", 60, ["AC", "B"]),
    ("fast-merge", 50, 1, "fast_merge", "A10 B30 C20 D40 FABCD", 100, ["AB", "C", "D"]),
    ("fast-split", 50, 1, "fast_split", "A10 B30 C20 D40 FABCD", 100, ["AD", "BC"]),
]


@pytest.mark.parametrize(
    ("limit", "alignment", "strategy", "calls", "height", "heaps"),
    [row[1:] for row in CONSTRAINED],
    ids=[f"10.6-{row[0]}" for row in CONSTRAINED],
)
def test_constrained(limit, alignment, strategy, calls, height, heaps):
    heap = ConstrainedGlobalDecreasingSizeBestFitHeap(limit, alignment, strategy)
    result = replay(heap, parse(calls))
    assert result.heap_size == height
    members = ["".join(sorted(map(chr, one.chunk_map))) for one in result.heaps]
    assert members == heaps


def test_constrained_offsets_10_6():
    heap = ConstrainedGlobalDecreasingSizeBestFitHeap(50)
    result = replay(heap, parse("A10 B30 C20 D40 FABCD"))
    assert [result.chunk(ord(name)).offset for name in "DA"] == [0, 40]
    heap = ConstrainedGlobalDecreasingSizeBestFitHeap(70, 20)
    result = replay(heap, parse("A10 B20 C50 FA D40 FBCD"))
    assert [result.chunk(ord(name)).offset for name in "CA"] == [0, 60]
    heap = ConstrainedGlobalDecreasingSizeBestFitHeap(50, 20)
    result = replay(heap, parse("A30 FA B20 C=A40 FC FB"))
    assert [result.chunk(ord(name)) for name in "AC"] == [Chunk(0, 40)] * 2


def test_constrained_with_nothing_has_one_heap():
    heap = ConstrainedGlobalDecreasingSizeBestFitHeap(50)
    assert [one.heap_size for one in heap.finish().heaps] == [0]


@st.composite
def streams(draw):
    """A stream of allocations with shares, every buffer freed in the end."""
    calls, live, done, size_of = [], [], [], {}
    for number in range(draw(st.integers(1, 12))):
        if live and draw(st.booleans()):
            gone = draw(st.sampled_from(live))
            live.remove(gone)
            done.append(gone)
            calls.append(("free", gone, size_of[gone]))
        if done and draw(st.integers(0, 3)) == 0:
            other = done.pop(draw(st.integers(0, len(done) - 1)))
            size_of[number] = size_of[other]
            calls.append(("share_with", number, other, size_of[number]))
        else:
            size_of[number] = draw(st.integers(1, 40))
            calls.append(("alloc", number, size_of[number]))
        live.append(number)
    return calls + [("free", n, size_of[n]) for n in live]


HEAPS = {
    "spatial": lambda: GlobalDecreasingSizeBestFitHeap(4),
    "temporal": lambda: GlobalDecreasingSizeBestFitHeap(4, "temporal"),
    "limited": lambda: ConstrainedGlobalDecreasingSizeBestFitHeap(50, 4),
    "merge": lambda: ConstrainedGlobalDecreasingSizeBestFitHeap(50, 4, "fast_merge"),
    "split": lambda: ConstrainedGlobalDecreasingSizeBestFitHeap(50, 4, "fast_split"),
}


@pytest.mark.parametrize("make", HEAPS.values(), ids=HEAPS)
@given(calls=streams())
def test_no_two_live_buffers_overlap(make, calls):
    heap = make()
    for name, *arguments in calls:
        getattr(heap, name)(*arguments)
    result = heap.finish()
    intervals = list(heap.intervals.values())
    roots = {i.buffer: i.buffer for i in intervals}
    for name, *arguments in calls:
        if name == "share_with":
            roots[arguments[0]] = roots[arguments[1]]
    assert sum(len(one.chunk_map) for one in result.heaps) == len(intervals)
    for one in result.heaps:
        here = [i for i in intervals if i.buffer in one.chunk_map]
        assert max(one.chunk_map[i.buffer].end for i in here) == one.heap_size
        for a in here:
            assert one.chunk_map[a.buffer].offset % 4 == 0
            for b in here:
                if roots[a.buffer] == roots[b.buffer]:
                    same = one.chunk_map[a.buffer].offset
                    assert same == one.chunk_map[b.buffer].offset
                elif a.start <= b.end and b.start <= a.end:
                    assert not one.chunk_map[a.buffer].overlaps(one.chunk_map[b.buffer])
