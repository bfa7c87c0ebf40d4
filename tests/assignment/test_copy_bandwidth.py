"""The bandwidth ledger: worked sequences, and a plain walk over steps as oracle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msa.assignment.ledgers.copy_bandwidth import CopyBandwidth, CopySpec
from msa.assignment.ledgers.transaction import Transaction
from msa.errors import InternalError

TEN_TWOS = [2.0] * 10
FIVE_TWOS = [2.0] * 5


class Script:
    """Runs rows of (`add`|`no`|`remove`, start, end, resource) and checks the rest."""

    def __init__(self, initial: list[float]) -> None:
        self.ledger = CopyBandwidth(initial)
        self.numbers: dict[tuple[int, int, float], list[int]] = {}

    def add(self, start: int, end: int, resource: float) -> None:
        assert self.ledger.has_enough(start, end, resource)
        number = self.ledger.add(start, end, resource)
        self.numbers.setdefault((start, end, resource), []).append(number)
        self.ledger.check()

    def no(self, start: int, end: int, resource: float) -> None:
        assert not self.ledger.has_enough(start, end, resource)

    def remove(self, start: int, end: int, resource: float) -> None:
        number = self.numbers[start, end, resource].pop(0)
        self.ledger.remove(number, start)
        self.ledger.check()

    def left(self, *expected: float) -> None:
        assert self.ledger.current_resources() == pytest.approx(expected, abs=1e-9)


def b10_1() -> None:
    s = Script([2, 3, 1, 6, 7, 1, 7, 2, 2, 4])
    s.add(-1, 3, 5)
    s.add(1, 4, 4)
    s.add(5, 9, 10)
    s.no(4, 9, 3)
    s.add(4, 8, 2)
    s.left(0, 0, 0, 3, 7, 0, 0, 0, 0, 4)


def b10_2() -> None:
    s = Script(TEN_TWOS)
    for start, end in [(6, 10), (5, 9), (4, 8), (3, 7), (2, 6), (1, 5)]:
        s.add(start, end, 2)
    s.left(2, 2, 0, 0, 0, 0, 0, 0, 2, 2)
    s.add(0, 4, 3)
    s.left(2, 0, 0, 0, 0, 0, 0, 0, 1, 2)
    s.add(0, 4, 3)
    s.left(2, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    s.no(0, 4, 1)


def b10_3() -> None:
    s = Script(TEN_TWOS)
    s.add(5, 10, 2)
    s.add(4, 7, 2)
    s.add(4, 8, 4)
    s.left(2, 2, 2, 2, 2, 0, 0, 0, 0, 2)
    s.no(3, 6, 4)


def b10_4() -> None:
    s = Script(FIVE_TWOS)
    s.add(1, 3, 2)
    s.left(2, 2, 0, 2, 2)
    s.no(0, 4, 4)
    s.remove(1, 3, 2)
    s.add(0, 4, 4)
    s.left(2, 0, 0, 2, 2)
    s.no(1, 3, 2)
    s.remove(0, 4, 4)
    s.add(1, 3, 2)
    s.left(2, 2, 0, 2, 2)


def b10_5() -> None:
    s = Script(FIVE_TWOS)
    s.add(2, 5, 2)
    s.add(-1, 2, 3)
    s.left(0, 1, 2, 0, 2)
    s.add(0, 4, 4)
    s.left(0, 0, 0, 0, 1)
    s.remove(0, 4, 4)
    s.left(0, 1, 2, 0, 2)
    s.remove(-1, 2, 3)
    s.left(2, 2, 2, 0, 2)
    s.remove(2, 5, 2)
    s.left(*FIVE_TWOS)


def b10_6() -> None:
    s = Script([0, 0, 1, 1, 2])
    s.add(0, 4, 2)
    s.left(0, 0, 0, 0, 2)
    s.remove(0, 4, 2)
    s.left(0, 0, 1, 1, 2)
    s.add(0, 4, 2)
    s.left(0, 0, 0, 0, 2)


def b10_7() -> None:
    s = Script(FIVE_TWOS)
    s.add(1, 3, 1)
    s.add(1, 4, 2)
    s.left(2, 2, 0, 1, 2)
    s.remove(1, 3, 1)
    s.left(2, 2, 0, 2, 2)
    for _ in range(4):
        s.add(1, 5, 1)
    s.left(2, 2, 0, 0, 0)
    s.no(1, 5, 1)
    s.remove(1, 4, 2)
    s.left(2, 2, 0, 0, 2)
    for expected in ([0, 1, 2], [0, 2, 2], [1, 2, 2], [2, 2, 2]):
        s.remove(1, 5, 1)
        s.left(2, 2, *expected)


def b10_8() -> None:
    s = Script([2, 1, 3, 6, 7, 3, 7, 2, 2, 4])
    s.add(-1, 3, 5)
    s.add(1, 10, 4)
    before = s.ledger.current_resources()
    yes = [CopySpec(0, 6, 4), CopySpec(4, 6, 3)]
    no = [CopySpec(0, 6, 4), CopySpec(4, 6, 4)]
    for _ in range(3):
        assert s.ledger.has_enough_for_all(yes)
        assert s.ledger.current_resources() == before
    assert not s.ledger.has_enough_for_all(no)
    assert s.ledger.current_resources() == before
    s.ledger.check()


def b10_9() -> None:
    s = Script([1.71e-7, 1.71e-7, 1.71e-7, 3.6e-9, 1.2e-9])
    for _ in range(50):
        s.add(-1, 5, 2.3e-9)
        s.add(0, 4, 1.1e-7)
        s.add(-1, 3, 3.1e-9)
        s.remove(-1, 5, 2.3e-9)
        s.remove(0, 4, 1.1e-7)
        s.remove(-1, 3, 3.1e-9)
    s.left(1.71e-7, 1.71e-7, 1.71e-7, 3.6e-9, 1.2e-9)


ROWS = {
    f"B10.{number}": row
    for number, row in enumerate(
        [b10_1, b10_2, b10_3, b10_4, b10_5, b10_6, b10_7, b10_8, b10_9], 1
    )
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_worked_sequences(row) -> None:
    row()


class StepWalk:
    """The plain version: serve copies in order of start, step by step.

    Every copy eats from the steps strictly inside its interval what those before it
    left over; steps that a copy skips over while it waits are lost to it.
    """

    def __init__(self, capacity: list[int]) -> None:
        self.capacity = capacity
        self.copies: list[tuple[int, int, int]] = []

    def fits(self, start: int, end: int, work: int) -> bool:
        if work == 0:
            return True
        trial = sorted([*self.copies, (start, end, work)], key=lambda c: c[0])
        return self.feasible(trial)

    def feasible(self, copies: list[tuple[int, int, int]]) -> bool:
        left = list(self.capacity)
        for start, end, work in copies:
            # First come first served: nothing before its start, nothing that an
            # earlier copy still needs (that is gone from `left`).
            step = start + 1
            while work and step < end:
                eaten = min(work, left[step])
                left[step] -= eaten
                work -= eaten
                step += 1
            if work:
                return False
        return True


copies = st.tuples(st.integers(-1, 10), st.integers(1, 6), st.integers(0, 9))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=14, max_size=14),
    st.lists(st.tuples(copies, st.booleans()), max_size=25),
)
def test_agrees_with_a_walk_over_steps(capacity, actions) -> None:
    ledger = CopyBandwidth([float(x) for x in capacity])
    walk = StepWalk(capacity)
    held: list[tuple[int, tuple[int, int, int]]] = []
    for (start, length, work), drop in actions:
        copy = (start, min(start + length, 14), work)
        if drop and held:
            number, old = held.pop(work % len(held))
            ledger.remove(number, old[0])
            walk.copies.remove(old)
        elif copy[0] < copy[1] and copy[0] + 1 < 14 and work:
            fits = walk.fits(*copy)
            assert ledger.has_enough(copy[0], copy[1], float(work)) == fits
            if fits:
                held.append((ledger.add(copy[0], copy[1], float(work)), copy))
                walk.copies.append(copy)
        ledger.check()


def test_rollback_restores_everything() -> None:
    transaction = Transaction()
    ledger = CopyBandwidth(TEN_TWOS, transaction)
    ledger.add(0, 5, 3)
    transaction.commit()
    before = ledger.copies(), ledger.current_resources()
    ledger.add(-1, 4, 2)
    ledger.add(2, 9, 4)
    transaction.rollback()
    assert (ledger.copies(), ledger.current_resources()) == before
    ledger.check()


def test_a_copy_that_does_not_fit_is_refused() -> None:
    ledger = CopyBandwidth(FIVE_TWOS)
    with pytest.raises(InternalError, match="does not fit"):
        ledger.add(0, 2, 2.5)
    assert len(ledger) == 0


def test_a_free_copy_never_pushes_but_must_not_be_pushed_late() -> None:
    ledger = CopyBandwidth(FIVE_TWOS)
    ledger.add_free(1, 2)
    ledger.check()
    # Work handed over to the free copy cannot be finished in its empty interval.
    assert not ledger.has_enough(0, 5, 3)
    assert ledger.has_enough(0, 5, 2)
    assert ledger.has_enough(1, 5, 6)
