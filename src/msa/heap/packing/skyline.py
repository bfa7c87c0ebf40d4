"""The skyline: items are stacked on what is placed, always at the lowest address."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import Final

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.sections import compute_sections

#: Looks at items, per item, after which the order of the tie-break is followed.
_LOOKS: Final = 64


def place_on_skyline(instance: Instance, order: Ints) -> Ints:
    """Offsets of all items, each on the skyline of the items before it.

    The skyline is the top of what is placed, per section of time; what is below it
    is never used again. Of the items that are left, the one that comes to lie lowest
    is next, and of these the first in the order. About O(looks × sections of an item),
    with at most 64 looks per item on average; the rest is stacked in the order.

    Pinned items lie where they are pinned, in the order or not; an item that is
    neither pinned nor in the order gets offset 0 and is in nobody's way.

    Args:
        instance: in units.
        order: items, each at most once.
    """
    skyline = _Skyline(instance)
    offsets = np.maximum(instance.fixed, 0)
    free = order[instance.fixed[order] < 0].tolist()
    # Places only rise, so an entry that is still true at the front is the lowest.
    heap = [(0, rank) for rank in range(len(free))]
    heapify(heap)
    for _ in range(_LOOKS * len(free)):
        if not heap:
            return offsets
        known, rank = heap[0]
        place = skyline.lowest(free[rank], known)
        if place > known:
            heapreplace(heap, (place, rank))
            continue
        heappop(heap)
        offsets[free[rank]] = place
        skyline.raise_to(free[rank], place)
    for _, rank in sorted(heap, key=lambda entry: entry[1]):
        offsets[free[rank]] = place = skyline.lowest(free[rank], 0)
        skyline.raise_to(free[rank], place)
    return offsets


class _Skyline:
    """Tops per section; pinned pieces are apart, as there is room below them."""

    __slots__ = ("_alignment", "_pieces", "_pins", "_tops")

    def __init__(self, instance: Instance) -> None:
        sections = compute_sections(instance)
        columns = (sections.low, sections.high, instance.piece_size)
        rows = list(zip(*(c.tolist() for c in columns), strict=True))
        first = np.searchsorted(instance.piece_item, np.arange(instance.items + 1))
        bounds = first.tolist()
        #: Per item, `(low, high, size)` of its pieces.
        self._pieces = [
            rows[bounds[item] : bounds[item + 1]] for item in range(instance.items)
        ]
        self._alignment = instance.alignment.tolist()
        self._tops = np.zeros(sections.count, dtype=np.int64)
        pinned = np.flatnonzero(instance.fixed[instance.piece_item] >= 0)
        at = instance.fixed[instance.piece_item[pinned]]
        self._pins = np.stack(
            [
                sections.low[pinned],
                sections.high[pinned],
                at,
                at + instance.piece_size[pinned],
            ]
        )

    def lowest(self, item: int, place: int) -> int:
        """The lowest aligned place, from `place` on, above the skyline and off pins."""
        pieces, multiple = self._pieces[item], self._alignment[item]
        for low, high, _ in pieces:
            place = max(place, int(self._tops[low:high].max()))
        while True:
            place = -(-place // multiple) * multiple
            above = max(self._top_of_pin(place, *piece) for piece in pieces)
            if above <= place:
                return place
            place = above

    def _top_of_pin(self, place: int, low: int, high: int, size: int) -> int:
        """The top of the pins that a piece at this place would overlap, or -1."""
        if not self._pins.size:
            return -1
        start, end, bottom, top = self._pins
        hit = (start < high) & (end > low) & (bottom < place + size) & (top > place)
        return int(top[hit].max(initial=-1))

    def raise_to(self, item: int, place: int) -> None:
        """The item lies at this place from now on."""
        for low, high, size in self._pieces[item]:
            self._tops[low:high] = place + size
