"""Restarts and capacities: from single dives to a packing."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.search.branching import Branching
from msa.heap.packing.search.core import Core
from msa.heap.packing.search.dive import Dive, Outcome, node_cost
from msa.heap.packing.search.joining import Blocks, can_join, join
from msa.heap.packing.search.ranks import FIXED_RANKS, nth_rank
from msa.heap.packing.sections import compute_sections

#: A dive ends after this many decisions per item without getting further, and after at
#: least the second number.
_DECISIONS_PER_ITEM = 1
_DECISIONS = 200
#: Cores of at most this many items are first searched without skipping branches.
_SMALL = 24
#: Paths kept to start from, how often a dive starts afresh nevertheless, and the
#: share of a path that is kept. Measured on perturbed instances: starting from paths
#: solves about a tenth more of them in equal time.
_POOL = 12
_FRESH = 0.4
_KEPT = (0.2, 0.95)


#: Tries take turns in how they branch.
_BRANCHINGS: Final[tuple[Branching, ...]] = ("lowest", "tight")
#: Shares of pairs that are joined in time and in space: of the first tries, and what
#: the shares of later tries are drawn from; how often nothing is joined.
_FIRST_JOINS = ((0, 0), (1, 1), (1, 0), (0, 1), (0.6, 0.6), (1, 0.5), (0, 0))
_SHARES = (0.0, 0.4, 0.8, 1.0)
_ALONE = 0.15


@dataclass(slots=True)
class Budget:
    """Effort left; see `node_cost` for what a node takes."""

    left: int

    def affords(self, items: int, entries: int) -> bool:
        """Whether it is worth to start: it pays for two straight dives.

        Nodes that touch every entry once are the least that a dive has.
        """
        return self.left >= 2 * items * node_cost(entries)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Offsets per item of the core, or None; `refuted` if there are none."""

    offsets: Ints | None
    refuted: bool = False


def build_core(instance: Instance, capacity: int, budget: Budget) -> Core | None:
    """The core of an instance, or None if the budget cannot pay for its search.

    Reservations are clipped to the capacity: what they hold above is out of reach.
    """
    room = np.maximum(capacity - instance.fixed, 0)
    size = np.where(instance.reserved, np.minimum(instance.size, room), instance.size)
    kept = np.flatnonzero(size > 0)
    if len(kept) < instance.items:
        instance = instance.select(kept)
    sections = compute_sections(instance)
    entries = int((sections.high - sections.low).sum())
    if not budget.affords(len(kept), entries):
        return None
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
    """Dives until one packs the core, or the budget is spent.

    The first dives follow fixed ranks. Later ones have random ranks, and most of them
    start with the first decisions of an earlier dive that came far. Most dives are
    over blocks of joined items; only those over the items themselves refute.

    Args:
        core: built for this capacity.
        capacity: units.
        budget: effort; reduced by what was used.
        random: the source of ranks after the fixed ones.
    """
    if not core.items:
        return Found(np.zeros(0, dtype=np.int64))
    pool = _Pool(random)
    complete = core.items <= _SMALL
    plain = _plain(core)
    for number in count():
        if budget.left <= 0:
            break
        blocks: Blocks | None = plain
        start: list[int] = []
        if not complete:
            blocks, start = pool.pick() if number >= 2 * FIXED_RANKS else (None, [])
        blocks = blocks or _joined(core, number, random) or plain
        tried, branching = blocks.core, _BRANCHINGS[number % 2]
        tried.rank = nth_rank(tried, number // 2, random)
        limit = max(_DECISIONS_PER_ITEM * tried.items, _DECISIONS)
        dive = Dive(
            tried,
            capacity,
            limit=limit // 2 if start else limit,
            effort=budget.left,
            branching=branching,
            jumping=not complete,
            start=start,
        )
        outcome = dive.run()
        budget.left -= dive.spent
        if outcome is Outcome.SOLVED:
            return Found(dive.offsets[blocks.block] + blocks.inside)
        if blocks is plain:
            if outcome is Outcome.REFUTED:
                return Found(None, refuted=True)
            # Where nothing is left to try but what was skipped, skip nothing.
            complete = outcome is Outcome.EXHAUSTED and not start
        pool.add(blocks, dive.deepest())
    return Found(None)


def _plain(core: Core) -> Blocks:
    """Every item as a block of its own."""
    items = np.arange(core.items)
    alone = copy(core)
    alone.ids = items
    return Blocks(alone, items, np.zeros_like(items))


def _joined(core: Core, number: int, random: np.random.Generator) -> Blocks | None:
    """Blocks for a try, or None for a try without."""
    if not can_join(core):
        return None
    if number < len(_FIRST_JOINS):
        in_time, in_space = _FIRST_JOINS[number]
    elif random.random() < _ALONE:
        return None
    else:
        in_time, in_space = random.choice(_SHARES, 2).tolist()
    return join(core, in_time, in_space, random) if in_time or in_space else None


class _Pool:
    """The decisions of the dives that came furthest, with the blocks that they place."""

    __slots__ = ("_paths", "_random")

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._paths: list[tuple[int, Blocks, list[int]]] = []

    def add(self, blocks: Blocks, path: list[int]) -> None:
        """Keep the decisions of a dive if few items were left."""
        if path:
            left = len(blocks.block) - int(np.isin(blocks.block, path).sum())
            self._paths.append((left, blocks, path))
            self._paths.sort(key=lambda entry: entry[0])
            del self._paths[_POOL:]

    def pick(self) -> tuple[Blocks | None, list[int]]:
        """Blocks and the first decisions about them, the better ones more often.

        Sometimes nothing: the search must not settle on what it has.
        """
        random = self._random
        if not self._paths or random.random() < _FRESH:
            return None, []
        index = min(int(random.exponential(2.0)), len(self._paths) - 1)
        _, blocks, path = self._paths[index]
        return blocks, path[: int(len(path) * random.uniform(*_KEPT))]


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
            core = build_core(instance, capacity, budget)
            if core is None:
                return Lowered(best, height, min(floor, height))
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
    result[core.ids] = offsets
    return result
