"""What changes during a search: bounds of the unplaced items, room per section."""

from __future__ import annotations

import numpy as np

from msa.heap.packing.instance import Ints
from msa.heap.packing.search.core import Core

#: Stands for "placed" in `lower` (larger than every address).
PLACED = 2**60
#: Above every sum of `PLACED` and a size.
BEYOND = 2**62


class State:
    """A node of the search.

    Attributes:
        lower: per item, a proved lower bound on its offset; `PLACED` once placed.
        support: per item, where it would fall now: the top of the placed items that
            it shares time with, aligned. Invariant: `lower >= support` if unplaced.
        room: per section, the capacity less the sizes of its unplaced items: the
            highest possible place of its lowest one; `BEYOND` if all are placed.
        count: per section, its unplaced items.
        left: unplaced items.
        reach: per item, the lowest possible top of an unplaced item beside it.
    """

    __slots__ = ("count", "left", "lower", "reach", "room", "support")

    lower: Ints
    support: Ints
    room: Ints
    count: Ints
    left: int
    reach: Ints

    @classmethod
    def enter(cls, core: Core, lower: Ints, support: Ints, capacity: int) -> State:
        """A state in which nothing of `core` is placed yet."""
        state = cls()
        state.lower, state.support = lower, support
        state.left = core.items
        load = np.add.reduceat(core.entry_size, core.section_start)
        state.room = capacity - load
        ends = np.append(core.section_start[1:], len(core.entry_item))
        state.count = ends - core.section_start
        state.reach = lower
        return state

    def copy(self) -> State:
        """An independent copy."""
        state = State()
        state.lower = self.lower.copy()
        state.support = self.support.copy()
        state.room = self.room.copy()
        state.count = self.count.copy()
        state.left = self.left
        state.reach = self.reach
        return state

    def place(self, core: Core, item: int) -> int:
        """Place an item at its lower bound, below all its unplaced neighbours.

        Returns the offset.
        """
        offset = int(self.lower[item])
        rise = core.neighbour_rise(item)
        lower, support = self.lower, self.support
        if rise is None:
            beside = core.shares_time(item)
            top = offset + int(core.size[item])
            np.maximum(support, top, out=support, where=beside)
        else:
            np.maximum(support, offset + rise, out=support, where=rise > 0)
        if core.has_alignment:
            np.multiply(-(-support // core.alignment), core.alignment, out=support)
        np.maximum(lower, support, out=lower)
        lower[item] = PLACED
        self._make_room(core, item)
        self.left -= 1
        return offset

    def _make_room(self, core: Core, item: int) -> None:
        if core.simple:
            spans = [(int(core.low[item]), int(core.high[item]), int(core.size[item]))]
        else:
            first, last = np.searchsorted(core.piece_item, [item, item + 1]).tolist()
            spans = [
                (
                    int(core.piece_low[piece]),
                    int(core.piece_high[piece]),
                    int(core.piece_size[piece]),
                )
                for piece in range(first, last)
            ]
        for low, high, size in spans:
            self.count[low:high] -= 1
            self.room[low:high] += size
            self.room[low:high][self.count[low:high] == 0] = BEYOND
