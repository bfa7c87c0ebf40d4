"""Free gaps between used address ranges, and best fit among them.

The rules are XLA's (`GlobalDecreasingSizeBestFitHeap` in
`xla/service/heap_simulator/heap_simulator.cc`) to the byte, because plans are
compared with it: gap starts after the first are aligned, and a gap is listed if
it holds the buffer's own size even when a larger colocated buffer needs more.
"""

from __future__ import annotations

from bisect import bisect_right

from msa.heap.chunk import INFINITY, align_up

#: Free addresses `(start, end)`, half-open; the last gap ends at `INFINITY`.
Gap = tuple[int, int]


def free_gaps(used: list[tuple[int, int]], size: int, alignment: int) -> list[Gap]:
    """The gaps of at least `size` bytes left by the used ranges `(offset, end)`.

    Gaps come by ascending start; the last is unbounded. O(n log n) time.

    >>> free_gaps([(8, 16), (24, 32)], 8, 1)[:2]
    [(0, 8), (16, 24)]
    """
    if not used:
        return [(0, INFINITY)]
    used.sort()
    gaps = []
    top = 0
    for offset, end in used:
        # `top` closes a merged run of used ranges; touching runs leave no gap.
        if offset - top >= size:
            start = align_up(top, alignment)
            if offset - start >= size:
                gaps.append((start, offset))
        if end > top:
            top = end
    gaps.append((align_up(top, alignment), INFINITY))
    return gaps


def best_fit(gaps: list[Gap], size: int, alignment: int, preferred: int = -1) -> int:
    """The offset at which `size` bytes go.

    The preferred offset is taken if it is aligned and free; else the smallest gap
    that is large enough (the lowest among equals), at its aligned start.

    >>> best_fit([(0, 8), (16, 20), (32, 2**63 - 1)], 4, 4)
    16
    >>> best_fit([(0, 8), (16, 20), (32, 2**63 - 1)], 4, 4, preferred=4)
    4
    """
    if preferred >= 0 and preferred % alignment == 0:
        index = bisect_right(gaps, (preferred, INFINITY)) - 1
        if index >= 0:
            end = gaps[index][1]
            if preferred < end and preferred + size <= end:
                return preferred
    best, width = -1, INFINITY + 1
    for start, end in gaps:
        offset = align_up(start, alignment)
        if offset + size <= end and end - start < width:
            best, width = offset, end - start
    return best
