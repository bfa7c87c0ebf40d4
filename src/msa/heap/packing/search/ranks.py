"""Static ranks that break ties in branching: which item goes lower."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from msa.heap.packing.instance import Ints
from msa.heap.packing.search.core import Core

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ItemFeatures:
    """What ranks are made of, per item of a core.

    Attributes:
        load: the largest load of its sections. sections: how many.
        area: sections times size. degree: items it shares time with (by hulls).
    """

    load: Ints
    sections: Ints
    area: Ints
    size: Ints
    low: Ints
    high: Ints
    degree: Ints


def item_features(core: Core) -> ItemFeatures:
    """Features of all items. O(entries + n log n)."""
    load = np.add.reduceat(core.entry_size, core.section_start)
    peak = np.maximum.reduceat(load[core.item_sections], core.item_start)
    sections = np.diff(np.append(core.item_start, len(core.item_sections)))
    started = np.searchsorted(np.sort(core.low), core.high, side="left")
    ended = np.searchsorted(np.sort(core.high), core.low, side="right")
    return ItemFeatures(
        load=peak,
        sections=sections,
        area=core.size * sections,
        size=core.size,
        low=core.low,
        high=core.high,
        degree=started - ended - 1,
    )


def _descending(*keys: Ints) -> Ints:
    """Ranks by keys, the first is the primary one, large first."""
    return _as_rank(np.lexsort([-key for key in reversed(keys)]))


def _as_rank(order: Ints) -> Ints:
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def fixed_ranks(of: ItemFeatures) -> list[Ints]:
    """The lexicographic ranks, the most successful first."""
    return [
        _descending(of.load, of.sections, of.area),
        _descending(of.sections, of.area, of.load),
        _descending(-of.low, of.size, of.load),
        _descending(of.load, of.area, of.sections),
        _descending(of.area, of.size, of.load),
    ]


def _normalised(values: Ints) -> Floats:
    numbers = values.astype(np.float64)
    low, high = numbers.min(), numbers.max()
    numbers -= low
    numbers /= max(high - low, 1.0)
    return numbers


def random_rank(of: ItemFeatures, random: np.random.Generator) -> Ints:
    """A random convex combination of the features, sometimes with noise."""
    features = (of.load, of.sections, of.area, of.size, of.degree, of.low, of.high)
    weights = random.dirichlet(np.full(len(features), 0.5))
    weights[-2:] *= random.choice([-1.0, 1.0], 2)
    score = np.zeros(len(of.size))
    for weight, feature in zip(weights, features, strict=True):
        score += weight * _normalised(feature)
    if random.random() < 0.3:
        score += random.normal(0.0, 0.05, len(score))
    return _as_rank(np.argsort(-score, kind="stable"))


#: How many ranks are fixed; those after them are random.
FIXED_RANKS = 5


def nth_rank(core: Core, number: int, random: np.random.Generator) -> Ints:
    """The rank of a try: the fixed ones first, then random ones."""
    features = item_features(core)
    if number < FIXED_RANKS:
        return fixed_ranks(features)[number]
    return random_rank(features, random)
