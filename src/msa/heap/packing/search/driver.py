"""Restarts and capacities: from single dives to a packing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.search.core import Core
from msa.heap.packing.search.dive import Dive, Outcome, node_cost
from msa.heap.packing.search.ranks import FIXED_TRIES, tries
from msa.heap.packing.sections import compute_sections

#: A dive may make this many decisions per item, and at least the second number.
_DECISIONS_PER_ITEM = 3
_DECISIONS = 400
#: Cores of at most this many items are first searched without skipping branches.
_SMALL = 24
#: Paths kept to start from, how often a dive starts afresh nevertheless, and the
#: share of a path that is kept. Measured on perturbed instances: starting from paths
#: solves about a tenth more of them in equal time.
_POOL = 12
_FRESH = 0.1
_KEPT = (0.2, 0.95)


@dataclass(slots=True)
class Budget:
    """Effort left; see `node_cost` for what a node takes."""

    left: int

    def affords(self, items: int, entries: int) -> bool:
        """Whether it is worth to start: it pays for two straight dives."""
        return self.left >= 2 * items * node_cost(entries)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Offsets per item, or None; `refuted` if there are none."""

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
    start with the first decisions of an earlier dive that came far.

    Args:
        core: built for this capacity.
        capacity: units.
        budget: effort; reduced by what was used.
        random: the source of ranks after the fixed ones.
    """
    if not core.items:
        return Found(np.zeros(0, dtype=np.int64))
    limit = max(_DECISIONS_PER_ITEM * core.items, _DECISIONS)
    pool = _Pool(random)
    complete = core.items <= _SMALL
    for number, (rank, branching) in enumerate(tries(core, random)):
        if budget.left <= 0:
            break
        core.rank = rank
        start = pool.start() if number >= FIXED_TRIES else []
        dive = Dive(
            core,
            capacity,
            limit=limit // 2 if start else limit,
            effort=budget.left,
            branching=branching,
            jumping=not complete,
            start=[] if complete else start,
        )
        outcome = dive.run()
        budget.left -= dive.spent
        if outcome is Outcome.SOLVED:
            return Found(dive.offsets)
        if outcome is Outcome.REFUTED:
            return Found(None, refuted=True)
        # Where nothing is left to try but what was skipped, skip nothing.
        complete = outcome is Outcome.EXHAUSTED and not start
        pool.add(*dive.deepest())
    return Found(None)


class _Pool:
    """The decisions of the dives that came furthest."""

    __slots__ = ("_paths", "_random")

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._paths: list[tuple[int, list[int]]] = []

    def add(self, left: int, path: list[int]) -> None:
        """Keep the decisions of a dive if few items were left."""
        if path:
            self._paths.append((left, path))
            self._paths.sort(key=lambda entry: entry[0])
            del self._paths[_POOL:]

    def start(self) -> list[int]:
        """The first part of one of the paths, the better ones more often.

        Sometimes nothing: the search must not settle on what it has.
        """
        random = self._random
        if not self._paths or random.random() < _FRESH:
            return []
        index = min(int(random.exponential(2.0)), len(self._paths) - 1)
        path = self._paths[index][1]
        return path[: int(len(path) * random.uniform(*_KEPT))]


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
    result[core.ids] = offsets[core.ids]
    return result
