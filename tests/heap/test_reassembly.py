"""Reassembly of perfect packings: blocks are sound, cut rectangles come together."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from heap.packing_oracle import guillotine, overlaps
from msa.heap import Buffer
from msa.heap.packing.instance import build_instance
from msa.heap.packing.reassembly import is_full, reassemble
from msa.heap.packing.sections import compute_sections

#: Five rectangles around a square: no cut from edge to edge parts them.
PINWHEEL = [(0, 2, 1), (2, 3, 2), (1, 3, 1), (0, 1, 2), (1, 2, 1)]


def joined(rows, effort, seed=0):
    instance = build_instance([Buffer(n, *row) for n, row in enumerate(rows)])
    sections = compute_sections(instance)
    assert is_full(instance, sections)
    random_ = np.random.default_rng(seed)
    return reassemble(instance, sections, effort=effort, random=random_), sections


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([4, 16, 1000]))
def test_blocks_are_rectangles_without_a_hole(seed, count, grid):
    count = min(count, grid)
    rows = guillotine(count, random.Random(seed), grid, grid)
    blocks, sections = joined(rows, effort=20)
    for block in range(blocks.count):
        members = np.flatnonzero(blocks.block == block).tolist()
        inside = [int(blocks.inside[m]) for m in members]
        assert not overlaps([rows[m] for m in members], inside)
        assert min(inside) == 0
        assert (
            max(o + rows[m][2] for o, m in zip(inside, members, strict=True))
            == (blocks.size[block])
        )
        # No hole: the areas, in sections, add up.
        spans = sections.high[members] - sections.low[members]
        area = sum(rows[m][2] * int(s) for m, s in zip(members, spans, strict=True))
        width = int(blocks.high[block] - blocks.low[block])
        assert area == width * int(blocks.size[block])
    assert set(blocks.block.tolist()) == set(range(blocks.count))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("grid", [32, 1 << 20])
def test_a_cut_rectangle_becomes_one_block(seed, grid):
    rows = guillotine(80, random.Random(seed), grid, 100)
    assert joined(rows, effort=20_000)[0].count == 1


def test_a_pinwheel_stays_in_blocks_and_is_packed_by_the_search():
    assert joined(PINWHEEL, effort=100)[0].count == 5
    plan = msa.pack([(n, *row) for n, row in enumerate(PINWHEEL)])
    plan.verify()
    assert (plan.height, plan.optimal) == (3, True)


def test_a_pinwheel_of_cut_rectangles_is_packed():
    rows = []
    for n, (start, end, size) in enumerate(PINWHEEL):
        width = (end - start) * 100
        for s, e, z in guillotine(20, random.Random(n), size * 1000, width):
            rows.append((len(rows), start * 100 + s, start * 100 + e, z))
    plan = msa.pack(rows, capacity=3000)
    plan.verify()
    assert plan.height == 3000


@pytest.mark.parametrize(
    "rows",
    [
        [Buffer(0, 0, 2, 1), Buffer(1, 2, 4, 2)],  # sections of different loads
        [Buffer(0, 0, 2, 1, offset=0)],
        [Buffer(0, 0, 4, 1, gaps=((1, 2),))],
        [Buffer(0, 0, 2, 3, alignment=2)],
        [],
    ],
)
def test_what_cannot_be_joined_is_not_full(rows):
    instance = build_instance(rows)
    assert not is_full(instance, compute_sections(instance))


def test_the_result_depends_on_the_seed_alone():
    rows = guillotine(60, random.Random(5), 64, 64)
    first, again = (joined(rows, effort=50, seed=3)[0] for _ in range(2))
    assert first.block.tolist() == again.block.tolist()
    assert first.inside.tolist() == again.inside.tolist()
    assert first.spent == again.spent
