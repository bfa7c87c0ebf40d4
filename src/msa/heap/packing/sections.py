"""Sections: the maximal live sets of an instance, in time order.

Only maximal live sets matter to packing: any two rectangles that share a time
share a section, and the load is largest in one. Times shrink to section numbers;
a piece is live in the sections `[low, high)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.heap.packing.instance import Instance, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """Sections of an instance.

    Attributes:
        count: how many there are.
        low, high: per piece, the half-open range of sections it is live in.
        time: per section, a time at which exactly its members live.
        load: per section, the summed sizes of its pieces (bytes).
    """

    count: int
    low: Ints
    high: Ints
    time: Ints
    load: Ints


def compute_sections(instance: Instance) -> Sections:
    """Sweep over the sorted endpoints, O(p log p) for p pieces, vectorised.

    A section is complete when an end follows a start: at an end time the live set
    just before it is maximal if something started since the previous end.
    """
    start, end = instance.piece_start, instance.piece_end
    times = np.unique(np.concatenate([start, end]))
    at_start = np.searchsorted(times, start)
    at_end = np.searchsorted(times, end)
    has_start = np.zeros(len(times), dtype=bool)
    has_end = np.zeros(len(times), dtype=bool)
    has_start[at_start] = True
    has_end[at_end] = True
    # Between an end at time k and the previous end, some start (at the time of the
    # previous end or later) makes a new section.
    starts_before = np.concatenate([[0], np.cumsum(has_start)])[:-1]
    ends = np.flatnonzero(has_end)
    previous = np.concatenate([[0], starts_before[ends[:-1]]]) if len(ends) else ends
    emits = np.zeros(len(times), dtype=bool)
    emits[ends] = starts_before[ends] > previous
    emitted = np.cumsum(emits)
    low, high = emitted[at_start], emitted[at_end]
    count = int(emitted[-1]) if len(times) else 0
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, low, instance.piece_size)
    np.subtract.at(change, high, instance.piece_size)
    # The instant just before the closing end has every member alive.
    time = times[np.flatnonzero(emits) - 1] if count else times
    return Sections(
        count,
        low.astype(np.int64),
        high.astype(np.int64),
        time.astype(np.int64),
        np.cumsum(change)[:-1],
    )
