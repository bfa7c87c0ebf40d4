"""How many copies of one kind are under way at a time."""

from __future__ import annotations

from sortedcontainers import SortedList

from msa.assignment.ledgers.transaction import Transaction


class OutstandingCopies:
    """Multiset of inclusive intervals with a count of those that overlap a query.

    An interval overlaps `[a, b]` unless it starts after `b` or ends before `a`, so two
    sorted lists of ends answer in O(log n).

    >>> copies = OutstandingCopies()
    >>> copies.add(2, 5); copies.add(5, 9)
    >>> copies.overlapping(5, 5), copies.overlapping(6, 20), copies.overlapping(0, 1)
    (2, 1, 0)
    """

    __slots__ = ("_ends", "_starts", "_transaction")

    def __init__(self, transaction: Transaction | None = None) -> None:
        self._starts: SortedList = SortedList()
        self._ends: SortedList = SortedList()
        self._transaction = transaction

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, start: int, end: int) -> None:
        """Add a copy under way in `[start, end]`."""
        self._starts.add(start)
        self._ends.add(end)
        if self._transaction is not None:
            self._transaction.record(self.remove, start, end)

    def remove(self, start: int, end: int) -> None:
        """Take such a copy out again."""
        self._starts.remove(start)
        self._ends.remove(end)

    def overlapping(self, start: int, end: int) -> int:
        """How many copies are under way somewhere in `[start, end]`."""
        if start > end:
            return 0
        begun: int = self._starts.bisect_right(end)
        over: int = self._ends.bisect_left(start)
        return begun - over
