"""The interval tree against rows worked out by hand and a naive list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msa.errors import PackingError
from msa.heap import BufferIntervalTree, Chunk
from msa.heap.interval_art import interval_art


def tree_of(*entries):
    tree = BufferIntervalTree()
    for start, end, offset, stop in entries:
        tree.add(start, end, Chunk.from_end(offset, stop))
    return tree


THREE = [(15, 25, 0, 16), (15, 19, 16, 48), (20, 22, 32, 64)]


@pytest.mark.parametrize(
    ("query", "count"),
    [((10, 25), 2), ((5, 15), 1), ((46, 50), 0), ((36, 36), 2), ((25, 10), 0)],
    ids=["10.7-both", "10.7-one", "10.7-none", "10.7-inclusive", "10.7-empty-query"],
)
def test_overlap_counts(query, count):
    tree = tree_of((20, 36, 0, 8), (1, 45, 8, 16))
    assert tree.num_chunks_overlapping(*query) == count
    assert len(tree.chunks_overlapping(*query)) == count


def test_remove_is_by_times_and_offset():
    tree = tree_of((1, 2, 0, 8), (1, 2, 8, 16), (1, 2, 8, 16))
    assert tree.remove(1, 2, Chunk(8, 8))
    assert [entry.chunk.offset for entry in tree] == [0, 8]
    assert not tree.remove(1, 3, Chunk(8, 8))
    assert tree.remove(1, 2, Chunk(8, 999))
    assert not tree.remove(1, 2, Chunk(8, 8))
    assert len(tree) == 1


def test_inverted_intervals_are_kept_and_never_match():
    tree = tree_of((5, 3, 0, 8))
    assert tree.num_chunks_overlapping(0, 9) == 0
    assert len(tree) == 1
    tree.check()
    assert tree.remove(5, 3, Chunk(0, 8))


def test_memory_used():
    assert tree_of(*THREE).memory_used_in_interval(18, 23) == [48, 48, 48, 48, 48, 16]


@pytest.mark.parametrize(
    ("query", "height"),
    [((15, 16), 16), ((15, 19), 48), ((15, 22), 64), ((23, 24), 48), ((25, 26), 16)],
    ids=lambda value: f"10.7-{value}",
)
def test_heap_size(query, height):
    tree = tree_of((15, 26, 0, 16), (17, 24, 16, 48), (20, 22, 32, 64))
    assert tree.heap_size_in_interval(*query) == height


def test_heap_size_of_nothing_and_of_an_inverted_query():
    assert BufferIntervalTree().heap_size_in_interval(0, 5) == 0
    with pytest.raises(PackingError):
        BufferIntervalTree().heap_size_in_interval(5, 0)


def test_art():
    text = interval_art(tree_of(*THREE), 18, 23, group_size=3)
    assert text.splitlines() == [
        "Memory map for time: [18,23], memory_block_size: 16, group_size: 3",
        " ..# ##. 64",
        " ### ##. 48",
        " ##. ... 32",
        " ### ### 16",
        " 890 123",
    ]


def test_art_too_large_lists_nodes():
    text = interval_art(tree_of((0, 4, 0, 128)), 0, 4096, group_size=3)
    assert "start: 0 end: 4 chunk: [0,128)" in text


def test_art_of_nothing():
    text = interval_art(BufferIntervalTree(), 0, 9, group_size=3)
    assert text == "No nodes overlapping in time. Memory is free!"


def test_iteration_is_by_start_end_offset():
    entries = [(3, 9, 0, 1), (1, 900, 5, 6), (1, 2, 8, 9), (1, 2, 0, 1)]
    assert [(e.start, e.end, e.chunk.offset) for e in tree_of(*entries)] == sorted(
        entry[:3] for entry in entries
    )


times = st.integers(0, 60)
entries = st.tuples(times, times, st.integers(0, 20), st.integers(20, 40))


@given(st.lists(entries, max_size=30), st.lists(entries, max_size=10), times, times)
def test_agrees_with_a_list(added, removed, start, end):
    tree, naive = tree_of(*added), list(added)
    for entry in [*removed, *added[::3]]:
        first, last, offset, stop = entry
        found = [e for e in naive if e[:3] == entry[:3]]
        assert tree.remove(first, last, Chunk.from_end(offset, stop)) == bool(found)
        if found:
            gone = min(found)
            naive.remove(gone)
    tree.check()
    expected = sorted(e for e in naive if e[0] <= end and e[1] >= start <= end >= 0)
    expected = [e for e in expected if e[0] <= e[1]]
    assert sorted(tree.entries_overlapping(start, end)) == expected
    assert len(tree) == len(naive)
    assert [(e.start, e.end) for e in tree] == sorted(e[:2] for e in naive)
    if start <= end:
        used = [
            sum(e[3] - e[2] for e in expected if e[0] <= t <= e[1])
            for t in range(start, end + 1)
        ]
        assert tree.memory_used_in_interval(start, end) == used


far = st.integers(-5, 40_000)
spread = st.builds(
    lambda start, width, offset: (start, start + width, offset, offset + 8),
    far,
    st.one_of(st.integers(0, 20), st.integers(0, 30_000)),
    st.integers(0, 20),
)


@given(st.lists(spread, max_size=40), far, st.integers(0, 40_000))
def test_agrees_with_a_list_over_many_blocks(added, start, width):
    tree, end = tree_of(*added), start + width
    tree.check()
    expected = sorted(e for e in added if e[0] <= end and e[1] >= start)
    assert sorted(tree.entries_overlapping(start, end)) == expected
    everything = tree.entries_overlapping(-(2**62), 2**62)
    assert sorted(everything) == sorted(added)
    assert [(e.start, e.end) for e in tree] == sorted(e[:2] for e in added)
    for first, last, offset, stop in added[::2]:
        assert tree.remove(first, last, Chunk.from_end(offset, stop))
    assert len(tree) == len(added[1::2])
    tree.check()
