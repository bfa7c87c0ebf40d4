"""Exact reductions: parts that are independent in time, items that span a part.

Two parts of time that no item crosses are packed apart. An item that lives in
every section of its part can lie below everything else of that part (a packing is
cut by it into horizontal slabs, which may be rearranged), so it goes to the floor
and the rest is packed above; without it the part may fall apart again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.sections import Sections

#: Levels of nesting that are peeled; each costs a pass over the items.
_MAX_LEVELS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """Parts to pack apart.

    Attributes:
        part: per item, the part it belongs to, or -1 if it is on the floor already.
        offset: per item on the floor, its offset.
        shift: per part, the height of the floor on which it stands.
    """

    part: Ints
    offset: Ints
    shift: Ints

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.shift)


def decompose(instance: Instance, sections: Sections) -> Decomposition:
    """Peel spanning items and split in time, again and again. O(p) per level."""
    count, items = sections.count, instance.items
    low = np.full(items, count, dtype=np.int64)
    high = np.zeros(items, dtype=np.int64)
    np.minimum.at(low, instance.piece_item, sections.low)
    np.maximum.at(high, instance.piece_item, sections.high)
    spans = high - low
    solid = np.zeros(items, dtype=np.int64)
    np.add.at(solid, instance.piece_item, sections.high - sections.low)
    uniform = np.ones(items, dtype=bool)
    uniform[
        instance.piece_item[instance.piece_size != instance.size[instance.piece_item]]
    ] = False
    movable = (solid == spans) & uniform & (instance.alignment == 1)

    offset = np.zeros(items, dtype=np.int64)
    floor = np.zeros(count, dtype=np.int64)
    left = np.ones(items, dtype=bool)
    part_of_section = np.zeros(count, dtype=np.int64)
    for _ in range(_MAX_LEVELS):
        members = np.flatnonzero(left)
        part_of_section = _parts(low[members], high[members], count)
        bounds = np.searchsorted(
            part_of_section, np.arange(part_of_section[-1] + 2 if count else 1)
        )
        part = part_of_section[low[members]]
        spanning = movable[members] & (spans[members] == np.diff(bounds)[part])
        # A pin or an alignment in the part would not move along.
        stiff = np.zeros(len(bounds) - 1, dtype=bool)
        stiff[
            part[(instance.fixed[members] >= 0) | (instance.alignment[members] > 1)]
        ] = True
        spanning &= ~stiff[part]
        chosen = members[spanning]
        if not len(chosen):
            break
        _stack(chosen, part[spanning], part_of_section, instance.size, floor, offset)
        left[chosen] = False
    members = np.flatnonzero(left)
    part = np.full(items, -1, dtype=np.int64)
    used, part[members] = np.unique(part_of_section[low[members]], return_inverse=True)
    shift = floor[np.searchsorted(part_of_section, used)] if count else floor
    return Decomposition(part, offset, shift)


def _parts(low: Ints, high: Ints, count: int) -> Ints:
    """Per section, the number of its part, for items living in `[low, high)`."""
    crossing = np.zeros(count + 1, dtype=np.int64)
    np.add.at(crossing, np.minimum(low + 1, count), 1)
    np.subtract.at(crossing, high, 1)
    cut = np.cumsum(crossing)[:count] == 0
    if count:
        cut[0] = False
    return np.cumsum(cut)


def _stack(
    chosen: Ints,
    part: Ints,
    part_of_section: Ints,
    size: Ints,
    floor: Ints,
    offset: Ints,
) -> None:
    """Put the chosen items onto the floors of their parts, raising the floors."""
    order = np.argsort(part, kind="stable")
    chosen, part = chosen[order], part[order]
    tops = np.cumsum(size[chosen])
    before = np.concatenate([[0], tops])[np.searchsorted(part, part)]
    first_section = np.searchsorted(part_of_section, part)
    offset[chosen] = floor[first_section] + tops - size[chosen] - before
    rise = np.zeros(int(part_of_section[-1]) + 1, dtype=np.int64)
    np.add.at(rise, part, size[chosen])
    floor += rise[part_of_section]
