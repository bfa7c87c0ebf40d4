"""`msa.pack`: users' cases, exactness against brute force, metamorphic rules."""

import os
import random
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from heap.packing_oracle import (
    best_height,
    guillotine,
    height_of,
    load_bound,
    overlaps,
)
from msa.errors import CapacityError, OptionsError, PackingError
from msa.heap import Buffer, Reservation

KIB = 1024


def pack(rows, **options):
    """Rows `(start, end, size[, alignment][, offset])`, ids are positions."""
    plan = msa.pack([(n, *row) for n, row in enumerate(rows)], **options)
    plan.verify()
    return plan


# --- Users' cases ---------------------------------------------------------------


def test_greedy_trap_c1():
    rows = [(0, 2, 1), (2, 4, 6), (2, 6, 4), (5, 8, 3), (5, 8, 3), (6, 7, 4)]
    plan = pack(rows)
    assert (plan.height, plan.lower_bound, plan.optimal) == (10, 10, True)
    assert not overlaps(rows, plan.offsets)


def test_hole_choice_c2():
    rows = [
        ("pinned", 0, 10, 16 * KIB, 1, 8 * KIB),
        ("small", 0, 10, 8 * KIB),
        ("large", 0, 10, 16 * KIB),
    ]
    plan = msa.pack(rows, capacity=40 * KIB)
    plan.verify()
    assert plan.as_dict() == {"pinned": 8 * KIB, "small": 0, "large": 24 * KIB}


@pytest.mark.parametrize(("alignment", "c"), [(1, None), (64, 448)])
def test_byte_exact_reuse_c3(alignment, c):
    plan = pack([(0, 3, 1000), (3, 7, 400), (3, 7, 500)], alignment=alignment)
    assert (plan.height, plan.optimal) == (1000, True)
    if c is not None:
        assert sorted(plan.offsets) == [0, 0, c]


@pytest.mark.parametrize(
    "options",
    [
        {"reserved": [(0, 64 * KIB)]},
        {"reserved": [Reservation(0, 64 * KIB, 0, 4)]},
        {"reserved": [(0, 64 * KIB, 0, 4)]},
    ],
)
def test_reservation_c5(options):
    rows = [(0, 2, 100 * KIB), (2, 4, 100 * KIB)]
    plan = pack(rows, capacity=192 * KIB, **options)
    assert plan.height == 164 * KIB
    assert plan.optimal


def test_reservation_as_a_buffer_c5():
    rows = [(0, 4, 64 * KIB), (0, 2, 100 * KIB), (2, 4, 100 * KIB)]
    assert pack(rows, capacity=192 * KIB).height == 164 * KIB


def test_capacity_error_c15():
    mib = 1 << 20
    rows = [
        ("weights", 0, 9, 60 * mib),
        ("activations", 4, 6, 5 * mib),
        ("scratch", 5, 6, mib // 10),
        ("elsewhere", 7, 9, mib),
    ]
    needed = 65 * mib + mib // 10
    with pytest.raises(CapacityError) as caught:
        msa.pack(rows, capacity=64 * mib)
    error = caught.value
    assert error.step == 5
    assert (error.needed, error.capacity) == (needed, 64 * mib)
    assert error.over == needed - 64 * mib
    assert error.live == [
        ("weights", 60 * mib),
        ("activations", 5 * mib),
        ("scratch", mib // 10),
    ]
    text = str(error)
    for part in ("time 5", str(needed), str(64 * mib), "weights", "60 MiB"):
        assert part in text
    assert error.hint


def test_capacity_error_when_the_load_fits_but_no_packing_does():
    # 7 bytes live, but two of them lie at multiples of 4: at 0 and 8 around the
    # five is the best, or at 0 and 4 below it, which needs 10.
    rows = [(0, 1, 1, 4), (0, 1, 1, 4), (0, 1, 5)]
    assert pack(rows).height == 9
    for capacity in (7, 8):
        with pytest.raises(CapacityError) as caught:
            pack(rows, capacity=capacity)
        assert "impossible" in str(caught.value)
        assert caught.value.needed > capacity
        assert caught.value.live == [("2", 5), ("0", 1), ("1", 1)]
    assert pack(rows, capacity=9).height == 9


def test_capacity_error_when_the_search_gives_up():
    rows = guillotine(120, random.Random(5), 1 << 20, 10_000)
    with pytest.raises(CapacityError, match="not found") as caught:
        pack(rows, capacity=1 << 20, effort=0)
    assert caught.value.needed > 1 << 20
    assert "effort" in caught.value.hint


# --- Exactness ------------------------------------------------------------------

spans = st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 6)).map(
    lambda row: (row[0], row[0] + row[1], row[2])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(spans, max_size=6))
def test_equals_brute_force(rows):
    plan = pack(rows)
    assert plan.height == best_height(rows)
    assert plan.optimal
    assert not overlaps(rows, plan.offsets)
    assert load_bound(rows) <= plan.height <= sum(row[2] for row in rows)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(spans, min_size=1, max_size=5),
    st.lists(st.sampled_from([1, 2, 3, 4]), min_size=5, max_size=5),
)
def test_equals_brute_force_with_alignments(rows, alignments):
    alignments = alignments[: len(rows)]
    plan = pack([(*row, a) for row, a in zip(rows, alignments, strict=True)])
    assert plan.height == best_height(rows, alignments=alignments)
    assert plan.optimal


@settings(max_examples=40, deadline=None)
@given(
    st.lists(spans, min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 3)),
        min_size=1,
        max_size=2,
    ),
    st.integers(0, 4),
)
def test_equals_brute_force_with_pins(rows, pinned, gap):
    # Pins are stacked with gaps, so that they never overlap each other.
    pins, at = [], gap
    for start, length, size in pinned:
        pins.append(((start, start + length, size), at))
        at += size + gap
    everything = rows + [row for row, _ in pins]
    offsets = [None] * len(rows) + [at for _, at in pins]
    plan = pack([(*row, 1, at) for row, at in zip(everything, offsets, strict=True)])
    assert plan.height == best_height(everything, pins=offsets)
    assert plan.optimal
    assert not overlaps(everything, plan.offsets)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(spans, min_size=1, max_size=5),
    st.integers(0, 6),
    st.integers(1, 4),
    st.integers(0, 12),
)
def test_capacity_is_met_or_refuted(rows, low, size, capacity):
    """With a reservation for all time, against brute force with it as a pin."""
    whole = (min(r[0] for r in rows), max(r[1] for r in rows), size)
    fits = _fits_around(rows, whole, low, capacity)
    try:
        plan = pack(rows, capacity=capacity, reserved=[(low, size)])
    except CapacityError:
        assert not fits
    else:
        assert fits
        assert plan.height <= capacity
        assert not overlaps([*rows, whole], [*plan.offsets, low])


def _fits_around(rows, whole, low, capacity):
    """Brute force over orders, the reservation as a pin; the rows' own top counts."""
    for order in permutations(range(len(rows))):
        at = {}
        for i in order:
            spans = [(low, low + whole[2])]
            spans += [
                (at[j], at[j] + rows[j][2])
                for j in at
                if rows[i][0] < rows[j][1] and rows[j][0] < rows[i][1]
            ]
            offset = 0
            for first, last in sorted(spans):
                if offset + rows[i][2] > first and offset < last:
                    offset = last
            at[i] = offset
        if max(at[i] + rows[i][2] for i in at) <= capacity:
            return True
    return False


# --- Features -------------------------------------------------------------------


def test_gaps_in_a_lifetime_may_be_used():
    rows = [
        Buffer("held", 0, 10, 8, gaps=((2, 5), (5, 8))),
        Buffer("guest", 2, 8, 8),
    ]
    plan = msa.pack(rows)
    plan.verify()
    assert plan.height == 8
    assert plan.optimal


def test_groups_share_an_offset():
    rows = [
        Buffer("a", 0, 3, 8, group="g"),
        Buffer("b", 3, 6, 4, group="g"),
        Buffer("low", 0, 6, 2),
        Buffer("guest", 3, 6, 4),
    ]
    plan = msa.pack(rows)
    plan.verify()
    assert plan.offset_of("a") == plan.offset_of("b")
    # At times 3 to 6 the group needs 4 bytes only: 2 + 8, or 2 + 4 + 4.
    assert plan.height == 10


def test_aliases_of_a_group_may_live_at_once():
    rows = [Buffer("a", 0, 3, 8, group="g"), Buffer("b", 1, 6, 4, group="g")]
    plan = msa.pack(rows)
    plan.verify()
    assert plan.height == 8


@pytest.mark.parametrize(
    ("row", "offset"),
    [(("z", 0, 5, 0), 0), (("z", 3, 3, 8), 0), (("z", 0, 5, 0, 1, 6), 6)],
    ids=["no-bytes", "no-time", "no-bytes-pinned"],
)
def test_empty_buffers_need_no_place(row, offset):
    plan = msa.pack([row, ("x", 0, 5, 4)])
    plan.verify()
    assert plan.as_dict() == {"z": offset, "x": 0}
    assert plan.height == 4


def test_nothing_to_pack():
    plan = msa.pack([])
    plan.verify()
    assert (plan.height, plan.lower_bound, plan.optimal) == (0, 0, True)
    assert plan.offsets == ()


def test_mappings_and_numpy_numbers_are_read():
    row = {"id": "x", "lower": np.int64(0), "upper": np.int32(3), "size": np.int16(8)}
    plan = msa.pack([row])
    assert plan.buffers == (Buffer("x", 0, 3, 8),)
    assert type(plan.offsets[0]) is int


BAD = [
    ([("x", 0, 1)], "3 fields"),
    ([("x", 2, 1, 4)], "before start"),
    ([("x", 0, 1, -4)], "negative"),
    ([("x", 0, 1, 4.5)], "whole number"),
    ([("x", 0, 1, 4, 0)], "not positive"),
    ([("x", 0, 1, 4, 8, 12)], "not a multiple"),
    ([("x", 0, 1, 4, 1, -1)], "negative"),
    ([("x", 0, 1, 4), ("x", 0, 1, 4)], "twice"),
    ([([], 0, 1, 4)], "hashable"),
    ([("x", 0, 1, 2**70)], "out of range"),
    ([{"id": "x", "start": 0}], "lacks end, size"),
    (["text"], "cannot read"),
    ([Buffer("x", 0, 4, 4, gaps=((3, 6),))], "gap"),
    ([("x", 0, 2, 4, 1, 0), ("y", 1, 3, 4, 1, 2)], "overlaps"),
    (
        [Buffer("x", 0, 1, 4, offset=0, group=1), Buffer("y", 2, 3, 4, 1, 8, 1)],
        "is pinned at 0 and at 8",
    ),
]


@pytest.mark.parametrize(("rows", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_rows(rows, text):
    with pytest.raises(PackingError, match=text):
        msa.pack(rows)


@pytest.mark.parametrize(
    "options", [{"alignment": 0}, {"effort": -1}, {"capacity": -1}]
)
def test_bad_options(options):
    with pytest.raises(OptionsError):
        msa.pack([("x", 0, 1, 4)], **options)


@pytest.mark.parametrize("hold", [(0,), (-1, 4), (0, -4)])
def test_bad_reservations(hold):
    with pytest.raises(PackingError):
        msa.pack([("x", 0, 1, 4)], reserved=[hold])


def test_pin_over_the_capacity():
    with pytest.raises(CapacityError) as caught:
        msa.pack([("x", 3, 5, 8, 1, 60)], capacity=64)
    assert (caught.value.needed, caught.value.step) == (68, 3)


# --- Metamorphic rules ----------------------------------------------------------


def rows_of(seed, count, times=30, largest=60):
    random_ = random.Random(seed)
    rows = []
    for _ in range(count):
        start = random_.randrange(times)
        rows.append((start, start + random_.randint(1, 9), random_.randint(1, largest)))
    return rows


SEEDS = range(4)
EFFORT = 600


@pytest.mark.parametrize("seed", SEEDS)
def test_names_do_not_matter(seed):
    rows = rows_of(seed, 40)
    named = msa.pack([(f"b{n}", *row) for n, row in enumerate(rows)], effort=EFFORT)
    assert named.offsets == pack(rows, effort=EFFORT).offsets


@pytest.mark.parametrize("seed", SEEDS)
def test_time_shift_and_stretch_change_nothing(seed):
    rows = rows_of(seed, 40)
    plan = pack(rows, effort=EFFORT)
    shifted = [(start - 1000, end - 1000, size) for start, end, size in rows]
    assert pack(shifted, effort=EFFORT).offsets == plan.offsets


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("factor", [3, 4096])
def test_scaling_scales_offsets(seed, factor):
    rows = rows_of(seed, 40)
    plan = pack(rows, effort=EFFORT, alignment=2)
    scaled = [(start, end, size * factor) for start, end, size in rows]
    larger = pack(scaled, effort=EFFORT, alignment=2 * factor)
    assert larger.offsets == tuple(offset * factor for offset in plan.offsets)
    assert larger.lower_bound == plan.lower_bound * factor


@pytest.mark.parametrize("seed", SEEDS)
def test_deterministic_by_seed_and_effort(seed):
    rows = rows_of(seed, 60)
    plans = [pack(rows, seed=seed, effort=EFFORT) for _ in range(2)]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_hold(seed):
    rows = rows_of(seed, 80)
    plan = pack(rows, effort=EFFORT)
    assert load_bound(rows) == plan.lower_bound
    assert plan.lower_bound <= plan.height <= sum(row[2] for row in rows)
    assert plan.height == height_of(rows, plan.offsets)
    assert not overlaps(rows, plan.offsets)
    # What fits without a capacity fits into that height as one.
    assert pack(rows, capacity=plan.height, effort=EFFORT).height <= plan.height


# --- Search quality -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [50, 120])
def test_guillotine_optimum(count, seed):
    rows = guillotine(count, random.Random(seed), 1 << 20, 10_000)
    plan = pack(rows)
    assert plan.height == 1 << 20
    assert plan.optimal


@pytest.mark.slow
@pytest.mark.parametrize("grid", [(1 << 20, 10_000), (128, 100)])
@pytest.mark.parametrize("count", [50, 100, 200, 400])
def test_guillotine_optimum_on_most(count, grid):
    reached = 0
    for seed in range(10):
        plan = pack(guillotine(count, random.Random(100 + seed), *grid))
        assert plan.height <= 1.03 * grid[0]
        reached += plan.height == grid[0]
    assert reached >= 9


SHARED = os.environ.get("MSA_SHARED")


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="MSA_SHARED is not set")
@pytest.mark.parametrize("name", ["A", "B", "C", "D", "F", "G", "H", "J"])
def test_public_instances_fit_their_capacity(name):
    plan = msa.pack(Path(SHARED) / "packing" / f"{name}.1048576.csv", capacity=1 << 20)
    plan.verify()
    assert plan.height <= 1 << 20
