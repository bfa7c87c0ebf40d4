"""The bandwidth that asynchronous copies in one direction share.

Copies are served first come, first served: in the order of their starts, a later
one waits for the earlier ones. A copy with exclusive start `s` and end `e` may use
what the steps `s+1 … e-1` offer (their run time without it).

With the running sum `K(t)` of what the steps before `t` offer, time becomes one
axis on which work advances evenly: a copy arrives at `K(s+1)`, must be finished by
`K(e)`, and is finished at `max(K(s+1), finish of the one before) + work`. A new copy
pushes its successors until idle time absorbs the push. The **tolerance** of a copy,
how far its finish may be pushed before it or one behind it is late, is kept per
copy, so that a check costs two bisections instead of a walk over steps and copies.

Work is held as integers (seconds times 2^40), so adding and removing in any order
comes back to the same state. The outcome is that of `AsynchronousCopyResource` in
`xla/service/memory_space_assignment/algorithm.h`, which walks over the steps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from msa.assignment.ledgers.transaction import Transaction
from msa.errors import InternalError

_SCALE = 1 << 40
_LARGEST = 2**63 - 1


class CopySpec(NamedTuple):
    """A copy to try: exclusive start, exclusive end, seconds of bandwidth."""

    start: int
    end: int
    resource: float


def scaled(resource: float) -> int:
    """Seconds as an integer count of 2^-40 s, truncated and clamped to 64 bits."""
    return min(int(resource * _SCALE), _LARGEST)


class CopyBandwidth:
    """Ledger of copies in one direction.

    Args:
        resources: what each step offers, seconds.
        transaction: where changes are recorded, or None.

    Invariant: entries are ordered by start, equal starts by arrival; finishes and
    tolerances follow from starts, ends and works (`check`).

    Checks cost O(log n); adding and removing O(pushed copies) plus a list insertion.

    >>> ledger = CopyBandwidth([2.0, 3.0, 1.0, 6.0, 7.0])
    >>> ledger.has_enough(-1, 3, 5.0), ledger.has_enough(-1, 3, 7.0)
    (True, False)
    >>> ledger.add(-1, 3, 5.0)
    0
    >>> ledger.current_resources()
    [0.0, 0.0, 1.0, 6.0, 7.0]
    """

    __slots__ = (
        "_arrival",
        "_capacity",
        "_deadline",
        "_ends",
        "_finish",
        "_ids",
        "_next_id",
        "_starts",
        "_tolerance",
        "_total",
        "_transaction",
        "_work",
    )

    def __init__(
        self, resources: Sequence[float], transaction: Transaction | None = None
    ) -> None:
        self._capacity = [scaled(x) for x in resources]
        self._total = list(accumulate(self._capacity, initial=0))
        self._transaction = transaction
        self._next_id = 0
        self._ids: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._work: list[int] = []
        self._arrival: list[int] = []
        self._deadline: list[int] = []
        self._finish: list[int] = []
        self._tolerance: list[int] = []

    def __len__(self) -> int:
        return len(self._ids)

    def has_enough(self, start: int, end: int, resource: float) -> bool:
        """Whether a copy of `resource` seconds in `(start, end)` would fit.

        Nothing is late because of it, itself included. No work always fits.
        """
        work = min(int(resource * _SCALE), _LARGEST)
        if work == 0:
            return True
        place = bisect_right(self._starts, start)
        finish = self._total[start + 1]
        if place and self._finish[place - 1] > finish:
            finish = self._finish[place - 1]
        before = finish
        finish += work
        if finish > self._total[end]:
            return False
        if place == len(self._ids):
            return True
        arrival = self._arrival[place]
        push = finish - (arrival if arrival > before else before)
        return push <= 0 or push <= self._tolerance[place]

    def has_enough_for_all(self, specs: Sequence[CopySpec]) -> bool:
        """Whether all copies, added in this order, fit together."""
        added: list[tuple[int, int]] = []
        fits = True
        for start, end, resource in specs:
            fits = self.has_enough(start, end, resource)
            if not fits:
                break
            added.append((self._insert(start, end, scaled(resource)), start))
        for number, start in reversed(added):
            self.remove(number, start)
        return fits

    def add(self, start: int, end: int, resource: float) -> int:
        """Add a copy that fits; returns its number.

        Raises:
            InternalError: it does not fit, or it is empty in time.
        """
        if start >= end or not self.has_enough(start, end, resource):
            raise InternalError(f"copy ({start}, {end}) of {resource} s does not fit")
        number = self._insert(start, end, scaled(resource))
        if self._transaction is not None:
            self._transaction.record(self.remove, number, start)
        return number

    def add_free(self, start: int, end: int) -> int:
        """Add a copy that takes no bandwidth; it never pushes others."""
        number = self._insert(start, end, 0)
        if self._transaction is not None:
            self._transaction.record(self.remove, number, start)
        return number

    def remove(self, number: int, start: int) -> None:
        """Take out the copy of that number, which has that exclusive start."""
        place = self._ids.index(number, bisect_left(self._starts, start))
        for column in (
            self._ids,
            self._starts,
            self._ends,
            self._work,
            self._arrival,
            self._deadline,
            self._finish,
            self._tolerance,
        ):
            del column[place]
        self._update(place)

    def _insert(self, start: int, end: int, work: int) -> int:
        place = bisect_right(self._starts, start)
        number = self._next_id
        self._next_id += 1
        self._ids.insert(place, number)
        self._starts.insert(place, start)
        self._ends.insert(place, end)
        self._work.insert(place, work)
        self._arrival.insert(place, self._total[start + 1])
        self._deadline.insert(place, self._total[end])
        self._finish.insert(place, -1)
        self._tolerance.insert(place, -1)
        self._update(place)
        return number

    def _update(self, place: int) -> None:
        """Recompute finishes from `place` on and tolerances back from there."""
        finishes, arrivals, works = self._finish, self._arrival, self._work
        count = len(finishes)
        done = finishes[place - 1] if place else 0
        last = place
        while last < count:
            arrival = arrivals[last]
            done = (arrival if arrival > done else done) + works[last]
            if finishes[last] == done:
                break
            finishes[last] = done
            last += 1
        tolerances, deadlines = self._tolerance, self._deadline
        # At least those whose finish changed, or whose successor is another one.
        for i in range(min(last, count - 1), -1, -1):
            tolerance = deadlines[i] - finishes[i]
            if i + 1 < count:
                behind = tolerances[i + 1]
                room = arrivals[i + 1] - finishes[i]
                reach = (room if room > 0 else 0) + (behind if behind > 0 else 0)
                if reach < tolerance:
                    tolerance = reach
            if tolerance == tolerances[i] and i < place - 1:
                break
            tolerances[i] = tolerance

    # -- reading -------------------------------------------------------------

    def current_resources(self) -> list[float]:
        """What each step still offers to a copy that starts there, seconds."""
        left = []
        for step, capacity in enumerate(self._capacity):
            place = bisect_left(self._starts, step)
            backlog = 0
            if place:
                backlog = max(0, self._finish[place - 1] - self._total[step])
            left.append((capacity - min(capacity, backlog)) / _SCALE)
        return left

    def copies(self) -> list[CopySpec]:
        """All copies in the order in which they are served."""
        return [
            CopySpec(start, end, work / _SCALE)
            for start, end, work in zip(
                self._starts, self._ends, self._work, strict=True
            )
        ]

    def check(self) -> None:
        """Raise `InternalError` if the invariant of the class is broken."""
        if self._starts != sorted(self._starts):
            raise InternalError("copies are out of order")
        done = 0
        for i, arrival in enumerate(self._arrival):
            done = max(arrival, done) + self._work[i]
            if self._finish[i] != done:
                raise InternalError(f"copy {self._ids[i]} has a stale finish")
        behind = room = _LARGEST
        for i in reversed(range(len(self._ids))):
            slack = self._deadline[i] - self._finish[i]
            if self._tolerance[i] != min(slack, max(room, 0) + max(behind, 0)):
                raise InternalError(f"copy {self._ids[i]} has a stale tolerance")
            behind = self._tolerance[i]
            if i:
                room = self._arrival[i] - self._finish[i - 1]
