"""How many copies may be under way at once, and in which order they may land.

A sketch whose copies break a limit that was asked for is refused like one that finds
no room.
"""

from __future__ import annotations

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    SlicedCopyAllocation,
)
from msa.assignment.ledgers.ordering import CopyOrdering
from msa.assignment.ledgers.outstanding import OutstandingCopies
from msa.assignment.options import Options


class Limits:
    """Copies of a draft, by direction, against the limits of the options.

    Questions and changes are O(log n) in the number of copies.
    """

    __slots__ = ("_limits", "_order", "_under_way")

    def __init__(self, prefetches: int, evictions: int, *, ordered: bool) -> None:
        self._limits = {True: prefetches, False: evictions}
        self._under_way = {True: OutstandingCopies(), False: OutstandingCopies()}
        self._order = CopyOrdering() if ordered else None

    @staticmethod
    def of(options: Options) -> Limits | None:
        """Those of some options; None: there are none."""
        prefetches = options.max_outstanding_prefetches
        evictions = options.max_outstanding_evictions
        ordered = options.enforce_prefetch_fifo_order
        if prefetches < 0 and evictions < 0 and not ordered:
            return None
        return Limits(prefetches, evictions, ordered=ordered)

    def admit(self, allocation: Allocation) -> bool:
        """Whether one more allocation keeps them; of slices, each is a copy."""
        limit = self._limits[allocation.is_alternate]
        under_way = self._under_way[allocation.is_alternate]
        order = self._order if allocation.is_alternate else None
        spans = _spans(allocation)
        for start, done in spans:
            others = under_way.overlapping(start + 1, done) + len(spans) - 1
            if 0 <= limit <= others:
                return False
            if order is not None and order.violates(start, done):
                return False
        return True

    def add(self, allocation: Allocation) -> None:
        """Count an allocation's copies."""
        for start, done in _spans(allocation):
            self._under_way[allocation.is_alternate].add(start + 1, done)
            if self._order is not None and allocation.is_alternate:
                self._order.add(start, done)

    def remove(self, allocation: Allocation) -> None:
        """Count an allocation's copies no more."""
        for start, done in _spans(allocation):
            self._under_way[allocation.is_alternate].remove(start + 1, done)
            if self._order is not None and allocation.is_alternate:
                self._order.remove(start, done)


def _spans(allocation: Allocation) -> list[tuple[int, int]]:
    """After which step each copy starts, and before which it has landed."""
    if isinstance(allocation, CopyAllocation):
        return [(allocation.start_after, allocation.done_before)]
    if isinstance(allocation, SlicedCopyAllocation):
        return [(s.start_after, allocation.done_before) for s in allocation.slices]
    return []
