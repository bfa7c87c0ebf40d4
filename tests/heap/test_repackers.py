"""Repackers: rows by hand, no overlap, nothing changed on failure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.errors import InternalError
from msa.heap import (
    AllocatedSlice,
    AllocationBlock,
    BestFitRepacker,
    SearchRepacker,
    colocate,
)
from msa.heap.repacker import block_rectangles, validate_blocks


def blocks_of(*rows):
    """Rows (start, end, size[, initial offset])."""
    return [
        AllocationBlock(row[0], row[1], row[2], id=n, initial_offset=(*row, -1)[3])
        for n, row in enumerate(rows)
    ]


def offsets(blocks):
    return [block.offset for block in blocks]


def test_simple():
    blocks = blocks_of((10, 20, 10), (5, 25, 15))
    assert BestFitRepacker(100).repack(blocks)
    # The longest goes first.
    assert offsets(blocks) == [15, 0]


def test_colocated_blocks_share_their_offset():
    blocks = blocks_of((0, 2, 10), (10, 20, 10), (5, 25, 15))
    colocate(blocks[:2])
    assert BestFitRepacker(100).repack(blocks)
    # The ring spans [0, 20] from its leader on and has 20 steps, as the third has.
    assert blocks[0].offset == blocks[1].offset
    validate_blocks(blocks)


def test_too_large_changes_nothing():
    blocks = blocks_of((10, 20, 10, 7), (5, 25, 15, 8))
    assert not BestFitRepacker(20).repack(blocks)
    assert offsets(blocks) == [-1, -1]
    assert [block.initial_offset for block in blocks] == [7, 8]
    assert not SearchRepacker(20).repack(blocks)
    assert offsets(blocks) == [-1, -1]


def test_custom_order():
    blocks = blocks_of((10, 20, 10), (5, 25, 15))
    smallest_first = BestFitRepacker(100, order=lambda ring: (ring[0].size,))
    assert smallest_first.repack(blocks)
    assert offsets(blocks) == [0, 10]


def test_alignment():
    blocks = blocks_of((0, 9, 10), (0, 8, 10))
    assert BestFitRepacker(100, 16).repack(blocks)
    assert offsets(blocks) == [0, 16]


def slices(*rows):
    return [AllocatedSlice(*row) for row in rows]


def test_slices_arrive_around_others():
    # Placed in this order: late at 0, sliced at 2, and the tall one, which is gone
    # when the second slice arrives at 20, goes under it.
    late = AllocationBlock(0, 40, 2, id=0)
    sliced = AllocationBlock(
        10, 30, 4, id=1, original_slices=slices((2, 0, 10), (2, 2, 20))
    )
    tall = AllocationBlock(0, 15, 8, id=2)
    blocks = [tall, late, sliced]
    assert BestFitRepacker(12, validate=True).repack(blocks)
    assert [late.offset, sliced.offset, tall.offset] == [0, 2, 4]
    assert sliced.repacked_slices == (
        AllocatedSlice(2, 2, 10),
        AllocatedSlice(2, 4, 20),
    )
    assert not BestFitRepacker(11).repack(blocks)


def test_sliced_colocations_fit_together():
    holder = AllocationBlock(0, 12, 6, id=0)
    sliced = AllocationBlock(
        10, 20, 6, id=1, original_slices=slices((3, 0, 10), (3, 3, 15))
    )
    partner = AllocationBlock(30, 40, 6, id=2)
    twin = AllocationBlock(
        50, 60, 6, id=3, original_slices=slices((3, 0, 50), (3, 3, 55))
    )
    colocate([sliced, partner, twin])
    blocks = [holder, sliced, partner, twin]
    assert BestFitRepacker(20, validate=True).repack(blocks)
    assert sliced.offset == partner.offset == twin.offset
    for block in (sliced, twin):
        assert min(s.offset for s in block.repacked_slices) == block.offset
        original = {(s.size, s.inclusive_start_time) for s in block.original_slices}
        repacked = {(s.size, s.inclusive_start_time) for s in block.repacked_slices}
        assert original == repacked


def test_search_finds_what_best_fit_misses():
    # Longest first puts the first block at 3, so that the second has to lie above.
    rows = [(0, 1, 2), (0, 0, 4), (4, 6, 2), (1, 4, 3)]
    blocks = blocks_of(*rows)
    assert not BestFitRepacker(6).repack(blocks)
    assert BestFitRepacker(9).repack(blocks)
    assert SearchRepacker(6).repack(blocks)
    validate_blocks(blocks)
    assert max(block.offset + block.size for block in blocks) == 6


def test_search_keeps_a_packing_that_fits():
    blocks = blocks_of((0, 1, 2, 4), (0, 0, 4, 0), (4, 6, 2, 3), (1, 4, 3, 0))
    assert SearchRepacker(6, effort=0).repack(blocks)
    validate_blocks(blocks)


def test_rings_must_be_complete():
    blocks = blocks_of((0, 1, 4), (2, 3, 4))
    colocate(blocks)
    with pytest.raises(InternalError):
        BestFitRepacker(10).repack(blocks[:1])


def test_validation_fires():
    blocks = blocks_of((0, 5, 4), (5, 9, 4))
    for block in blocks:
        block.offset = 0
    with pytest.raises(InternalError):
        validate_blocks(blocks)
    blocks[1].offset = 4
    validate_blocks(blocks)
    colocate(blocks)
    with pytest.raises(InternalError):
        validate_blocks(blocks)


@st.composite
def problems(draw):
    """Blocks with rings (disjoint in time) and slices."""
    blocks = []
    for ring in range(draw(st.integers(1, 5))):
        time, members = draw(st.integers(0, 6)), []
        for _ in range(draw(st.integers(1, 3))):
            start = time
            end = start + draw(st.integers(0, 6))
            pieces = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
            block = AllocationBlock(start, end, sum(pieces), id=len(blocks))
            if len(pieces) > 1 and draw(st.booleans()):
                starts = [start] + [
                    draw(st.integers(start, end)) for _ in range(len(pieces) - 1)
                ]
                at, made = 0, []
                for size, first in zip(pieces, starts, strict=True):
                    made.append(AllocatedSlice(size, at, first))
                    at += size
                block.original_slices = tuple(made)
            blocks.append(block)
            members.append(block)
            time = end + 1 + draw(st.integers(0, 2))
        colocate(members)
        del ring
    return blocks


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(4, 30), st.sampled_from([1, 4]))
def test_repackers_never_overlap(blocks, capacity, alignment):
    for repacker in (
        BestFitRepacker(capacity, alignment),
        BestFitRepacker(capacity, alignment, permutations="all"),
        SearchRepacker(capacity, alignment, effort=200),
    ):
        for block in blocks:
            block.offset, block.repacked_slices = -1, None
        if not repacker.repack(blocks):
            assert all(b.offset == -1 and b.repacked_slices is None for b in blocks)
            continue
        validate_blocks(blocks)
        for block in blocks:
            assert block.offset % alignment == 0
            for *_, top in block_rectangles(block, block.offset):
                assert top <= capacity
            if block.original_slices:
                assert sorted(
                    (s.size, s.inclusive_start_time) for s in block.repacked_slices
                ) == sorted(
                    (s.size, s.inclusive_start_time) for s in block.original_slices
                )
