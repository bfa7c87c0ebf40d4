"""Which placeable item is decided next."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from msa.heap.packing.instance import Ints
from msa.heap.packing.search.core import Core
from msa.heap.packing.search.state import PLACED, State

#: How the next item is chosen:
#:
#: * `lowest`: the placeable item with the smallest lower bound;
#: * `tight`: one at the bottom of the section with the least slack by failures;
#: * `tight_full`: the same, sections with much left to place first;
#: * `tight_low`: the same, low sections first.
Branching = Literal["lowest", "tight", "tight_full", "tight_low"]

Weights = npt.NDArray[np.float64]

#: Steps of going down from an item to one beneath it before giving up.
_DESCENT = 50


def placeable(core: Core, state: State) -> Ints:
    """Items that may be placed where they would fall.

    Not those that must rest on an unplaced neighbour, nor those under which an
    unplaced neighbour would still fit: that one comes first.
    """
    can = state.lower == state.support
    if core.has_pins:
        can |= (core.fixed >= 0) & (state.lower == core.fixed)
    can &= state.reach > state.lower
    return np.flatnonzero(can)


def choose(
    core: Core, state: State, candidates: Ints, branching: Branching, weights: Weights
) -> int:
    """One of the candidates (not empty); ties are broken by `core.rank`."""
    if branching != "lowest":
        found = _in_tightest(core, state, candidates, branching, weights)
        if found >= 0:
            return found
    lower = state.lower[candidates]
    lowest = candidates[lower == lower.min()]
    return int(lowest[core.rank[lowest].argmin()])


def _in_tightest(
    core: Core, state: State, candidates: Ints, branching: Branching, weights: Weights
) -> int:
    """A candidate at the bottom of the tightest section, or -1."""
    bottom = np.minimum.reduceat(state.lower[core.entry_item], core.section_start)
    slack = (state.room - bottom + 1).astype(np.float64)
    score = slack / weights[core.section_ids]
    if branching == "tight_full":
        # Left to place: the capacity is the same everywhere, so -room orders it.
        top_room = state.room[state.count > 0].max()
        score /= top_room - state.room + 1.0
    elif branching == "tight_low":
        score *= bottom + 1.0 + 0.01 * bottom.max(initial=1, where=bottom < PLACED)
    score[state.count == 0] = np.inf
    section = int(score.argmin())
    members = core.entry_item[core.entries_of(section, section + 1)]
    item = _first(members, state.lower[members], core.rank)
    can = np.zeros(core.items, dtype=bool)
    can[candidates] = True
    for _ in range(_DESCENT):
        if can[item]:
            return item
        beside = core.shares_time(item) & (state.lower < PLACED)
        beside[item] = False
        under = np.flatnonzero(beside)
        tops = state.lower[under] + core.size[under]
        if not len(under) or tops.min() > state.lower[item]:
            return -1
        item = _first(under, tops, core.rank)
    return -1


def _first(items: Ints, values: Ints, rank: Ints) -> int:
    """The item of the smallest value, ties by rank."""
    best = items[values == values.min()]
    return int(best[rank[best].argmin()])
