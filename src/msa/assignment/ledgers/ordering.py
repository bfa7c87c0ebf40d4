"""First-in first-out order of prefetches: none may be nested in another."""

from __future__ import annotations

from sortedcontainers import SortedList

from msa.assignment.ledgers.transaction import Transaction


class CopyOrdering:
    """Multiset of copies `(start, end)` of which none is strictly inside another.

    Equal starts or equal ends are allowed. Because stored copies are ordered in both
    coordinates, only the neighbours of a query matter: O(log n).

    >>> order = CopyOrdering()
    >>> for copy in [(3, 11), (1, 8), (5, 14), (7, 14)]: order.add(*copy)
    >>> [order.violates(*c) for c in [(2, 16), (9, 12), (6, 17), (5, 13), (5, 14)]]
    [True, True, True, False, False]
    """

    __slots__ = ("_copies", "_transaction")

    def __init__(self, transaction: Transaction | None = None) -> None:
        self._copies: SortedList = SortedList()
        self._transaction = transaction

    def __len__(self) -> int:
        return len(self._copies)

    def add(self, start: int, end: int) -> None:
        """Add a copy."""
        self._copies.add((start, end))
        if self._transaction is not None:
            self._transaction.record(self.remove, start, end)

    def remove(self, start: int, end: int) -> None:
        """Take such a copy out again."""
        self._copies.remove((start, end))

    def violates(self, start: int, end: int) -> bool:
        """Whether the copy would be inside a stored one, or one inside it."""
        copies = self._copies
        before = copies.bisect_left((start,))
        if before and copies[before - 1][1] > end:
            return True
        after = copies.bisect_left((start + 1,))
        return bool(after < len(copies) and copies[after][1] < end)
