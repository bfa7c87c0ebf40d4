"""The stages of `pack` one by one: sections, bounds, placement, decomposition."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heap.packing_oracle import overlaps, share_time
from msa.heap import Buffer, Reservation
from msa.heap.packing.bounds import height_with_free_space, lower_bound
from msa.heap.packing.decompose import decompose
from msa.heap.packing.instance import build_instance
from msa.heap.packing.occupied import Codec, OccupiedSpans
from msa.heap.packing.orders import compute_features, heuristics, range_maximum
from msa.heap.packing.placement import place
from msa.heap.packing.sections import compute_sections

spans = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 9)).map(
    lambda row: (row[0], row[0] + row[1], row[2])
)


def instance_of(rows, **options):
    return build_instance([Buffer(n, *row) for n, row in enumerate(rows)], **options)


@given(st.lists(spans, max_size=12))
def test_sections_are_the_maximal_live_sets(rows):
    sections = compute_sections(instance_of(rows))
    live = {
        frozenset(i for i, r in enumerate(rows) if r[0] <= time < r[1])
        for time in range(20)
    }
    maximal = {s for s in live if s and not any(s < other for other in live)}
    found = [
        frozenset(np.flatnonzero((sections.low <= k) & (k < sections.high)).tolist())
        for k in range(sections.count)
    ]
    assert set(found) == maximal
    assert len(found) == len(maximal)
    for k, members in enumerate(found):
        time = int(sections.time[k])
        assert members == {i for i, r in enumerate(rows) if r[0] <= time < r[1]}
        assert sections.load[k] == sum(rows[i][2] for i in members)


def bound_of(rows, **options):
    instance = build_instance(rows, **options)
    return lower_bound(instance, compute_sections(instance)).height


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        ([Buffer(0, 0, 2, 5), Buffer(1, 1, 3, 6)], {}, 11),
        ([Buffer(0, 0, 2, 5), Buffer(1, 2, 3, 6)], {}, 6),
        # One of the two is padded to 8; the other may be on top.
        ([Buffer(0, 0, 2, 5), Buffer(1, 1, 3, 6)], {"alignment": 8}, 13),
        # The free 6 bytes fit below the pin, the free 9 do not.
        ([Buffer(0, 0, 2, 6), Buffer(1, 0, 2, 4, offset=8)], {}, 12),
        ([Buffer(0, 0, 2, 9), Buffer(1, 0, 2, 4, offset=8)], {}, 13),
        # A reservation is no part of the height.
        ([Buffer(0, 0, 2, 6)], {"reserved": [Reservation(8, 4)]}, 6),
        ([Buffer(0, 0, 2, 9)], {"reserved": [Reservation(8, 4)]}, 13),
    ],
    ids=[
        "load",
        "apart",
        "padding",
        "below-pin",
        "around-pin",
        "reserved-above",
        "reserved",
    ],
)
def test_lower_bound(rows, options, expected):
    assert bound_of(rows, **options) == expected


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=5),
    st.integers(0, 30),
)
def test_height_with_free_space(used, need):
    taken = {a for low, size in used for a in range(low, low + size)}
    spans_ = sorted((low, low + size) for low, size in used)
    height = height_with_free_space(spans_, need)
    assert len(set(range(height)) - taken) == need
    assert not need or (height - 1) not in taken


@settings(max_examples=60, deadline=None)
@given(st.lists(spans, min_size=1, max_size=14), st.data())
def test_placement_is_first_fit(rows, data):
    order = data.draw(st.permutations(range(len(rows))))
    alignment = data.draw(st.sampled_from([1, 4]))
    instance = instance_of(rows, alignment=alignment)
    found = place(instance, np.array(order), "first").tolist()
    placed = {}
    for i in order:
        offset = 0
        while any(
            share_time(rows[i], rows[j])
            and offset < placed[j] + rows[j][2]
            and placed[j] < offset + rows[i][2]
            for j in placed
        ):
            offset += alignment
        placed[i] = offset
    assert found == [placed[i] for i in range(len(rows))]


@pytest.mark.parametrize("scale", [1, 2**32], ids=["packed", "wide"])
@pytest.mark.parametrize("rule", ["first", "best"])
def test_many_leaves_agree_with_the_naive_scan(rule, scale):
    random_ = random.Random(7)
    rows = []
    for _ in range(1500):
        start = random_.randrange(3000)
        length = random_.choice([1, 3, 30, 900])
        rows.append((start, start + length, random_.randint(1, 50) * scale + 1))
    instance = instance_of(rows)
    order = compute_features(instance, compute_sections(instance))
    chosen = heuristics(order)[0].order
    found = place(instance, chosen, rule)
    start, end, size = (np.array(column) for column in zip(*rows, strict=True))
    naive = np.zeros(len(rows), dtype=np.int64)
    placed = np.zeros(len(rows), dtype=bool)
    for i in chosen.tolist():
        near = np.flatnonzero(placed & (start < end[i]) & (end > start[i]))
        used = sorted(zip(naive[near], naive[near] + size[near], strict=True))
        best, top = None, 0
        for low, high in used:
            if low - top >= size[i] and (best is None or low - top < best[0]):
                best = (low - top, top)
                if rule == "first":
                    break
            top = max(top, high)
        naive[i] = best[1] if best else top
        placed[i] = True
    assert (found == naive).all()


def test_occupied_spans_are_exact():
    random_ = random.Random(3)
    rows = []
    for _ in range(1200):
        start = random_.randrange(2000)
        rows.append((start, start + random_.choice([1, 5, 200, 1500]), 4))
    instance = instance_of(rows)
    codec = Codec(10_000)
    occupied = OccupiedSpans(instance, codec)
    taken = {}
    for piece in random_.sample(range(len(rows)), 900):
        offset = random_.randrange(9_000)
        occupied.add(piece, offset, offset + 4)
        taken[piece] = offset
        if len(taken) % 50:
            continue
        for probe in random_.sample(range(len(rows)), 20):
            found = []
            occupied.query(probe, found)
            cells = set()
            for keys in found:
                for low, high in zip(*codec.decode(keys), strict=True):
                    cells |= set(range(low, high))
            expected = {
                address
                for other, at in taken.items()
                if share_time(rows[probe], rows[other])
                for address in range(at, at + 4)
            }
            assert cells == expected


def test_range_maximum():
    random_ = random.Random(1)
    values = np.array([random_.randrange(100) for _ in range(50)])
    ranges = [sorted(random_.sample(range(51), 2)) for _ in range(200)]
    low, high = (np.array(column) for column in zip(*ranges, strict=True))
    expected = [values[a:b].max() for a, b in ranges]
    assert range_maximum(values, low, high).tolist() == expected


@settings(max_examples=80, deadline=None)
@given(st.lists(spans, min_size=1, max_size=12))
def test_decomposition_is_exact(rows):
    instance = instance_of(rows)
    parts = decompose(instance, compute_sections(instance))
    for i, a in enumerate(rows):
        for j, b in enumerate(rows[:i]):
            if share_time(a, b) and parts.part[i] >= 0 and parts.part[j] >= 0:
                assert parts.part[i] == parts.part[j]
    # The floor holds the spanning items one above the other, below their parts.
    floor = [i for i in range(len(rows)) if parts.part[i] < 0]
    assert not overlaps([rows[i] for i in floor], [int(parts.offset[i]) for i in floor])
    for i in floor:
        for j, row in enumerate(rows):
            if parts.part[j] >= 0 and share_time(rows[i], row):
                top = parts.offset[i] + rows[i][2]
                assert top <= parts.shift[parts.part[j]]


def test_nested_lifetimes_are_all_floor():
    rows = [(k, 40 - k, 1) for k in range(20)]
    parts = decompose(instance_of(rows), compute_sections(instance_of(rows)))
    assert parts.parts == 0
    assert sorted(parts.offset.tolist()) == list(range(20))


def test_pins_and_alignment_are_not_moved_to_the_floor():
    rows = [Buffer(0, 0, 4, 4, offset=8), Buffer(1, 0, 4, 4)]
    instance = build_instance(rows)
    parts = decompose(instance, compute_sections(instance))
    assert parts.parts == 1
    assert (parts.part == 0).all()


def test_units():
    rows = [Buffer(0, 0, 2, 1200), Buffer(1, 0, 2, 800, alignment=64)]
    unit, scaled = build_instance(rows, alignment=16).in_units()
    # 400 is a multiple of 16, so that alignment disappears; 64 does not divide it.
    assert unit == 16
    assert scaled.size.tolist() == [75, 50]
    assert scaled.alignment.tolist() == [1, 4]
