"""When the slices of a prefetch start.

Reference: `SlicedPrefetchStartTimePicker` in
`xla/service/memory_space_assignment/slice.cc`.
"""

from __future__ import annotations

from collections.abc import Callable


def pick_start_times(
    count: int,
    start: int,
    end: int,
    elapsed: Callable[[int, int], float],
    same_parent: Callable[[int, int], bool],
) -> list[int]:
    """Exclusive starts, ascending, that spread `count` copies over `(start, end)`.

    Each next slice starts when its share of the time has passed, after a step that
    takes time, and in the region of the first; else it starts with the one before.

    >>> ones = lambda s, e: float(max(0, e - s - 1))
    >>> pick_start_times(2, 5, 10, ones, lambda a, b: True)
    [5, 7]
    """
    total = elapsed(start, end)
    if count == 1 or start >= end - 2 or total <= 0:
        return [start] * count
    starts = [start]
    last = candidate = start
    while candidate < end - 1 and len(starts) < count:
        target = total * (count - len(starts)) / count
        if elapsed(candidate, end) < target:
            starts.append(last)
            continue
        if (
            last != candidate
            and elapsed(last, candidate + 1) > 0
            and same_parent(max(0, start), max(0, candidate))
        ):
            last = candidate
        candidate += 1
    return starts + [last] * (count - len(starts))
