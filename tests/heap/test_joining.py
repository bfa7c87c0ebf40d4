"""Joining items into blocks: what packs the blocks packs the items."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from heap.packing_oracle import guillotine, overlaps
from msa.heap import Buffer
from msa.heap.packing.instance import build_instance
from msa.heap.packing.search.driver import Budget, build_core
from msa.heap.packing.search.joining import can_join, join

spans = st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 3)).map(
    lambda row: (row[0], row[0] + row[1], row[2])
)
shares = st.sampled_from([0.0, 0.5, 1.0])


def core_of(buffers):
    core = build_core(build_instance(buffers), 10**6, Budget(10**9))
    assert core is not None
    return core


def joined(rows, in_time, in_space, seed=0):
    core = core_of([Buffer(n, *row) for n, row in enumerate(rows)])
    return core, join(core, in_time, in_space, np.random.default_rng(seed))


def section_loads(core):
    """The summed sizes per section, most of them by a plain count."""
    loads = {}
    for low, high, size in zip(
        core.low.tolist(), core.high.tolist(), core.size.tolist(), strict=True
    ):
        for section in core.section_ids[low:high].tolist():
            loads[section] = loads.get(section, 0) + size
    return loads


@settings(max_examples=80, deadline=None)
@given(
    st.lists(spans, min_size=1, max_size=14),
    shares,
    shares,
    st.integers(0, 9),
    st.data(),
)
def test_28_4_what_packs_the_blocks_packs_the_items(
    rows, in_time, in_space, seed, data
):
    _, blocks = joined(rows, in_time, in_space, seed)
    count = blocks.core.items
    assert set(blocks.block.tolist()) == set(range(count))
    # Any packing of the blocks: first fit in some order.
    order = data.draw(st.permutations(range(count)))
    shapes = list(
        zip(
            blocks.core.low.tolist(),
            blocks.core.high.tolist(),
            blocks.core.size.tolist(),
            strict=True,
        )
    )
    offsets = {}
    for block in order:
        at = 0
        while overlaps([shapes[b] for b in (*offsets, block)], [*offsets.values(), at]):
            at += 1
        offsets[block] = at
    placed = [
        offsets[b] + i
        for b, i in zip(blocks.block.tolist(), blocks.inside.tolist(), strict=True)
    ]
    assert not overlaps(rows, placed)
    tops = [offsets[b] + shapes[b][2] for b in range(count)]
    assert max(p + row[2] for p, row in zip(placed, rows, strict=True)) <= max(tops)


@settings(max_examples=80, deadline=None)
@given(st.lists(spans, min_size=1, max_size=14), shares, shares, st.integers(0, 9))
def test_28_4_joining_adds_no_load(rows, in_time, in_space, seed):
    core, blocks = joined(rows, in_time, in_space, seed)
    before, after = section_loads(core), section_loads(blocks.core)
    assert max(before.values()) == max(after.values())
    for section, load in after.items():
        assert load == before[section]


def test_shares_of_nothing_and_of_all():
    # Two halves of one buffer cut in time, two cut in space, and one alone.
    rows = [(0, 2, 4), (2, 5, 4), (0, 5, 3), (0, 5, 2), (5, 6, 7)]
    _, apart = joined(rows, 0, 0)
    assert apart.core.items == 5
    _, in_time = joined(rows, 1, 0)
    assert sorted(in_time.core.size.tolist()) == [2, 3, 4, 7]
    _, in_space = joined(rows, 0, 1)
    assert sorted(in_space.core.size.tolist()) == [4, 4, 5, 7]
    _, both = joined(rows, 1, 1)
    # What was laid end to end has the lifetime of the other two: one block.
    assert sorted(both.core.size.tolist()) == [7, 9]


def test_pins_and_alignments_stay_alone():
    buffers = [
        Buffer(0, 0, 2, 4, offset=8),
        Buffer(1, 2, 4, 4),
        Buffer(2, 0, 2, 4, alignment=3),
        Buffer(3, 2, 4, 4, offset=8),
    ]
    core = core_of(buffers)
    assert can_join(core)
    assert join(core, 1, 1, np.random.default_rng(0)).core.items == 4
    gaps = core_of([Buffer(0, 0, 4, 4, gaps=((1, 2),)), Buffer(1, 0, 4, 4)])
    assert not can_join(gaps)


def cut(rows, share, random_):
    """Rows with some of them cut in time or in space; they fit as before."""
    boxes = []
    for start, end, size in rows:
        if random_.random() < share and end - start > 1:
            at = random_.randrange(start + 1, end)
            boxes += [(start, at, size), (at, end, size)]
        elif random_.random() < share and size > 1:
            at = random_.randrange(1, size)
            boxes += [(start, end, at), (start, end, size - at)]
        else:
            boxes.append((start, end, size))
    return boxes


@pytest.mark.parametrize("seed", range(3))
def test_cut_buffers_fit_where_the_whole_ones_do(seed):
    random_ = random.Random(seed)
    whole = random_.sample(guillotine(70, random_, 1 << 12, 200), 60)
    plan = msa.pack([(n, *row) for n, row in enumerate(whole)])
    pieces = cut(whole, 0.4, random_)
    random_.shuffle(pieces)
    again = msa.pack([(n, *row) for n, row in enumerate(pieces)], capacity=plan.height)
    again.verify()
