"""All copies in one direction: their bandwidth and how many are under way."""

from __future__ import annotations

from collections.abc import Sequence

from msa.assignment.ledgers.copy_bandwidth import CopyBandwidth
from msa.assignment.ledgers.outstanding import OutstandingCopies
from msa.assignment.ledgers.transaction import Transaction
from msa.errors import InternalError


class CopyLane:
    """Prefetches, or evictions.

    Args:
        resources: seconds of bandwidth that each step offers.
        limit: most copies under way; negative for no limit.
        transaction: where changes are recorded.
    """

    __slots__ = ("bandwidth", "limit", "outstanding")

    def __init__(
        self, resources: Sequence[float], limit: int, transaction: Transaction
    ) -> None:
        self.bandwidth = CopyBandwidth(resources, transaction)
        self.outstanding = OutstandingCopies(transaction)
        self.limit = limit

    def violates_limit(
        self, start: int, end: int, extra: int = 0, additional: int = 0
    ) -> bool:
        """Whether one more copy in the inclusive `[start, end]` is one too many.

        `extra` raises the limit, `additional` counts copies about to be made.
        """
        if self.limit < 0:
            return False
        under_way = self.outstanding.overlapping(start, end) + additional
        return under_way >= self.limit + extra

    def add(self, start_after: int, done_before: int, resource: float) -> None:
        """A copy issued after one step and landed before another.

        Raises:
            InternalError: the bandwidth does not suffice.
        """
        if start_after >= done_before:
            raise InternalError(
                f"a copy cannot start after {start_after} and end before {done_before}"
            )
        if resource > 0:
            self.bandwidth.add(start_after, done_before, resource)
        else:
            self.bandwidth.add_free(start_after, done_before)
        self.outstanding.add(start_after + 1, done_before)
