"""Bytes of alternate memory in use at each step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msa.assignment.ledgers.transaction import Transaction
from msa.errors import InternalError

_BLOCK = 128
_STRIDE = 16
"""Blocks that a search passes over at once if none of them matters."""


class PeakUsage:
    """Range additions and threshold searches over the bytes in use per step.

    Steps are grouped in blocks; a block keeps an amount that applies to all of its
    steps and its maximum. So both operations cost O(block + number of blocks), and
    for the short ranges that are common a few list operations (numpy would spend more
    on each call than on the numbers).

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
        # Per block: bytes of each step, bytes of all steps, and the largest sum.
        self._steps: list[list[int]] = [[0] * _BLOCK for _ in range(blocks)]
        self._all: list[int] = [0] * blocks
        self._top: list[int] = [0] * blocks
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
        for block in range(first + 1, last):
            self._all[block] += size
            self._top[block] += size
        self._part(last, 0, high + 1, size)

    def _part(self, block: int, low: int, high: int, size: int) -> None:
        row = self._steps[block]
        part = [used + size for used in row[low:high]]
        row[low:high] = part
        if size > 0:
            top = max(part) + self._all[block]
            if top > self._top[block]:
                self._top[block] = top
        else:
            self._top[block] = max(row) + self._all[block]

    def highest(self, start: int, end: int) -> int:
        """The most bytes in use at a step of `[start, end]`; 0 if it is empty."""
        if start > end:
            return 0
        first, low = divmod(start, _BLOCK)
        last, high = divmod(end, _BLOCK)
        if first == last:
            return max(self._steps[first][low : high + 1]) + self._all[first]
        most = max(
            max(self._steps[first][low:]) + self._all[first],
            max(self._steps[last][: high + 1]) + self._all[last],
        )
        if last - first > 1:
            most = max(most, *self._top[first + 1 : last])
        return most

    def last_above(self, start: int, end: int, limit: int) -> int:
        """The last step of `[start, end]` with more than `limit` bytes; -1 if none."""
        if start > end:
            return -1
        first, low = divmod(start, _BLOCK)
        block, high = divmod(end, _BLOCK)
        top = self._top
        while block >= first:
            if top[block] > limit:
                row, rest = self._steps[block], limit - self._all[block]
                bottom = low if block == first else 0
                step = _last_over(row, bottom, high, rest)
                if step >= 0:
                    return block * _BLOCK + step
            block -= 1
            high = _BLOCK - 1
            while (
                block - first >= _STRIDE
                and max(top[block - _STRIDE + 1 : block + 1]) <= limit
            ):
                block -= _STRIDE
        return -1

    def per_step(self) -> NDArray[np.int64]:
        """Bytes in use at each step, int64[length]."""
        steps = np.asarray(self._steps, np.int64)
        steps += np.asarray(self._all, np.int64)[:, None]
        return steps.ravel()[: self.length]

    def check(self) -> None:
        """Raise `InternalError` if a block's maximum is stale."""
        for row, everywhere, top in zip(self._steps, self._all, self._top, strict=True):
            if max(row) + everywhere != top:
                raise InternalError("a block maximum of the peak usage is stale")


def _last_over(row: list[int], low: int, high: int, limit: int) -> int:
    """The last number of `row[low : high + 1]` over a limit; -1 if none."""
    if low > high or max(row[low : high + 1]) <= limit:
        return -1
    while low < high:
        middle = (low + high + 1) // 2
        if max(row[middle : high + 1]) > limit:
            low = middle
        else:
            high = middle - 1
    return low
