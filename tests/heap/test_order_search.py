"""The skyline placer and the search over orders, each on its own."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from heap.packing_oracle import best_height, guillotine, load_bound, overlaps
from msa.heap import Buffer, Reservation
from msa.heap.packing.instance import build_instance
from msa.heap.packing.order_search import search_order
from msa.heap.packing.placement import place
from msa.heap.packing.search.driver import Budget
from msa.heap.packing.skyline import place_on_skyline

spans = st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(1, 7)).map(
    lambda row: (row[0], row[0] + row[1], row[2])
)


def instance_of(rows, **options):
    return build_instance([Buffer(n, *row) for n, row in enumerate(rows)], **options)


def on_skyline(rows):
    instance = instance_of(rows)
    offsets = place_on_skyline(instance, np.arange(instance.items))
    return offsets.tolist(), instance.height(offsets)


def searched(rows, offsets, goal, effort=2000, seed=0):
    """What is found, its height, and the effort that is left."""
    instance, budget = instance_of(rows), Budget(effort)
    found = search_order(
        instance,
        np.array(offsets),
        goal=goal,
        budget=budget,
        random=np.random.default_rng(seed),
    )
    height = None if found is None else instance.height(found)
    return found, height, budget.left


# --- The skyline ----------------------------------------------------------------


def test_the_item_that_comes_to_lie_lowest_is_next():
    # All lie at 0 or wait. First in the order is the long 2 on the floor; then the
    # 3 and the 1 lie on it, at 2. The 4 waits for the 1, which ends lower: 3.
    rows = [(0, 4, 2), (0, 2, 3), (2, 4, 1), (2, 4, 4)]
    assert on_skyline(rows) == ([0, 2, 2, 3], 7)


def test_first_fit_misses_what_the_skyline_finds():
    # By number, first fit puts the last one on the 3 before it, at 5: 8 in all. On the
    # skyline the 3 in [1, 4) would be at 2 and the last one at 0, so that it is first;
    # the other 3 comes to lie on it: 6, which the two threes need anyway.
    rows = [(0, 2, 2), (1, 4, 3), (3, 6, 3)]
    instance = instance_of(rows)
    order = np.array([0, 1, 2])
    assert place(instance, order, "first").tolist() == [0, 2, 5]
    assert place_on_skyline(instance, order).tolist() == [0, 3, 0]


@given(st.lists(spans, min_size=1, max_size=12))
def test_skyline_is_valid_and_between_bound_and_sum(rows):
    offsets, height = on_skyline(rows)
    assert not overlaps(rows, offsets)
    assert load_bound(rows) <= height <= sum(row[2] for row in rows)


def test_skyline_sometimes_equals_brute_force_and_is_never_below():
    random_ = random.Random(5)
    equal = 0
    for _ in range(30):
        rows = []
        for _ in range(5):
            start = random_.randrange(6)
            rows.append((start, start + random_.randint(1, 4), random_.randint(1, 5)))
        height, optimum = on_skyline(rows)[1], best_height(rows)
        assert height >= optimum
        equal += height == optimum
    assert equal >= 10


def test_skyline_stacks_in_the_order_when_looks_run_out(monkeypatch):
    monkeypatch.setattr("msa.heap.packing.skyline._LOOKS", 1)
    rows = guillotine(30, random.Random(2), 40, 30)
    offsets, _ = on_skyline(rows)
    assert not overlaps(rows, offsets)


def test_skyline_heeds_pins_alignment_and_reservations():
    buffers = [
        Buffer("pin", 0, 4, 2, offset=4),
        Buffer("low", 0, 2, 3),
        Buffer("wide", 0, 4, 3),
        Buffer("even", 2, 4, 1, alignment=4),
    ]
    instance = build_instance(buffers, reserved=[Reservation(0, 1, 0, 2)])
    offsets = place_on_skyline(instance, np.arange(instance.items)).tolist()
    # The even one lies on the floor, where nothing is reserved any more. The low one
    # lies on the reserved byte, up to the pin; the wide one on the pin.
    assert offsets[:4] == [4, 1, 6, 0]


def test_skyline_uses_gaps_and_groups():
    buffers = [
        Buffer("gap", 0, 6, 4, gaps=((2, 4),)),
        Buffer("within", 2, 4, 4),
        Buffer("alias", 6, 8, 4, group="g"),
        Buffer("other", 7, 9, 2, group="g"),
    ]
    instance = build_instance(buffers)
    offsets = place_on_skyline(instance, np.arange(instance.items))
    assert offsets.tolist() == [0, 0, 0]


# --- The search over orders -----------------------------------------------------


def test_what_sticks_out_is_moved_forward():
    # The 3 in [1, 4) came before the 3 in [3, 6), which lies on it and is moved below.
    rows = [(0, 2, 2), (1, 4, 3), (3, 6, 3), (5, 6, 3)]
    found, height, left = searched(rows, [0, 2, 5, 0], goal=6)
    assert not overlaps(rows, found.tolist())
    assert height == 6 < 8
    assert left < 2000


def test_order_search_stops_at_the_goal_and_without_effort():
    rows = [(0, 2, 2), (1, 4, 3), (3, 6, 3)]
    assert searched(rows, [0, 2, 5], goal=8) == (None, None, 2000)
    # Three items: four orders cost 12.
    assert searched(rows, [0, 2, 5], goal=6, effort=11) == (None, None, 11)


def test_order_search_is_exact_on_most_tiny_instances():
    random_ = random.Random(6)
    reached = 0
    for number in range(20):
        rows = []
        for _ in range(5):
            start = random_.randrange(6)
            rows.append((start, start + random_.randint(1, 4), random_.randint(1, 5)))
        optimum = best_height(rows)
        stacked = np.cumsum([0] + [row[2] for row in rows[:-1]]).tolist()
        found, height, _ = searched(rows, stacked, optimum, effort=400, seed=number)
        if found is not None:
            assert not overlaps(rows, found.tolist())
            assert height >= optimum
        reached += (height or sum(row[2] for row in rows)) == optimum
    assert reached >= 15


@settings(max_examples=25, deadline=None)
@given(st.lists(spans, min_size=1, max_size=10), st.integers(0, 5))
def test_order_search_only_lowers_and_is_deterministic(rows, seed):
    stacked = np.cumsum([0] + [row[2] for row in rows[:-1]]).tolist()
    bound = load_bound(rows)
    found, height, left = searched(rows, stacked, bound, effort=200, seed=seed)
    assert 0 <= left <= 200
    again = searched(rows, stacked, bound, effort=200, seed=seed)
    assert (height, left) == again[1:]
    if found is not None:
        assert found.tolist() == again[0].tolist()
        assert not overlaps(rows, found.tolist())
        assert bound <= height < sum(row[2] for row in rows)


def test_pack_searches_orders_where_the_exact_search_is_too_dear(monkeypatch):
    # A full rectangle, so that the optimum is 200. All heuristics miss it; the search
    # is taken away.
    rows = guillotine(60, random.Random(1), 200, 60)
    named = [(n, *row) for n, row in enumerate(rows)]
    assert msa.pack(named, effort=0).height > 200
    monkeypatch.setattr("msa.heap.packing.solve.is_full", lambda *_: False)
    monkeypatch.setattr("msa.heap.packing.search.driver.build_core", lambda *_: None)
    monkeypatch.setattr("msa.heap.packing.solve.build_core", lambda *_: None)
    for capacity in (None, 200):
        plan = msa.pack(named, effort=10_000, capacity=capacity)
        plan.verify()
        assert not overlaps(rows, plan.offsets)
        assert (plan.height, plan.optimal, plan.method) == (200, True, "order search")
