"""Breadth-first bisection of a range of integers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class BreadthFirstMidpointIterator:
    """The integers of `[start, end]` (inclusive), midpoints first.

    The middle (rounded up) comes first, then the middles of the lower and the
    upper half, and so on, breadth first. An empty range yields nothing.

    >>> list(BreadthFirstMidpointIterator(1, 5))
    [3, 2, 5, 1, 4]
    """

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def __iter__(self) -> Iterator[int]:
        ranges = deque([(self.start, self.end)] if self.start <= self.end else [])
        while ranges:
            start, end = ranges.popleft()
            middle = start + (end - start + 1) // 2
            yield middle
            if start < middle:
                ranges.append((start, middle - 1))
            if middle < end:
                ranges.append((middle + 1, end))
