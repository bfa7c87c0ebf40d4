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
#: * `tight`: one at the bottom of the section with little slack and much to place.
Branching = Literal["lowest", "tight"]

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
    core: Core,
    state: State,
    candidates: Ints,
    branching: Branching,
    capacity: int,
    weights: Weights,
) -> int:
    """One of the candidates (not empty); ties are broken by `core.rank`.

    `weights` count, per section of the root, the failures that it caused; sections
    that fail often count as tighter.
    """
    if branching == "tight":
        found = _in_tightest(core, state, candidates, capacity, weights)
        if found >= 0:
            return found
    lower = state.lower[candidates]
    lowest = candidates[lower == lower.min()]
    return int(lowest[core.rank[lowest].argmin()])


def _in_tightest(
    core: Core, state: State, candidates: Ints, capacity: int, weights: Weights
) -> int:
    """A candidate at the bottom of the tightest section, or -1.

    The square root of the slack was measured against the slack itself, constant
    additions to it, and other powers: it solves the most instances.
    """
    bottom = np.minimum.reduceat(state.lower[core.entry_item], core.section_start)
    slack = (state.room - bottom + 1).astype(np.float64)
    to_place = capacity - state.room + 1.0
    score = np.sqrt(slack) / (weights[core.section_ids] * to_place)
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
