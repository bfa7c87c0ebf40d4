"""What follows from the bounds: raise lower bounds to a fixed point, or fail.

With `m` the smallest lower bound of a section's unplaced items and `rem` their
summed sizes, per section and node:

* the section fits only if `m + rem <= capacity`;
* not-first: an item with `lower + rem > capacity` is not the lowest of the section,
  so it lies above the lowest possible top among those that may be;
* an item that must not rest on what is placed rests on an unplaced neighbour, so it
  lies above the lowest possible top beside it.

All rules are segmented minima over the entries; a pass costs O(entries).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from msa.heap.packing.search.core import Core
from msa.heap.packing.search.state import PLACED, State


class Inference(NamedTuple):
    """The failing section, or -1; and the entries that all passes looked at."""

    failed: int
    touched: int


def infer(core: Core, state: State) -> Inference:
    """Raise `state.lower` and set `state.reach`, unless some section fails.

    Passes follow each other until nothing is raised: one or two where items are few,
    dozens where many rest on each other. What they touch is what they cost.
    """
    lower, support, room = state.lower, state.support, state.room
    entry_item, entry_section = core.entry_item, core.entry_section
    room_of_entry = room[entry_section]
    touched = 0
    while True:
        touched += len(entry_item)
        at = lower[entry_item]
        crowded = np.minimum.reduceat(at, core.section_start) > room
        if crowded.any():
            return Inference(int(crowded.argmax()), touched)
        late = at > room_of_entry
        tops = at + core.entry_size
        np.putmask(tops, late, PLACED)
        lowest_top = np.minimum.reduceat(tops, core.section_start)
        raised = lowest_top[entry_section]
        late &= raised > at
        reach = np.minimum.reduceat(lowest_top[core.item_sections], core.item_start)
        floating = (lower > support) & (reach > lower) & (lower < PLACED)
        if core.has_pins:
            # A pin needs no support, and must not be pushed up.
            floating &= core.fixed < 0
            pushed = (core.fixed >= 0) & (lower > core.fixed) & (lower < PLACED)
            if pushed.any():
                return Inference(int(core.low[pushed.argmax()]), touched)
        any_late = late.any()
        if not any_late and not floating.any():
            break
        if any_late:
            entries = np.flatnonzero(late)
            np.maximum.at(lower, entry_item[entries], raised[entries])
        np.maximum(lower, reach, out=lower, where=floating)
        if core.has_alignment:
            unplaced = lower < PLACED
            aligned = -(-lower // core.alignment) * core.alignment
            np.copyto(lower, aligned, where=unplaced)
    state.reach = reach
    return Inference(-1, touched)
