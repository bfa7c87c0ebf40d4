"""Ids of the acceptance behaviours of memory space assignment, by section.

A1 basics, A2 renamings and tuples, A3 loops, A4 conditionals, A5 in-place and
asynchronous operations, A6 order by cost, A7 preferred starts, A8 synchronous moves;
B1 scratch and repacking, B2 the repacker, B3 cross-program prefetch, B4 slices, B5
colours, B6 blocks, B7 spilling, B8 windows, B9 order of copies, B10 copy bandwidth, B11
the picker, B12 costs, B13 simulated time, B14 the loop optimizer, B15 live ranges.
"""

from __future__ import annotations

_COUNTS = {
    "A1": 20,
    "A2": 10,
    "A3": 18,
    "A4": 17,
    "A5": 23,
    "A6": 10,
    "A7": 7,
    "A8": 18,
    "B1": 11,
    "B2": 7,
    "B3": 20,
    "B4": 9,
    "B5": 15,
    "B6": 14,
    "B10": 9,
    "B11": 5,
    "B13": 10,
    "B14": 10,
}
_WHOLE = ("B7", "B8", "B9", "B12", "B15")

ROWS = (
    *(f"{part}.{n}" for part, count in _COUNTS.items() for n in range(1, count + 1)),
    *_WHOLE,
)

#: Rows without a test, and why.
NOT_APPLICABLE = {
    "B15": (
        "ranges of several pieces are those of msa.analysis.Residency, which is exact "
        "and half-open, and tested with the analyses; block prefetches take the span "
        "of a buffer's reads"
    ),
}
