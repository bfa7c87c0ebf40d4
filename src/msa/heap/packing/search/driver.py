"""Restarts and capacities: from single dives to a packing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.search.core import Core
from msa.heap.packing.search.dive import Dive, Outcome
from msa.heap.packing.search.ranks import tries
from msa.heap.packing.sections import compute_sections

#: A dive may make this many decisions per item, and at least the second number.
_DECISIONS_PER_ITEM = 3
_DECISIONS = 400
#: Entries (items times sections) of a part whose nodes cost one unit of effort.
_ENTRIES_PER_UNIT = 4000


@dataclass(slots=True)
class Budget:
    """Effort left; a node costs one unit, more in large parts."""

    left: int

    def spend(self, nodes: int, core: Core) -> None:
        """Take what `nodes` nodes of `core` cost."""
        self.left -= nodes * (1 + len(core.entry_item) // _ENTRIES_PER_UNIT)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Offsets per item, or None; `refuted` if there are none."""

    offsets: Ints | None
    refuted: bool = False


def build_core(instance: Instance, capacity: int) -> Core:
    """The core of an instance; reservations are clipped to the capacity.

    What a reservation holds above the capacity is out of reach anyway.
    """
    room = np.maximum(capacity - instance.fixed, 0)
    size = np.where(instance.reserved, np.minimum(instance.size, room), instance.size)
    kept = np.flatnonzero(size > 0)
    if len(kept) < instance.items:
        instance = instance.select(kept)
    sections = compute_sections(instance)
    size = size[kept]
    piece_size = np.minimum(instance.piece_size, size[instance.piece_item])
    return Core(
        ids=kept,
        section_ids=np.arange(sections.count),
        size=size,
        alignment=np.where(instance.fixed >= 0, 1, instance.alignment),
        fixed=instance.fixed,
        rank=np.arange(len(kept)),
        piece_item=instance.piece_item,
        piece_low=sections.low,
        piece_high=sections.high,
        piece_size=piece_size,
    )


def search_capacity(
    core: Core, capacity: int, budget: Budget, random: np.random.Generator
) -> Found:
    """Dives with fresh ranks until one packs the core, or the budget is spent.

    Args:
        core: built for this capacity.
        capacity: units.
        budget: effort; reduced by what was used.
        random: the source of ranks after the fixed ones.
    """
    if not core.items:
        return Found(np.zeros(0, dtype=np.int64))
    limit = max(_DECISIONS_PER_ITEM * core.items, _DECISIONS)
    for rank, branching in tries(core, random):
        if budget.left <= 0:
            break
        core.rank = rank
        dive = Dive(core, capacity, limit=limit, branching=branching)
        outcome = dive.run()
        budget.spend(dive.nodes + 1, core)
        if outcome is Outcome.SOLVED:
            return Found(dive.offsets)
        if outcome is Outcome.REFUTED:
            return Found(None, refuted=True)
    return Found(None)


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """The lowest packing found of an instance, and what is proved about it.

    Attributes:
        offsets: per item, or None if nothing lower than the given height was found.
        height: of these offsets, or the given height.
        floor: no packing is lower.
    """

    offsets: Ints | None
    height: int
    floor: int


def search_height(
    instance: Instance,
    *,
    floor: int,
    height: int,
    budget: Budget,
    random: np.random.Generator,
) -> Lowered:
    """Search capacities between a lower bound and a known height.

    The bound itself comes first, with half of the effort; then the interval is
    bisected. What is not reached within its share counts as out of reach until the
    interval is empty; with effort left, it starts again.

    Args:
        floor: no packing is lower (units).
        height: of a packing that is known.
    """
    best: Ints | None = None
    while budget.left > 0 and floor < height:
        low, first = floor, True
        while low < height and budget.left > 0:
            capacity = low if first else (low + height) // 2
            share = Budget(max(budget.left // (2 if first else 3), _DECISIONS))
            core = build_core(instance, capacity)
            spent = share.left
            found = search_capacity(core, capacity, share, random)
            budget.left -= spent - share.left
            first = False
            if found.offsets is not None:
                best = instance_offsets(instance, core, found.offsets)
                height = instance.height(best)
                continue
            if found.refuted and low == floor:
                floor = capacity + 1
            low = capacity + 1
    return Lowered(best, height, min(floor, height))


def instance_offsets(instance: Instance, core: Core, offsets: Ints) -> Ints:
    """Offsets of all items: what the search placed, the rest where it is pinned."""
    result = np.maximum(instance.fixed, 0)
    result[core.ids] = offsets[core.ids]
    return result
