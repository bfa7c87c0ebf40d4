"""Large neighbourhoods: some values are taken out together and decided anew.

Deciding one value after another stops where no single one gains. A value that still
could gain is chosen by chance, a few of those in its way go to default memory, and all
of them are decided anew in another order. What is no faster in the end is taken back.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from msa.assignment.search.free import FreePlace
from msa.assignment.search.improve import LESS, Improver

_TAKEN: Final = 4
"""Values that are taken out at most."""

_MORE: Final = 3
"""Values that are decided anew besides, at most."""

_MISSES: Final = 8
"""Tries in vain per value that could gain, after which it ends."""

_LEAST_MISSES: Final = 40

_LEAST_GAIN: Final = 1e-15
"""Seconds that what could gain counts at least."""

_TRY_WORK: Final = 200.0
_KEEP_WORK: Final = 0.2
"""Costs of a try besides the decisions, and of keeping a draft per allocation, in
boundaries."""


def shake(improver: Improver, rng: random.Random, budget: float, goal: float) -> float:
    """Shake a draft that is settled; what is left of the budget.

    Args:
        improver: of the draft; it is never slower afterwards.
        rng: what is chosen by.
        budget: in boundaries.
        goal: seconds that are good enough.
    """
    near: _Neighbours | None = None
    misses = 0
    hopeful: list[tuple[float, FreePlace]] = []
    while budget > 0 and improver.seconds > goal:
        if near is None:
            hopeful = list(improver.hopeful())
            near = _Neighbours([place for _, place in hopeful], improver)
        if not hopeful or misses > max(_LEAST_MISSES, _MISSES * len(hopeful)):
            break
        before = improver.seconds
        kept = improver.keep()
        weights = [max(gain, _LEAST_GAIN) for gain, _ in hopeful]
        _, target = rng.choices(hopeful, weights)[0]
        placed, others = near.of(target)
        gone = rng.sample(placed, min(len(placed), rng.randint(1, _TAKEN)))
        more = rng.sample(others, min(len(others), _MORE))
        improver.clear(gone)
        order = [*gone, *more]
        rng.shuffle(order)
        order.insert(0 if rng.random() < 0.5 else len(order), target)
        budget = improver.decide_all(budget, order)
        budget -= _TRY_WORK + _KEEP_WORK * kept.size
        if improver.seconds < before * LESS:
            budget = improver.run(budget, goal)
            near, misses = None, 0
        else:
            budget -= improver.take_back(kept)
            misses += 1
    return budget


class _Neighbours:
    """Which places are used at the same time as another."""

    __slots__ = ("_first", "_hopeful", "_last", "_places")

    def __init__(self, hopeful: Sequence[FreePlace], improver: Improver) -> None:
        self._hopeful = {place.position for place in hopeful}
        found = {place.position: place for place in (*improver.placed(), *hopeful)}
        self._places = [found[position] for position in sorted(found)]
        spans = [place.span for place in self._places]
        self._first: NDArray[np.int64] = np.array([a for a, _ in spans], np.int64)
        self._last: NDArray[np.int64] = np.array([b for _, b in spans], np.int64)

    def of(self, target: FreePlace) -> tuple[list[FreePlace], list[FreePlace]]:
        """Those in fast memory, and others that could gain."""
        first, last = target.span
        met = np.flatnonzero((self._first <= last) & (self._last >= first))
        places = [self._places[n] for n in met.tolist()]
        others = [p for p in places if p.position in self._hopeful and p != target]
        return places, others
