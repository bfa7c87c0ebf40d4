"""Vectorised placement of many items in a given order: first fit and best fit.

To place an item one needs the address ranges of the placed items that share time
with it. The pieces are laid out in slots by (duration class, start); in a class,
whose durations differ by at most a factor of four, those that can overlap a piece
are one contiguous range of slots, found once for all pieces by bisection. A query
is then a few slices and a comparison, and the work follows the number of live
items, not the number of items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from msa.heap.packing.instance import Instance, Ints

Rule = Literal["first", "best"]

_UNPLACED = np.iinfo(np.int64).min
#: Offsets below this are packed with their ends into one sortable integer.
_PACKED_LIMIT = 2**31


class Placer:
    """Places the items of an instance; usable for any number of orders.

    Pinned items are placed first. Building costs O(p log p); a placement
    O(k log k) per item with k placed items sharing time with it (and a factor of
    about two more slots looked at).
    """

    __slots__ = (
        "_ends",
        "_instance",
        "_keys",
        "_pieces_of",
        "_ranges",
        "_slot",
        "_wide",
    )

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        start, end = instance.piece_start, instance.piece_end
        duration = end - start
        level = (np.log2(np.maximum(duration, 1)) / 2).astype(np.int64)
        order = np.lexsort((start, level))
        self._slot = np.empty(len(order), dtype=np.int64)
        self._slot[order] = np.arange(len(order))
        self._ranges = _slot_ranges(start, end, level, order)
        self._pieces_of = np.searchsorted(
            instance.piece_item, np.arange(instance.items + 1)
        ).tolist()

    def place(self, order: Ints, rule: Rule) -> Ints:
        """Offsets of all items, placed in this order of item numbers.

        Pinned items lie where they are pinned, in the order or not; an item that is
        neither pinned nor in the order gets offset 0 and does not count.
        """
        instance = self._instance
        ceiling = int((instance.piece_size + instance.alignment).sum())
        ceiling += int(instance.fixed.max(initial=0))
        self._wide = ceiling >= _PACKED_LIMIT
        slots = len(instance.piece_item)
        self._ends = np.full(slots, _UNPLACED, dtype=np.int64)
        self._keys = np.zeros((slots, 2) if self._wide else slots, dtype=np.int64)
        choose = _first_fit if rule == "first" else _best_fit
        offsets = np.maximum(instance.fixed, 0)
        pinned = instance.fixed >= 0
        for item in np.flatnonzero(pinned).tolist():
            self._commit(item, int(offsets[item]))
        sizes = instance.size.tolist()
        alignments = instance.alignment.tolist()
        for item in order[~pinned[order]].tolist():
            used, tops = self._used(item)
            if len(used):
                offset = choose(used, tops, sizes[item], alignments[item])
                offsets[item] = offset
                self._commit(item, offset)
            else:
                self._commit(item, 0)
        return offsets

    def _commit(self, item: int, offset: int) -> None:
        instance = self._instance
        for piece in range(self._pieces_of[item], self._pieces_of[item + 1]):
            slot = self._slot[piece]
            end = offset + int(instance.piece_size[piece])
            self._ends[slot] = instance.piece_end[piece]
            self._keys[slot] = (offset, end) if self._wide else offset << 32 | end

    def _used(self, item: int) -> tuple[Ints, Ints]:
        """Offsets, ascending, and ends of the placed pieces that share time."""
        found = []
        ends, keys = self._ends, self._keys
        for piece in range(self._pieces_of[item], self._pieces_of[item + 1]):
            start = self._instance.piece_start[piece]
            for low, high in self._ranges:
                a, b = low[piece], high[piece]
                if a < b:
                    hits = keys[a:b][ends[a:b] > start]
                    if len(hits):
                        found.append(hits)
        if not found:
            return keys[:0], keys[:0]
        hits = found[0] if len(found) == 1 else np.concatenate(found)
        if self._wide:
            hits = hits[np.argsort(hits[:, 0], kind="stable")]
            return hits[:, 0], hits[:, 1]
        hits.sort()
        return hits >> 32, hits & 0xFFFFFFFF


def _slot_ranges(
    start: Ints, end: Ints, level: Ints, order: Ints
) -> list[tuple[list[int], list[int]]]:
    """Per class, for every piece, the range of slots that may share time with it."""
    ranges = []
    in_order = level[order]
    for each in np.unique(level).tolist():
        first, last = np.searchsorted(in_order, [each, each + 1])
        members = order[first:last]
        starts = start[members]
        reach = int((end[members] - starts).max())
        # start < piece end, and start + reach > piece start.
        low = first + np.searchsorted(starts, start - reach, side="right")
        high = first + np.searchsorted(starts, end, side="left")
        ranges.append((low.tolist(), high.tolist()))
    return ranges


Choice = Callable[[Ints, Ints, int, int], int]


def _gaps(used: Ints, ends: Ints, size: int, alignment: int) -> tuple[Ints, Ints, int]:
    """Aligned starts below each used range, the room there, and the top."""
    tops = np.maximum.accumulate(ends)
    starts = np.empty_like(tops)
    starts[0] = 0
    starts[1:] = tops[:-1]
    top = int(tops[-1])
    if alignment > 1:
        starts = -(-starts // alignment) * alignment
        top = -(-top // alignment) * alignment
    return starts, used - starts, top


def _first_fit(used: Ints, ends: Ints, size: int, alignment: int) -> int:
    starts, room, top = _gaps(used, ends, size, alignment)
    fits = room >= size
    index = int(fits.argmax())
    return int(starts[index]) if fits[index] else top


def _best_fit(used: Ints, ends: Ints, size: int, alignment: int) -> int:
    starts, room, top = _gaps(used, ends, size, alignment)
    fitting = np.flatnonzero(room >= size)
    if not len(fitting):
        return top
    return int(starts[fitting[room[fitting].argmin()]])
