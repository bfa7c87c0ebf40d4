"""Lower bounds on the height of any packing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.sections import Sections

#: Sections whose padding is looked at one by one before a weaker bound is used.
_PADDING_LOOKS = 64


@dataclass(frozen=True, slots=True)
class Bound:
    """No packing is lower than `height` (bytes); `section` shows why (-1: a pin)."""

    height: int
    section: int


def lower_bound(instance: Instance, sections: Sections) -> Bound:
    """The largest load of a section, pinned space and alignment considered.

    With one alignment `A` for all, every buffer but the topmost of a section is
    padded to a multiple of `A`. Pinned buffers and reservations leave holes: the
    free buffers of a section need a height below which that much is free.
    O(p log p); with pins O(pins * pins live at once) more.
    """
    pinned = instance.fixed >= 0
    tops = instance.fixed[pinned & ~instance.reserved]
    tops = tops + instance.size[pinned & ~instance.reserved]
    best = Bound(int(tops.max()) if len(tops) else 0, -1)
    if not sections.count:
        return best
    if pinned.any():
        found = _bound_around_pins(instance, sections, pinned)
    else:
        found = _bound_with_padding(instance, sections)
    return found if found.height >= best.height else best


def section_loads(low: Ints, high: Ints, size: Ints, count: int) -> Ints:
    """Summed sizes per section of pieces live in sections `[low, high)`."""
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, low, size)
    np.subtract.at(change, high, size)
    return np.cumsum(change)[:-1]


def _bound_with_padding(instance: Instance, sections: Sections) -> Bound:
    top = int(sections.load.argmax())
    plain = Bound(int(sections.load[top]), top)
    unit = int(np.gcd.reduce(instance.alignment))
    padding = -instance.piece_size % unit
    if not padding.any():
        return plain
    low, high = sections.low, sections.high
    size = instance.piece_size + padding
    load = section_loads(low, high, size, sections.count)
    order = np.argsort(-load, kind="stable")
    best = plain
    for looks, section in enumerate(order.tolist()):
        if load[section] <= best.height:
            break
        if looks < _PADDING_LOOKS:
            live = (low <= section) & (section < high)
            spared = int(padding[live].max())
        else:
            spared = int(padding.max())
        height = int(load[section]) - spared
        if height > best.height:
            best = Bound(height, section)
        elif looks >= _PADDING_LOOKS:
            break
    return best


def _bound_around_pins(
    instance: Instance, sections: Sections, pinned: np.ndarray
) -> Bound:
    low, high = sections.low, sections.high
    is_pin = pinned[instance.piece_item]
    load = section_loads(
        low[~is_pin], high[~is_pin], instance.piece_size[~is_pin], sections.count
    )
    pin_low, pin_high = low[is_pin], high[is_pin]
    offset = instance.fixed[instance.piece_item[is_pin]]
    end = offset + instance.piece_size[is_pin]
    cuts = np.unique(np.concatenate([[0, sections.count], pin_low, pin_high]))
    best = Bound(0, 0)
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        section = first + int(load[first:last].argmax())
        live = np.flatnonzero((pin_low <= first) & (first < pin_high))
        live = live[np.argsort(offset[live], kind="stable")]
        spans = list(zip(offset[live].tolist(), end[live].tolist(), strict=True))
        height = height_with_free_space(spans, int(load[section]))
        if height > best.height:
            best = Bound(height, section)
    return best


def height_with_free_space(used: list[tuple[int, int]], need: int) -> int:
    """The smallest height below which `need` bytes are free beside the used ranges.

    `used` are `(offset, end)` by offset; 0 if nothing is needed.

    >>> height_with_free_space([(8, 24)], 8), height_with_free_space([(8, 24)], 10)
    (8, 26)
    """
    at = 0
    for offset, end in used:
        if need <= max(0, offset - at):
            break
        need -= max(0, offset - at)
        at = max(at, end)
    return at + need if need else 0
