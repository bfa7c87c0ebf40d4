"""Orders for the placement heuristics: which item is placed first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.placement import Rule, place
from msa.heap.packing.sections import Sections
from msa.heap.packing.skyline import place_on_skyline


@dataclass(frozen=True, slots=True)
class Heuristic:
    """A named order with the rule by which a gap is chosen, or for the skyline."""

    name: str
    rule: Rule | Literal["skyline"]
    order: Ints

    @property
    def cost(self) -> int:
        """Looks at each item, roughly: those on the skyline are looked at again."""
        return 4 if self.rule == "skyline" else 1

    def place(self, instance: Instance, order: Ints | None = None) -> Ints:
        """Offsets of all items; `order` is what is left of the own one, if not all."""
        order = self.order if order is None else order
        if self.rule == "skyline":
            return place_on_skyline(instance, order)
        return place(instance, order, self.rule)


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What orders are made of, per item.

    Attributes:
        size: units. duration: summed over pieces, in time.
        start, end: hull of the lifetime.
        load: the largest load of a section that the item lives in.
        sections: the number of sections it lives in.
    """

    size: Ints
    duration: Ints
    start: Ints
    end: Ints
    load: Ints
    sections: Ints


def range_maximum(values: Ints, low: Ints, high: Ints) -> Ints:
    """The maximum of `values[low:high]` for many non-empty ranges, O(n log n).

    >>> range_maximum(np.array([3, 1, 4, 1, 5]), np.array([0, 3]), np.array([2, 5]))
    array([3, 5])
    """
    level = np.log2(np.maximum(high - low, 1)).astype(np.int64)
    best = np.empty(len(low), dtype=np.int64)
    table, width = values, 1
    for each in range(int(level.max(initial=0)) + 1):
        here = level == each
        best[here] = np.maximum(table[low[here]], table[high[here] - width])
        if len(table) > width:
            table = np.maximum(table[:-width], table[width:])
        width *= 2
    return best


def compute_features(instance: Instance, sections: Sections) -> Features:
    """Features of all items, vectorised."""
    items, owner = instance.items, instance.piece_item
    columns = np.zeros((3, items), dtype=np.int64)
    np.add.at(columns[0], owner, instance.piece_end - instance.piece_start)
    np.add.at(columns[1], owner, sections.high - sections.low)
    if sections.count:
        peak = range_maximum(sections.load, sections.low, sections.high)
        np.maximum.at(columns[2], owner, peak)
    start = np.full(items, np.iinfo(np.int64).max)
    end = np.full(items, np.iinfo(np.int64).min)
    np.minimum.at(start, owner, instance.piece_start)
    np.maximum.at(end, owner, instance.piece_end)
    return Features(instance.size, columns[0], start, end, columns[2], columns[1])


def heuristics(features: Features) -> list[Heuristic]:
    """The portfolio, the most promising for many small buffers first.

    Ties are broken by start, then by item number.
    """
    size, duration, load = features.size, features.duration, features.load
    size_class = np.log2(np.maximum(size, 1)).astype(np.int64)
    # The product may exceed 64 bits.
    area = size.astype(np.float64) * duration

    def by(*keys: npt.NDArray[Any]) -> Ints:
        """Sort by the keys, the first is the primary one."""
        return np.lexsort((features.start, *reversed(keys)))

    classes = by(-size_class, -duration)
    sizes = by(-size, -duration)
    return [
        Heuristic("size class, duration", "first", classes),
        Heuristic("size", "first", sizes),
        Heuristic("load, size", "best", by(-load, -size, -duration)),
        Heuristic("duration", "first", by(-duration, -size)),
        Heuristic("size", "best", sizes),
        Heuristic("area", "first", by(-area, -size)),
        Heuristic("load, area", "first", by(-load, -area)),
        Heuristic("size class, duration", "best", classes),
        Heuristic("duration", "best", by(-duration, -size)),
        Heuristic("area", "best", by(-area, -size)),
        Heuristic("sections", "best", by(-features.sections, -area)),
        Heuristic("start", "first", by(features.start, -size)),
        Heuristic("start", "best", by(features.start, -duration, -size)),
        Heuristic("end", "best", by(-features.end, -size)),
        Heuristic("load, area", "skyline", by(-load, -area)),
        Heuristic("start", "skyline", by(features.start, -size)),
    ]
