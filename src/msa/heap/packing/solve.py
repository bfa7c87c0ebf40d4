"""Placing the items of an instance: heuristics on all parts, search where needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.heap.packing.decompose import Decomposition, decompose
from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.order_search import search_order
from msa.heap.packing.orders import Heuristic, compute_features, heuristics
from msa.heap.packing.reassembly import is_full, reassemble
from msa.heap.packing.search.driver import (
    Budget,
    build_core,
    instance_offsets,
    search_capacity,
    search_height,
)
from msa.heap.packing.sections import compute_sections

#: Placements that the heuristics may make in all, beyond the first order.
_PLACEMENTS = 60_000
#: A second order follows, whatever it costs, if the first is this much too high.
_POOR = 1.02
#: Reassembly is tried with one part in each of these of the effort, and then the
#: search on its blocks with as much.
_SHARES = (24, 8, 5)
#: Parts of more items than this get better orders before the exact search, for one in
#: so many of the effort; then, and in smaller parts, for half of what the search leaves.
_MEDIUM = 500
_ORDERS_FIRST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Offsets per item, in the units of the instance.

    Attributes:
        proved: no packing is lower.
        refuted: a packing into the capacity is proved impossible.
        method: what found it.
    """

    offsets: Ints
    proved: bool = False
    refuted: bool = False
    method: str = ""


def solve(
    instance: Instance, *, goal: int, capacity: int | None, effort: int, seed: int
) -> Solution:
    """Pack the instance; stop at `goal` (a lower bound).

    Args:
        instance: in units; pinned items do not overlap each other.
        goal: no packing is lower.
        capacity: where to stop, or None to minimise.
        effort: search nodes.
        seed: of the search.
    """
    if not instance.items:
        return Solution(np.zeros(0, dtype=np.int64), proved=True)
    parts = decompose(instance, compute_sections(instance))
    best = _Best(instance, parts)
    enough = goal if capacity is None else max(goal, capacity)
    _run_heuristics(instance, parts, best, enough)
    if effort == 0:
        return Solution(best.offsets(), method=best.method)
    budget, random = Budget(effort), np.random.default_rng(seed)
    if capacity is not None:
        refuted = _fit_parts(instance, parts, best, capacity, budget, random)
        return Solution(best.offsets(), refuted=refuted, method=best.method)
    proved = _lower_parts(instance, parts, best, goal, budget, random)
    return Solution(best.offsets(), proved=proved, method=best.method)


def _fit_parts(
    instance: Instance,
    parts: Decomposition,
    best: _Best,
    capacity: int,
    budget: Budget,
    random: np.random.Generator,
) -> bool:
    """Search the parts that are over the capacity; True if it is refuted."""
    for part in np.flatnonzero(best.height > capacity).tolist():
        items = np.flatnonzero(parts.part == part)
        alone = instance.select(items)
        local = capacity - int(parts.shift[part])
        joined = _join_blocks(alone, budget, random)
        if joined is not None:
            best.offer_part(items, joined, "reassembly")
            if best.height[part] <= capacity:
                continue
        core = build_core(alone, local, budget)
        if core is None:
            given = budget.left // 2
            best.offer_order(items, alone, local, budget, given, random)
            continue
        found = search_capacity(core, local, budget, random)
        if found.refuted:
            return True
        if found.offsets is None:
            return False
        best.offer_part(items, instance_offsets(alone, core, found.offsets), "search")
    return False


def _lower_parts(
    instance: Instance,
    parts: Decomposition,
    best: _Best,
    goal: int,
    budget: Budget,
    random: np.random.Generator,
) -> bool:
    """Search the parts that are above the goal; True if the height is proved best.

    The highest comes first: what it cannot get below, the others need not either.
    """
    proved = goal
    for part in np.argsort(-best.height, kind="stable").tolist():
        height = int(best.height[part])
        if height <= goal:
            break
        items = np.flatnonzero(parts.part == part)
        shift = int(parts.shift[part])
        alone = instance.select(items)
        joined = _join_blocks(alone, budget, random)
        if joined is not None:
            best.offer_part(items, joined, "reassembly")
        if len(items) > _MEDIUM:
            given = budget.left // _ORDERS_FIRST
            best.offer_order(items, alone, goal - shift, budget, given, random)
        lowered = search_height(
            alone,
            floor=goal - shift,
            height=int(best.height[part]) - shift,
            budget=budget,
            random=random,
        )
        if lowered.offsets is not None:
            best.offer_part(items, lowered.offsets, "search")
        height = lowered.height
        if height > max(goal - shift, lowered.floor):
            given = budget.left // 2
            best.offer_order(items, alone, goal - shift, budget, given, random)
            height = int(best.height[part]) - shift
        # The goal may come from another part; only a refutation proves more.
        if lowered.floor > goal - shift:
            proved = max(proved, lowered.floor + shift)
        goal = max(goal, height + shift)
    return proved >= int(best.height.max(initial=0))


def _join_blocks(
    instance: Instance, budget: Budget, random: np.random.Generator
) -> Ints | None:
    """Offsets of a full part from joined blocks; None if it is not full.

    Blocks that cannot be joined further (a pinwheel) are left to the search.
    """
    sections = compute_sections(instance)
    if not is_full(instance, sections):
        return None
    goal = int(sections.load.max())
    total = budget.left
    best: Ints | None = None
    for share in _SHARES:
        blocks = reassemble(instance, sections, effort=total // share, random=random)
        budget.left -= blocks.spent
        rest = blocks.as_instance()
        features = compute_features(rest, compute_sections(rest))
        tried = [each.place(rest) for each in heuristics(features)]
        offsets = min(tried, key=rest.height)
        given = min(total // share, budget.left)
        lowered = search_height(
            rest,
            floor=goal,
            height=rest.height(offsets),
            budget=(left := Budget(given)),
            random=random,
        )
        budget.left -= given - left.left
        if lowered.offsets is not None:
            offsets = lowered.offsets
        offsets = offsets[blocks.block] + blocks.inside
        if best is None or instance.height(offsets) < instance.height(best):
            best = offsets
        if instance.height(best) == goal or budget.left <= 0:
            break
    return best


class _Best:
    """The lowest packing known of each part."""

    __slots__ = ("_instance", "_local", "_parts", "height", "method")

    def __init__(self, instance: Instance, parts: Decomposition) -> None:
        self._instance = instance
        self._parts = parts
        self._local = np.zeros(instance.items, dtype=np.int64)
        #: Per part, the height above address 0.
        self.height = np.full(parts.parts, np.iinfo(np.int64).max)
        self.method = "floor"

    def offer(self, items: Ints, local: Ints, method: str) -> None:
        """Offsets above the floor of whole parts; kept where they are lower.

        Args:
            items: all items of the parts that were packed.
            local: per item of the instance, its offset above the floor of its part.
            method: the name of what packed them.
        """
        parts, instance = self._parts, self._instance
        part = parts.part[items]
        tops = np.full(parts.parts, -1, dtype=np.int64)
        ends = np.where(instance.reserved, 0, local + instance.size)
        np.maximum.at(tops, part, ends[items] + parts.shift[part])
        better = (tops >= 0) & (tops < self.height)
        if better.any():
            kept = items[better[part]]
            self._local[kept] = local[kept]
            self.height[better] = tops[better]
            self.method = method

    def offer_part(self, items: Ints, local: Ints, method: str) -> None:
        """The same for the items of one part, with an offset for each of them."""
        offsets = np.zeros(self._instance.items, dtype=np.int64)
        offsets[items] = local
        self.offer(items, offsets, method)

    def offer_order(
        self,
        items: Ints,
        alone: Instance,
        goal: int,
        budget: Budget,
        given: int,
        random: np.random.Generator,
    ) -> None:
        """Better orders for a part in which the heuristics missed the goal.

        Args:
            items: all items of the part; `alone` is the instance of them.
            goal: where to stop, above the floor of the part.
            budget: effort that is left; at most what is given of it is used.
        """
        share, known = Budget(given), self._local[items]
        found = search_order(alone, known, goal=goal, budget=share, random=random)
        budget.left -= given - share.left
        if found is not None:
            self.offer_part(items, found, "order search")

    def above(self, goal: int) -> Ints:
        """The items of the parts that are higher than `goal`."""
        part = self._parts.part
        high = np.append(self.height > goal, False)
        return np.flatnonzero(high[part])

    def offsets(self) -> Ints:
        """Offsets of all items."""
        parts = self._parts
        shift = np.append(parts.shift, 0)[parts.part]
        return np.where(parts.part >= 0, self._local + shift, parts.offset)


def _run_heuristics(
    instance: Instance, parts: Decomposition, best: _Best, goal: int
) -> None:
    """Orders one after another on the parts that are still above the goal."""
    rest = best.above(goal)
    if not len(rest):
        return
    features = compute_features(instance, compute_sections(instance))
    spent = 0
    chosen: list[Heuristic] = heuristics(features)
    for number, heuristic in enumerate(chosen):
        poor = number == 1 and int(best.height.max()) > _POOR * goal
        cost = len(rest) * heuristic.cost
        if number and spent + cost > _PLACEMENTS and not poor:
            break
        wanted = np.zeros(instance.items, dtype=bool)
        wanted[rest] = True
        order = heuristic.order[wanted[heuristic.order]]
        best.offer(order, heuristic.place(instance, order), heuristic.name)
        spent += cost
        rest = best.above(goal)
        if not len(rest):
            break
