"""Outstanding copies, copy order, peak usage, free space and transactions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.assignment.ledgers.edges import Edges
from msa.assignment.ledgers.free_space import FreeSpace
from msa.assignment.ledgers.lane import CopyLane
from msa.assignment.ledgers.ordering import CopyOrdering
from msa.assignment.ledgers.outstanding import OutstandingCopies
from msa.assignment.ledgers.peak import PeakUsage
from msa.assignment.ledgers.transaction import Transaction
from msa.errors import InternalError
from msa.heap.chunk import Chunk

intervals = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(
    lambda t: (t[0], t[0] + t[1])
)


@pytest.mark.parametrize(
    ("copy", "violates"),
    [
        ((2, 16), True),
        ((9, 12), True),
        ((6, 17), True),
        ((5, 13), False),
        ((5, 14), False),
    ],
    ids=lambda x: f"B9-{x}",
)
def test_order_of_copies(copy, violates) -> None:
    order = CopyOrdering()
    for stored in [(3, 11), (1, 8), (5, 14), (7, 14)]:
        order.add(*stored)
    assert order.violates(*copy) is violates


def test_order_is_a_multiset_b9() -> None:
    order = CopyOrdering()
    order.add(1, 5)
    order.add(1, 5)
    assert order.violates(2, 4)
    order.remove(1, 5)
    assert order.violates(2, 4)
    order.remove(1, 5)
    assert not order.violates(2, 4)


@given(st.lists(intervals, max_size=30), intervals)
def test_order_agrees_with_all_pairs(stored, query) -> None:
    order = CopyOrdering()
    kept: list[tuple[int, int]] = []
    for copy in stored:
        if not order.violates(*copy):
            order.add(*copy)
            kept.append(copy)
    start, end = query
    nested = any((s < start and e > end) or (s > start and e < end) for s, e in kept)
    assert order.violates(*query) is nested


@given(st.lists(intervals, max_size=30), intervals)
def test_outstanding_copies_agree_with_counting(stored, query) -> None:
    copies = OutstandingCopies()
    for copy in stored:
        copies.add(*copy)
    start, end = query
    assert copies.overlapping(start, end) == sum(
        s <= end and e >= start for s, e in stored
    )
    assert copies.overlapping(end + 1, end) == 0


@pytest.mark.parametrize(
    ("limit", "overlapping", "extra", "additional", "expected"),
    [
        (-1, 9, 0, 5, False),
        (2, 1, 0, 0, False),
        (2, 2, 0, 0, True),
        (2, 2, 1, 0, False),
        (1, 0, 0, 1, True),
        (0, 0, 0, 0, True),
    ],
)
def test_limit(limit, overlapping, extra, additional, expected) -> None:
    lane = CopyLane([5.0] * 20, limit, Transaction())
    for _ in range(overlapping):
        lane.add(3, 8, 0.0)
    assert lane.violates_limit(4, 8, extra, additional) is expected


def test_lane_refuses_an_inverted_copy() -> None:
    lane = CopyLane([1.0] * 5, -1, Transaction())
    with pytest.raises(InternalError):
        lane.add(3, 3, 0.0)


@settings(deadline=None)
@given(
    st.integers(1, 6000),
    st.lists(
        st.tuples(st.floats(0, 0.999), st.floats(0, 0.999), st.integers(-50, 100)),
        max_size=20,
    ),
    st.floats(0, 0.999),
    st.floats(0, 0.999),
    st.integers(-20, 200),
)
def test_peak_usage_agrees_with_an_array(length, changes, a, b, limit) -> None:
    usage = PeakUsage(length)
    plain = np.zeros(length, np.int64)
    for x, y, size in changes:
        start, end = sorted((int(x * length), int(y * length)))
        usage.add(start, end, size)
        plain[start : end + 1] += size
    usage.check()
    assert (usage.per_step() == plain).all()
    start, end = sorted((int(a * length), int(b * length)))
    assert usage.highest(start, end) == plain[start : end + 1].max()
    above = np.flatnonzero(plain[start : end + 1] > limit)
    expected = start + int(above[-1]) if above.size else -1
    assert usage.last_above(start, end, limit) == expected


def test_peak_usage_of_empty_ranges() -> None:
    usage = PeakUsage(5)
    usage.add(3, 2, 10)
    assert usage.highest(4, 3) == 0
    assert usage.last_above(4, 3, -1) == -1
    assert usage.per_step().tolist() == [0] * 5


@settings(deadline=None)
@given(
    st.lists(st.tuples(intervals, st.integers(1, 30), st.integers(0, 60)), max_size=40),
    st.sampled_from([1, 8]),
)
def test_free_space_never_overlaps_and_finds_room(requests, alignment) -> None:
    space = FreeSpace(64, 60, alignment, Transaction())
    held: list[tuple[int, int, int, int]] = []
    for (start, end), size, preferred in requests:
        offset = space.find(start, end, size)
        near = [(o, z) for s, e, o, z in held if s <= end and e >= start]

        def free(at: int, size: int = size, near=near) -> bool:
            return at + size <= 60 and all(
                at + size <= o or o + z <= at for o, z in near
            )

        at = preferred // alignment * alignment
        assert space.fits_at(start, end, size, at) is free(at)
        if offset is None:
            assert not any(free(at) for at in range(0, 60, alignment))
            continue
        assert offset % alignment == 0
        assert free(offset)
        assert space.fits_at(start, end, size, offset)
        space.commit(start, end, Chunk(offset, size))
        held.append((start, end, offset, size))
    space.check()


@settings(deadline=None)
@given(
    st.lists(st.tuples(intervals, st.integers(0, 50), st.integers(1, 9)), max_size=20),
    intervals,
    st.integers(0, 50),
    st.integers(1, 9),
)
def test_latest_end_agrees_with_trying(held, query, offset, size) -> None:
    space = FreeSpace(64, 1000, 1, Transaction())
    for (start, end), low, extent in held:
        space.commit(start, end, Chunk(low, extent))
    start, end = query
    latest = space.latest_end_at(start, end, size, offset)
    blocked = [
        step
        for step in range(start, end + 1)
        if any(
            s <= step <= e and low < offset + size and offset < low + extent
            for (s, e), low, extent in held
        )
    ]
    expected = min(blocked) - 1 if blocked else end
    # An entry that began before the interval counts with its own start.
    assert latest <= expected
    if expected >= start:
        assert latest == expected


def test_commit_above_capacity_is_a_bug() -> None:
    space = FreeSpace(4, 10, 1, Transaction())
    with pytest.raises(InternalError, match="exceeds"):
        space.commit(0, 1, Chunk(8, 3))


def test_release_and_rollback() -> None:
    transaction = Transaction()
    space = FreeSpace(10, 100, 1, transaction)
    space.commit(0, 5, Chunk(0, 40))
    transaction.commit()
    space.release(0, 5, Chunk(0, 40))
    space.commit(2, 7, Chunk(10, 90))
    assert space.find(2, 2, 20) is None
    transaction.rollback()
    assert space.overlapping(0, 9) == [Chunk(0, 40)]
    assert space.peak.per_step().tolist() == [40] * 6 + [0] * 4
    with pytest.raises(InternalError, match="not held"):
        space.release(0, 4, Chunk(0, 40))
    space.check()


def test_replace_moves_chunks() -> None:
    space = FreeSpace(10, 100, 1, Transaction())
    space.commit(0, 5, Chunk(0, 40))
    space.replace([(0, 5, Chunk(60, 40))])
    assert space.find(0, 5, 60) == 0
    assert space.heap_size == 100


def test_rollback_to_a_mark() -> None:
    transaction = Transaction()
    log: list[int] = []
    transaction.record(log.append, 1)
    mark = transaction.mark()
    transaction.record(log.append, 2)
    transaction.record(log.append, 3)
    transaction.rollback(mark)
    assert log == [3, 2]
    assert len(transaction) == 1
    transaction.commit()
    transaction.rollback()
    assert log == [3, 2]


@given(st.lists(st.integers(-1, 40), max_size=20), st.integers(-1, 40))
def test_edges_agree_with_a_set(steps, query) -> None:
    edges = Edges(41)
    for step in steps:
        edges.add(step)
    assert (query in edges) is (query in steps)
    assert edges.below(query) == max((s for s in steps if s < query), default=None)
