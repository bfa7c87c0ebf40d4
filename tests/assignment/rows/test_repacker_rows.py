"""Rows B1.11 and B2: rings of blocks, and the best-fit repacker."""

from __future__ import annotations

import pytest

from msa.heap import AllocatedSlice, AllocationBlock, BestFitRepacker, colocate
from msa.heap.repacker import validate_blocks


def block(number: int, start: int, end: int, size: int, *parts: tuple[int, int]):
    """A block; `parts` are slices (size, start) by offset."""
    slices, offset = [], 0
    for part, when in parts:
        slices.append(AllocatedSlice(part, offset, when))
        offset += part
    return AllocationBlock(start, end, size, id=number, original_slices=slices or None)


def in_order(ring):
    """Blocks are placed as they are numbered."""
    return (ring[0].id,)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rings_from_any_of_their_blocks_b1_11(count) -> None:
    blocks = [block(n, n, n, 8) for n in range(count)]
    if count > 1:
        colocate(blocks)
    for start in blocks:
        members = list(start.ring())
        assert members[0] is start
        assert len(members) == count
        assert {b.id for b in members} == set(range(count))


def test_longest_first_b2_1() -> None:
    a, b = block(0, 10, 20, 10), block(1, 5, 25, 15)
    assert BestFitRepacker(100).repack([a, b])
    assert (a.offset, b.offset) == (15, 0)


def test_ring_of_equal_duration_b2_2() -> None:
    one, two, c = block(0, 0, 2, 10), block(1, 10, 20, 10), block(2, 5, 25, 15)
    colocate([one, two])
    assert BestFitRepacker(100).repack([one, two, c])
    # 0..20 and 5..25 last equally long, so the larger goes first.
    assert (one.offset, two.offset, c.offset) == (15, 15, 0)


def test_more_than_there_is_b2_3() -> None:
    rows = [(10, 20, 10), (5, 25, 15), (15, 20, 10), (12, 22, 50), (10, 18, 20)]
    blocks = [block(n, *row) for n, row in enumerate(rows)]
    assert not BestFitRepacker(100).repack(blocks)
    assert [b.offset for b in blocks] == [-1] * 5
    # At 15..18 all of them are there: 105 bytes.
    assert BestFitRepacker(105).repack(blocks)


def test_members_take_their_own_size_b2_4() -> None:
    one, two = block(0, 0, 2, 5), block(1, 10, 20, 10)
    c, d = block(2, 9, 11, 2), block(3, 1, 2, 2)
    colocate([one, two])
    assert BestFitRepacker(100).repack([one, two, c, d])
    assert (one.offset, two.offset) == (0, 0)
    # c meets the large member of the ring, d only the small one.
    assert (c.offset, d.offset) == (10, 5)


def test_slices_wrap_around_neighbours_b2_5() -> None:
    a = block(0, 0, 30, 1)
    b = block(1, 0, 9, 2)
    c = block(2, 5, 20, 4, (2, 5), (2, 10))
    d = block(3, 12, 30, 2, (1, 12), (1, 21))
    e = block(4, 0, 11, 2, (1, 0), (1, 10))
    f = block(5, 0, 4, 2)
    blocks = [a, b, c, d, e, f]
    assert BestFitRepacker(7, order=in_order, validate=True).repack(blocks)
    # c: its late half takes the place of b, its early half is above it.
    assert (a.offset, b.offset, c.offset) == (0, 1, 1)
    assert c.repacked_slices == (AllocatedSlice(2, 1, 10), AllocatedSlice(2, 3, 5))
    # d: its early half is above c, its late half under it when c is gone.
    assert d.offset == 4
    assert d.repacked_slices == (AllocatedSlice(1, 4, 21), AllocatedSlice(1, 5, 12))
    # e is above all of c; f is under it, where the early half of c is not yet.
    assert (e.offset, f.offset) == (5, 3)
    validate_blocks(blocks)
    assert max(x.offset + x.size for x in blocks) == 7


def test_sizes_of_slices_keep_their_times_b2_6() -> None:
    a = block(0, 0, 10, 1)
    c = block(1, 5, 20, 3, (1, 5), (2, 11))
    assert BestFitRepacker(4, order=in_order, validate=True).repack([a, c])
    # Were the late slice below, three bytes were enough; its size forbids it.
    assert (a.offset, c.offset) == (0, 1)
    assert c.repacked_slices == (AllocatedSlice(1, 1, 5), AllocatedSlice(2, 2, 11))


def test_small_slice_stays_early_b2_7() -> None:
    a = block(0, 0, 20, 2)
    c = block(1, 5, 20, 3, (1, 5), (2, 11))
    b = block(2, 0, 10, 2)
    assert BestFitRepacker(5, order=in_order, validate=True).repack([a, c, b])
    assert (a.offset, c.offset, b.offset) == (0, 2, 3)
    assert c.repacked_slices == (AllocatedSlice(1, 2, 5), AllocatedSlice(2, 3, 11))
