"""Bytes of alternate memory in use at each step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msa.assignment.ledgers.transaction import Transaction
from msa.errors import InternalError

_BLOCK = 256


class PeakUsage:
    """Range additions and threshold searches over the bytes in use per step.

    Steps are grouped in blocks; a block keeps an amount that applies to all of its
    steps and its maximum. So both operations cost O(block + number of blocks) in
    numpy, a few microseconds for 100,000 steps.

    >>> usage = PeakUsage(10)
    >>> usage.add(2, 5, 100)
    >>> usage.add(4, 8, 50)
    >>> usage.highest(0, 9), usage.last_above(0, 9, 100), usage.last_above(0, 9, 150)
    (150, 5, -1)
    """

    __slots__ = ("_all", "_steps", "_top", "_transaction", "length")

    def __init__(self, length: int, transaction: Transaction | None = None) -> None:
        blocks = -(-length // _BLOCK)
        self.length = length
        self._steps: NDArray[np.int64] = np.zeros((blocks, _BLOCK), np.int64)
        self._all: NDArray[np.int64] = np.zeros(blocks, np.int64)
        self._top: NDArray[np.int64] = np.zeros(blocks, np.int64)
        self._transaction = transaction

    def add(self, start: int, end: int, size: int) -> None:
        """`size` more bytes are in use in `[start, end]`."""
        self._apply(start, end, size)
        if self._transaction is not None:
            self._transaction.record(self._apply, start, end, -size)

    def remove(self, start: int, end: int, size: int) -> None:
        """`size` fewer bytes are in use in `[start, end]`."""
        self.add(start, end, -size)

    def _apply(self, start: int, end: int, size: int) -> None:
        if start > end:
            return
        first, low = divmod(start, _BLOCK)
        last, high = divmod(end, _BLOCK)
        if first == last:
            self._part(first, low, high + 1, size)
            return
        self._part(first, low, _BLOCK, size)
        if last - first > 1:
            self._all[first + 1 : last] += size
            self._top[first + 1 : last] += size
        self._part(last, 0, high + 1, size)

    def _part(self, block: int, low: int, high: int, size: int) -> None:
        row = self._steps[block]
        row[low:high] += size
        self._top[block] = row.max() + self._all[block]

    def highest(self, start: int, end: int) -> int:
        """The most bytes in use at a step of `[start, end]`; 0 if it is empty."""
        if start > end:
            return 0
        first, low = divmod(start, _BLOCK)
        last, high = divmod(end, _BLOCK)
        if first == last:
            return int(self._steps[first, low : high + 1].max() + self._all[first])
        most = max(
            self._steps[first, low:].max() + self._all[first],
            self._steps[last, : high + 1].max() + self._all[last],
        )
        if last - first > 1:
            most = max(most, self._top[first + 1 : last].max())
        return int(most)

    def last_above(self, start: int, end: int, limit: int) -> int:
        """The last step of `[start, end]` with more than `limit` bytes; -1 if none."""
        if start > end:
            return -1
        first, low = divmod(start, _BLOCK)
        last, high = divmod(end, _BLOCK)
        if first == last:
            return self._last_in(first, low, high + 1, limit)
        found = self._last_in(last, 0, high + 1, limit)
        if found >= 0:
            return found
        if last - first > 1:
            full = np.flatnonzero(self._top[first + 1 : last] > limit)
            if full.size:
                return self._last_in(first + 1 + int(full[-1]), 0, _BLOCK, limit)
        return self._last_in(first, low, _BLOCK, limit)

    def _last_in(self, block: int, low: int, high: int, limit: int) -> int:
        above = self._steps[block, low:high] > limit - self._all[block]
        if not above.any():
            return -1
        return block * _BLOCK + high - 1 - int(above[::-1].argmax())

    def per_step(self) -> NDArray[np.int64]:
        """Bytes in use at each step, int64[length]."""
        return (self._steps + self._all[:, None]).ravel()[: self.length]

    def check(self) -> None:
        """Raise `InternalError` if a block's maximum is stale."""
        if not (self._steps.max(axis=1) + self._all == self._top).all():
            raise InternalError("a block maximum of the peak usage is stale")
