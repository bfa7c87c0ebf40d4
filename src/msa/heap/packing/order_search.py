"""Iterated search over placement orders, for more items than the exact search likes.

A packing follows from the order in which first fit places the items. What sticks out
above the goal came too late: it is moved forward, before something that it lies upon
or lives with, and the new order is kept unless it is worse.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.placement import place
from msa.heap.packing.search.driver import Budget

#: An instance is searched if the effort pays for this many placements of all items.
_TRIES: Final = 4
#: Orders that were not kept, one after another, before some items are moved at random.
_PATIENCE: Final = 12
#: Of the items that stick out, at most this many are moved at once.
_MOVED: Final = 4


def search_order(
    instance: Instance,
    offsets: Ints,
    *,
    goal: int,
    budget: Budget,
    random: np.random.Generator,
) -> Ints | None:
    """Offsets that are lower than the given ones, or None.

    Each placement of an item costs one of the effort; nothing is tried where that
    pays for less than four orders.

    Args:
        instance: in units.
        offsets: a packing to start from; the first order is by its offsets.
        goal: it ends when this height is reached (units).
        budget: effort; reduced by what was used.
        random: which items move, and where to.
    """
    movable = np.flatnonzero(instance.fixed < 0)
    if budget.left < _TRIES * max(len(movable), 1):
        return None
    known = best = instance.height(offsets)
    found: Ints | None = None
    order = movable[np.argsort(offsets[movable], kind="stable")]
    kept = offsets
    value = _value(instance, kept, goal)
    rejected = 0
    while best > goal and budget.left >= len(movable):
        late = _sticking_out(instance, kept, goal, random)
        tried = _forward(instance, order, kept, late, random)
        if rejected >= _PATIENCE:
            tried = _forward(instance, tried, kept, random.choice(order, 2), random)
        placed = place(instance, tried, "first")
        budget.left -= len(movable)
        height = instance.height(placed)
        if height < best:
            best, found = height, placed
        new = _value(instance, placed, goal)
        if new <= value or rejected >= _PATIENCE:
            order, kept, value, rejected = tried, placed, new, 0
        else:
            rejected += 1
    return found if best < known else None


def _value(instance: Instance, offsets: Ints, goal: int) -> tuple[int, int]:
    """What is made small: the height, then what is above the goal in all."""
    counted = ~instance.reserved
    over = offsets[counted] + instance.size[counted] - goal
    return int(over.max(initial=0)), int(over[over > 0].sum())


def _sticking_out(
    instance: Instance, offsets: Ints, goal: int, random: np.random.Generator
) -> Ints:
    """Some items that end above the goal, the highest among them."""
    ends = np.where(instance.fixed < 0, offsets + instance.size, 0)
    above = np.flatnonzero(ends > goal)
    if not len(above):
        return above
    highest = above[ends[above].argmax()]
    count = int(random.integers(0, min(_MOVED, len(above))))
    return np.unique(np.append(random.choice(above, count, replace=False), highest))


def _forward(
    instance: Instance,
    order: Ints,
    offsets: Ints,
    late: Ints,
    random: np.random.Generator,
) -> Ints:
    """The order with each late item before an earlier one that it lives with."""
    keys = np.empty(instance.items, dtype=np.float64)
    keys[order] = np.arange(len(order))
    for item in late.tolist():
        mine = instance.piece_item == item
        start = int(instance.piece_start[mine].min())
        end = int(instance.piece_end[mine].max())
        meets = (instance.piece_start < end) & (instance.piece_end > start)
        others = np.unique(instance.piece_item[meets])
        others = others[
            (instance.fixed[others] < 0) & (offsets[others] < offsets[item])
        ]
        others = others[keys[others] < keys[item]]
        if len(others):
            # Mostly before what lies just below, sometimes before anything.
            near = others[np.argsort(-offsets[others], kind="stable")]
            index = min(int(random.exponential(len(near) / 3)), len(near) - 1)
            keys[item] = keys[near[index]] - 0.5
    return order[np.argsort(keys[order], kind="stable")]
