"""Pins, alignments, groups, gaps and reservations at once, against brute force."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.errors import CapacityError, PackingError
from msa.heap import Buffer, Reservation

TIMES = 5


@st.composite
def buffers(draw):
    """A few buffers over a short time, with any of the features."""
    made = []
    for name in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, TIMES - 1))
        end = draw(st.integers(start + 1, TIMES))
        gaps = ()
        if end - start >= 3 and draw(st.booleans()):
            at = draw(st.integers(start + 1, end - 2))
            gaps = ((at, draw(st.integers(at + 1, end - 1))),)
        alignment = draw(st.sampled_from([None, 1, 2, 3]))
        offset = draw(st.sampled_from([None, None, None, 0, 2, 6]))
        if offset is not None and alignment == 3:
            offset = 3 * (offset // 3)
        made.append(
            Buffer(
                name,
                start,
                end,
                draw(st.integers(1, 4)),
                alignment=alignment,
                offset=offset,
                group=draw(st.sampled_from([None, None, "g", "h"])),
                gaps=gaps,
            )
        )
    return made


@st.composite
def reservations(draw):
    """None or one, for all time or a part of it."""
    if draw(st.booleans()):
        return []
    offset, size = draw(st.integers(0, 5)), draw(st.integers(1, 3))
    if draw(st.booleans()):
        return [Reservation(offset, size)]
    start = draw(st.integers(0, TIMES - 1))
    return [Reservation(offset, size, start, draw(st.integers(start + 1, TIMES)))]


def cells(buffer, offset):
    """Every (time, address) that a buffer takes."""
    return {
        (time, address)
        for time in range(buffer.start, buffer.end)
        if not any(low <= time < high for low, high in buffer.gaps)
        for address in range(offset, offset + buffer.size)
    }


def lowest(rows, holds, limit, default):
    """The least height below `limit` by trying every offset; None if there is none."""
    taken = {
        (time, address)
        for hold in holds
        for time in range(
            0 if hold.start is None else hold.start,
            TIMES if hold.end is None else hold.end,
        )
        for address in range(hold.offset, hold.offset + hold.size)
    }
    groups = {}
    for row in rows:
        key = row.id if row.group is None else row.group
        groups.setdefault(key, []).append(row)

    def fits(rest, taken, height):
        if not rest:
            return True
        members = rest[0]
        for offset in range(height + 1):
            if any(
                offset + m.size > height
                or (m.offset is not None and m.offset != offset)
                # A pin overrides the default, not an alignment of its own.
                or offset % (m.alignment or (default if m.offset is None else 1))
                for m in members
            ):
                continue
            mine = set().union(*(cells(m, offset) for m in members))
            if not mine & taken and fits(rest[1:], taken | mine, height):
                return True
        return False

    # Pinned ones first: what contradicts itself is found at once.
    parts = sorted(groups.values(), key=lambda ms: all(m.offset is None for m in ms))
    return next((h for h in range(limit) if fits(parts, taken, h)), None)


@settings(max_examples=60, deadline=None)
@given(buffers(), reservations(), st.sampled_from([1, 2]))
def test_all_features_together_equal_brute_force(rows, holds, alignment):
    limit = 34
    best = lowest(rows, holds, limit, alignment)
    try:
        plan = msa.pack(rows, alignment=alignment, reserved=holds)
    except PackingError:
        # Pins that contradict each other, a reservation or an alignment.
        assert best is None
        return
    plan.verify()
    assert plan.height == best
    assert plan.lower_bound <= best
    with pytest.raises(CapacityError):
        msa.pack(rows, alignment=alignment, reserved=holds, capacity=best - 1)
    for more in (0, 1, 5):
        given_ = msa.pack(
            rows, alignment=alignment, reserved=holds, capacity=best + more
        )
        given_.verify()
        assert given_.height <= best + more


@settings(max_examples=30, deadline=None)
@given(buffers(), st.integers(1, 3))
def test_empty_buffers_change_nothing(rows, more):
    rows = [row for row in rows if row.offset is None]
    names = count(100)
    dead = [Buffer(next(names), 0, 9, 0) for _ in range(more)]
    dead += [Buffer(next(names), 3, 3, 7) for _ in range(more)]
    assert msa.pack(rows + dead).height == msa.pack(rows).height


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "start": 0, "end": 2, "size": 1, "group": [1]},
        {"id": 1, "start": 0, "end": 2, "size": 1, "gaps": ((1,),)},
        {"id": 1, "start": 0, "end": 2, "size": 1, "gaps": (1,)},
        {"id": 1, "start": 0, "end": 2, "size": 1, "gaps": 5},
        {"id": 1, "start": 0, "end": 2, "size": 1, "gaps": "1-2"},
        {"id": [1], "start": 0, "end": 2, "size": 1},
    ],
    ids=str,
)
def test_malformed_fields_are_typed_errors(row):
    with pytest.raises(PackingError, match="row 0"):
        msa.pack([row])


@pytest.mark.parametrize(
    "rows",
    [
        # The mate of a pinned buffer overlaps another pin, or is not aligned there.
        [
            Buffer("pin", 3, 4, 3, offset=0, group="g"),
            Buffer("mate", 0, 2, 1, group="g"),
            Buffer("other", 0, 1, 1, offset=0),
        ],
        [Buffer("pin", 0, 1, 4, offset=2, group="g"), Buffer(1, 2, 3, 4, 4, group="g")],
        [
            Buffer("empty", 0, 1, 0, offset=2, group="g"),
            Buffer(1, 2, 3, 0, None, 4, group="g"),
        ],
    ],
    ids=["overlap", "alignment", "empty"],
)
def test_a_pin_binds_its_whole_group(rows):
    with pytest.raises(PackingError):
        msa.pack(rows)


def test_nothing_but_empty_buffers():
    rows = [Buffer(0, 0, 9, 0), Buffer(1, 3, 3, 7), Buffer(2, 0, 1, 0, offset=64)]
    rows += [
        Buffer(3, 0, 1, 0, offset=8, group="g"),
        Buffer(4, 5, 9, 0, group="g"),
    ]
    plan = msa.pack(rows)
    plan.verify()
    assert plan.offsets == (0, 0, 64, 8, 8)
    assert (plan.height, plan.optimal) == (0, True)


@pytest.mark.parametrize("capacity", [None, 4])
def test_a_pinned_buffer_of_gaps_alone_is_empty(capacity):
    # It never lives, so its end at 7 is no part of the height.
    dead = Buffer("dead", 6, 8, 5, offset=2, gaps=((6, 8),))
    plan = msa.pack([dead, Buffer("x", 6, 7, 4)], capacity=capacity)
    plan.verify()
    assert (plan.height, plan.optimal) == (4, True)
    assert plan.as_dict()["dead"] == 2


def test_a_reservation_without_time_holds_nothing():
    hold = Reservation(0, 8, 7, 7)
    plan = msa.pack([("x", 5, 9, 4)], reserved=[hold])
    plan.verify()
    assert plan.height == 4
    pinned = msa.pack([Buffer("x", 5, 9, 4, offset=0)], reserved=[hold])
    pinned.verify()
    assert pinned.height == 4


def test_the_pin_of_an_empty_member_holds_for_its_group():
    dead = Buffer("dead", 0, 2, 9, offset=8, group="g", gaps=((0, 2),))
    rows = [dead, Buffer("x", 4, 6, 4, group="g"), Buffer("y", 4, 6, 2)]
    plan = msa.pack(rows, capacity=12)
    plan.verify()
    assert (plan.height, plan.as_dict()["x"]) == (12, 8)
    with pytest.raises(CapacityError) as caught:
        msa.pack(rows, capacity=11)
    assert (caught.value.step, caught.value.live) == (4, [("x", 4)])
    assert caught.value.needed == 12
