"""A buffer with its lifetime and size, and the buffers that share its offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BufferInterval:
    """What a heap algorithm is asked to place.

    Attributes:
        buffer: dense integer id; orders buffers that are otherwise equal.
        size: bytes.
        start, end: **inclusive** times (`end == -1`: not freed yet).
        colocations: ids of buffers that must get the same offset.
        need_allocation: False for a buffer that rides along with another.

    >>> BufferInterval(0, 64, 2, 5).size
    64
    """

    buffer: int
    size: int
    start: int
    end: int
    colocations: tuple[int, ...] = ()
    need_allocation: bool = True


def transitive_colocations(
    interval: BufferInterval, intervals: Mapping[int, BufferInterval]
) -> list[BufferInterval]:
    """Everything reachable from `interval` over colocations.

    The interval itself is included only if a cycle leads back to it. Ids that
    `intervals` does not know (empty buffers) are skipped. O(result) time, in
    breadth-first order.

    >>> a = BufferInterval(0, 8, 0, 1, (1,))
    >>> b = BufferInterval(1, 8, 2, 3, (2,), need_allocation=False)
    >>> c = BufferInterval(2, 8, 4, 5, (), need_allocation=False)
    >>> [i.buffer for i in transitive_colocations(a, {0: a, 1: b, 2: c})]
    [1, 2]
    """
    if not interval.colocations:
        return []
    found: dict[int, BufferInterval] = {}
    pending: list[Iterable[int]] = [interval.colocations]
    for ids in pending:
        for buffer in ids:
            other = intervals.get(buffer)
            if buffer not in found and other is not None:
                found[buffer] = other
                pending.append(other.colocations)
    return list(found.values())
