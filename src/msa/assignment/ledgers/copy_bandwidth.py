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


class _Copy:
    """A copy on the axis of work: see the top of this file."""

    __slots__ = (
        "arrival",
        "deadline",
        "end",
        "finish",
        "number",
        "start",
        "tolerance",
        "work",
    )

    def __init__(
        self, number: int, start: int, end: int, work: int, total: Sequence[int]
    ) -> None:
        self.number = number
        self.start = start
        self.end = end
        self.work = work
        self.arrival = total[start + 1]
        self.deadline = total[end]
        self.finish = -1
        self.tolerance = -1


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
        "_capacity",
        "_copies",
        "_next_id",
        "_starts",
        "_total",
        "_transaction",
    )

    def __init__(
        self, resources: Sequence[float], transaction: Transaction | None = None
    ) -> None:
        self._capacity = [scaled(x) for x in resources]
        self._total = list(accumulate(self._capacity, initial=0))
        self._transaction = transaction
        self._next_id = 0
        self._copies: list[_Copy] = []
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._copies)

    def has_enough(self, start: int, end: int, resource: float) -> bool:
        """Whether a copy of `resource` seconds in `(start, end)` would fit.

        Nothing is late because of it, itself included. No work always fits.
        """
        work = min(int(resource * _SCALE), _LARGEST)
        if work == 0:
            return True
        place = bisect_right(self._starts, start)
        finish = self._total[start + 1]
        if place and self._copies[place - 1].finish > finish:
            finish = self._copies[place - 1].finish
        before = finish
        finish += work
        if finish > self._total[end]:
            return False
        if place == len(self._copies):
            return True
        behind = self._copies[place]
        push = finish - (behind.arrival if behind.arrival > before else before)
        return push <= 0 or push <= behind.tolerance

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
        place = bisect_left(self._starts, start)
        while self._copies[place].number != number:
            place += 1
        del self._copies[place]
        del self._starts[place]
        self._update(place)

    def _insert(self, start: int, end: int, work: int) -> int:
        place = bisect_right(self._starts, start)
        number = self._next_id
        self._next_id += 1
        self._starts.insert(place, start)
        self._copies.insert(place, _Copy(number, start, end, work, self._total))
        self._update(place)
        return number

    def _update(self, place: int) -> None:
        """Recompute finishes from `place` on and tolerances back from there."""
        copies = self._copies
        count = len(copies)
        done = copies[place - 1].finish if place else 0
        last = place
        while last < count:
            copy = copies[last]
            done = (copy.arrival if copy.arrival > done else done) + copy.work
            if copy.finish == done:
                break
            copy.finish = done
            last += 1
        # At least those whose finish changed, or whose successor is another one.
        for i in range(min(last, count - 1), -1, -1):
            copy = copies[i]
            tolerance = copy.deadline - copy.finish
            if i + 1 < count:
                after = copies[i + 1]
                room = after.arrival - copy.finish
                reach = (room if room > 0 else 0) + (
                    after.tolerance if after.tolerance > 0 else 0
                )
                if reach < tolerance:
                    tolerance = reach
            if tolerance == copy.tolerance and i < place - 1:
                break
            copy.tolerance = tolerance

    # -- reading -------------------------------------------------------------

    def current_resources(self) -> list[float]:
        """What each step still offers to a copy that starts there, seconds."""
        left = []
        for step, capacity in enumerate(self._capacity):
            place = bisect_left(self._starts, step)
            backlog = 0
            if place:
                backlog = max(0, self._copies[place - 1].finish - self._total[step])
            left.append((capacity - min(capacity, backlog)) / _SCALE)
        return left

    def copies(self) -> list[CopySpec]:
        """All copies in the order in which they are served."""
        return [
            CopySpec(copy.start, copy.end, copy.work / _SCALE) for copy in self._copies
        ]

    def check(self) -> None:
        """Raise `InternalError` if the invariant of the class is broken."""
        if self._starts != sorted(copy.start for copy in self._copies):
            raise InternalError("copies are out of order")
        done = 0
        for copy in self._copies:
            done = max(copy.arrival, done) + copy.work
            if copy.finish != done:
                raise InternalError(f"copy {copy.number} has a stale finish")
        behind = room = _LARGEST
        for i in reversed(range(len(self._copies))):
            copy = self._copies[i]
            slack = copy.deadline - copy.finish
            if copy.tolerance != min(slack, max(room, 0) + max(behind, 0)):
                raise InternalError(f"copy {copy.number} has a stale tolerance")
            behind = copy.tolerance
            if i:
                room = copy.arrival - self._copies[i - 1].finish
