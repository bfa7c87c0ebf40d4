"""The plan checker must catch every mutation of a good plan."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from heap.packing_oracle import overlaps
from msa.errors import PlanError
from msa.heap import Buffer, HeapPlan, Reservation
from msa.heap.packing.verify import verify_disjoint


def good_plan():
    rows = [
        Buffer("pin", 0, 9, 16, offset=32),
        Buffer("a", 0, 4, 24, alignment=8),
        Buffer("b", 4, 9, 24),
        Buffer("g1", 0, 2, 8, group="g"),
        Buffer("g2", 6, 9, 8, group="g"),
        Buffer("gap", 0, 9, 4, gaps=((2, 6),)),
    ]
    plan = msa.pack(rows, reserved=[(0, 4)])
    plan.verify()
    return plan


def moved(plan, name, offset):
    offsets = list(plan.offsets)
    offsets[[b.id for b in plan.buffers].index(name)] = offset
    return HeapPlan.of(
        plan.buffers,
        offsets,
        lower_bound=plan.lower_bound,
        optimal=plan.optimal,
        reserved=plan.reserved,
    )


PLAN = good_plan()
MUTATIONS = {
    "overlap": moved(PLAN, "a", 24),
    "misaligned": moved(PLAN, "a", PLAN.offset_of("a") + 4),
    "pin-moved": moved(PLAN, "pin", 33),
    "group-apart": moved(PLAN, "g2", PLAN.offset_of("g1") + 100),
    "in-reservation": moved(PLAN, "b", 0),
    "negative": moved(PLAN, "b", -8),
    "missing-offset": replace(PLAN, offsets=PLAN.offsets[:-1]),
    "height-low": replace(PLAN, height=PLAN.height - 1),
    "height-high": replace(PLAN, height=PLAN.height + 1),
    "over-capacity": replace(PLAN, capacity=PLAN.height - 1),
    "bound-over-height": replace(PLAN, lower_bound=PLAN.height + 1),
    "bound-negative": replace(PLAN, lower_bound=-1),
    "optimal-without-proof": replace(PLAN, lower_bound=PLAN.height - 1, optimal=True),
    "longer-life": replace(
        PLAN,
        buffers=tuple(replace(b, end=5) if b.id == "a" else b for b in PLAN.buffers),
        offsets=tuple(
            PLAN.offset_of("b") // 8 * 8 if b.id == "a" else PLAN.offset_of(b.id)
            for b in PLAN.buffers
        ),
    ),
    "larger-reservation": replace(PLAN, reserved=(Reservation(0, 12),)),
}


@pytest.mark.parametrize("plan", MUTATIONS.values(), ids=MUTATIONS)
def test_mutation_is_caught(plan):
    with pytest.raises(PlanError):
        plan.verify()


def test_the_error_names_the_place():
    rows = [Buffer("x", 0, 4, 8), Buffer("y", 2, 6, 8)]
    with pytest.raises(PlanError, match=r"time 2, buffer 'y'.*buffer 'x'"):
        verify_disjoint(rows, [0, 4])


def test_aliases_may_overlap_but_not_their_neighbours():
    rows = [
        Buffer("a", 0, 9, 8, group=1),
        Buffer("b", 1, 9, 4, group=1),
        Buffer("c", 2, 9, 4),
    ]
    verify_disjoint(rows, [0, 0, 8])
    with pytest.raises(PlanError):
        verify_disjoint(rows, [0, 0, 4])
    with pytest.raises(PlanError):
        verify_disjoint([rows[0], rows[2], rows[1]], [4, 2, 4])


boxes = st.tuples(
    st.integers(0, 6), st.integers(1, 4), st.integers(1, 5), st.integers(0, 12)
)


@settings(max_examples=150)
@given(st.lists(boxes, max_size=8))
def test_agrees_with_all_pairs(rows):
    buffers = [Buffer(n, s, s + d, z) for n, (s, d, z, _) in enumerate(rows)]
    offsets = [row[3] for row in rows]
    plain = [(b.start, b.end, b.size) for b in buffers]
    try:
        verify_disjoint(buffers, offsets)
    except PlanError:
        assert overlaps(plain, offsets)
    else:
        assert not overlaps(plain, offsets)


@pytest.mark.parametrize("seed", range(5))
def test_every_harmful_move_of_a_random_plan_is_caught(seed):
    random_ = random.Random(seed)
    rows = []
    for _ in range(40):
        start = random_.randrange(20)
        rows.append((start, start + random_.randint(1, 8), random_.randint(1, 30)))
    plan = msa.pack([(n, *row) for n, row in enumerate(rows)], effort=100)
    caught = 0
    for _ in range(60):
        index = random_.randrange(len(rows))
        offsets = list(plan.offsets)
        offsets[index] = random_.randint(0, plan.height)
        harmful = bool(overlaps(rows, offsets))
        mutated = HeapPlan.of(
            plan.buffers, offsets, lower_bound=plan.lower_bound, optimal=False
        )
        mutated = replace(mutated, optimal=mutated.height == plan.lower_bound)
        if harmful or mutated.height < plan.lower_bound:
            with pytest.raises(PlanError):
                mutated.verify()
            caught += 1
        else:
            mutated.verify()
    assert caught > 10
