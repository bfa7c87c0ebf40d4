"""Placing the items of an instance: heuristics on all parts, search where needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.heap.packing.decompose import Decomposition, decompose
from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.orders import Heuristic, compute_features, heuristics
from msa.heap.packing.placement import Placer
from msa.heap.packing.sections import compute_sections

#: Placements that the heuristics may make in all, beyond the first two orders.
_PLACEMENTS = 60_000


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
        capacity: where to stop searching, or None to minimise.
        effort: search nodes.
        seed: of the search.
    """
    if not instance.items:
        return Solution(np.zeros(0, dtype=np.int64), proved=True)
    parts = decompose(instance, compute_sections(instance))
    best = _Best(instance, parts)
    _run_heuristics(instance, parts, best, goal)
    return Solution(best.offsets(), method=best.method)


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
    placer = Placer(instance)
    spent = 0
    chosen: list[Heuristic] = heuristics(features)
    for number, heuristic in enumerate(chosen):
        if number > 1 and spent + len(rest) > _PLACEMENTS:
            break
        wanted = np.zeros(instance.items, dtype=bool)
        wanted[rest] = True
        order = heuristic.order[wanted[heuristic.order]]
        best.offer(order, placer.place(order, heuristic.rule), heuristic.name)
        spent += len(order)
        rest = best.above(goal)
        if not len(rest):
            break
