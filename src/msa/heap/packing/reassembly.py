"""Reassembly: a perfect packing put together from pieces with equal edges.

Where every section is full, the packing is a rectangle without a hole, and two
pieces that have a whole edge in common form a piece again: the same lifetime (one
lies on the other) or the same size and touching lifetimes (one follows the other at
the same offset). Joining is a restriction, never a contradiction: what is packed as
blocks is packed. If all becomes one block, the packing is perfect.

Joins are made greedily, the least ambiguous first. Where blocks are left, some that
touch are taken apart and joined anew; annealing decides what is kept. Rectangles that
fall to pieces by cuts from edge to edge (guillotine cuts), of some hundred pieces,
mostly come together within some hundred rounds.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass
from random import Random

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.sections import Sections

#: Rounds of a run per item: the first run, and the longest.
_ROUNDS, _MAX_ROUNDS = 4, 32
#: How many blocks more are accepted now and then, at the start of a run.
_HEAT = 0.6
#: Blocks taken apart in a round, and how deep.
_APART = (1, 2, 3, 4, 6)
_DEPTHS = (1, 2, 3, 4, 8, 99)
#: Joins that cost one unit of effort.
_JOINS_PER_UNIT = 12


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Items joined into rectangular blocks.

    Attributes:
        block: per item, its block.
        inside: per item, its offset above the floor of its block.
        low, high, size: per block, the sections `[low, high)` it lives in, its size.
        spent: effort used.
    """

    block: Ints
    inside: Ints
    low: Ints
    high: Ints
    size: Ints
    spent: int

    @property
    def count(self) -> int:
        """The number of blocks; 1 is a perfect packing."""
        return len(self.size)

    def as_instance(self) -> Instance:
        """The blocks as items."""
        count = self.count
        ones = np.ones(count, dtype=np.int64)
        return Instance(
            item_of=np.arange(count),
            size=self.size,
            alignment=ones,
            fixed=-ones,
            reserved=np.zeros(count, dtype=bool),
            piece_item=np.arange(count),
            piece_start=self.low,
            piece_end=self.high,
            piece_size=self.size,
        )


def is_full(instance: Instance, sections: Sections) -> bool:
    """Whether items can be joined freely and all sections are equally full."""
    if not instance.simple or not sections.count:
        return False
    if instance.reserved.any() or (instance.fixed >= 0).any():
        return False
    if (instance.alignment > 1).any():
        return False
    return int(sections.load.min()) == int(sections.load.max())


def reassemble(
    instance: Instance, sections: Sections, *, effort: int, random: np.random.Generator
) -> Blocks:
    """Join the items of a full instance into few blocks.

    Args:
        instance, sections: see `is_full`.
        effort: a limit, see `Blocks.spent`; a node of the search takes as long.
        random: the source of all choices.
    """
    shapes = list(
        zip(
            sections.low.tolist(),
            sections.high.tolist(),
            instance.size.tolist(),
            strict=True,
        )
    )
    rounds = _ROUNDS
    spent = 0
    best: _Table | None = None
    while best is None or (len(best.top) > 1 and spent < effort):
        table = _Table(shapes, Random(int(random.integers(2**62))))
        table.anneal(rounds * len(shapes), (effort - spent) * _JOINS_PER_UNIT)
        spent += 1 + table.joins // _JOINS_PER_UNIT
        if best is None or len(table.top) < len(best.top):
            best = table
        rounds = min(2 * rounds, _MAX_ROUNDS)
    return best.blocks(len(shapes), spent)


#: Low and high section, size; then the two blocks that were joined: the lower and
#: the upper, or the earlier and the later (-1 for an item).
_Block = tuple[int, int, int, int, int]
_Shape = tuple[int, int, int]


class _Table:
    """Blocks on the table, findable by their edges.

    Attributes:
        top: numbers of the blocks that are part of no other one.
        joins: how many were made, taken back or not.
    """

    __slots__ = (
        "_by_end",
        "_by_life",
        "_by_start",
        "_known",
        "_random",
        "joins",
        "top",
    )

    def __init__(self, shapes: list[_Shape], random: Random) -> None:
        self._random = random
        self._known: list[_Block] = []
        self._by_life: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._by_start: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._by_end: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self.top: set[int] = set()
        self.joins = 0
        for low, high, size in shapes:
            self._known.append((low, high, size, -1, -1))
            self._lay(len(self._known) - 1)

    def anneal(self, rounds: int, joins: int) -> None:
        """Join all; then take apart and join anew, until one block is left."""
        self._join_all(sorted(self.top))
        for number in range(rounds):
            before = self.top.copy()
            if len(before) == 1 or self.joins > joins:
                break
            self._join_all(self._take_apart())
            worse = len(self.top) - len(before)
            heat = _HEAT * (1 - number / rounds)
            if worse > 0 and self._random.random() >= math.exp(-worse / heat):
                for block in self.top - before:
                    self._lift(block)
                for block in before - self.top:
                    self._lay(block)

    def _lay(self, number: int) -> None:
        low, high, size, _, _ = self._known[number]
        self.top.add(number)
        self._by_life[low, high].append(number)
        self._by_start[low, size].append(number)
        self._by_end[high, size].append(number)

    def _lift(self, number: int) -> None:
        low, high, size, _, _ = self._known[number]
        self.top.discard(number)
        self._by_life[low, high].remove(number)
        self._by_start[low, size].remove(number)
        self._by_end[high, size].remove(number)

    def _take_apart(self) -> list[int]:
        """Take some blocks that touch in time apart; all blocks near them."""
        random, known = self._random, self._known
        first = random.choice(sorted(self.top))
        low, high = known[first][:2]
        near = [n for n in sorted(self.top) if known[n][0] <= high]
        near = [n for n in near if known[n][1] >= low and n != first]
        random.shuffle(near)
        chosen = [first, *near[: random.choice(_APART) - 1]]
        for number in chosen:
            todo = [(number, random.choice(_DEPTHS))]
            self._lift(number)
            while todo:
                block, depth = todo.pop()
                one, other = known[block][3:]
                if depth and one >= 0:
                    todo += [(one, depth - 1), (other, depth - 1)]
                else:
                    self._lay(block)
                    near.append(block)
        return [n for n in near if n in self.top]

    def _ambiguity(self, number: int) -> float:
        """How many blocks it might be joined with, and a random fraction."""
        low, high, size, _, _ = self._known[number]
        count = len(self._by_life.get((low, high), ()))
        count += len(self._by_start.get((high, size), ()))
        count += len(self._by_end.get((low, size), ()))
        return count + self._random.random()

    def _join_all(self, numbers: list[int]) -> None:
        """Join these, and what comes of it, until nothing can be joined."""
        queue = [(self._ambiguity(number), number) for number in numbers]
        heapq.heapify(queue)
        while queue:
            number = heapq.heappop(queue)[1]
            if number not in self.top:
                continue
            low, high, size, _, _ = self._known[number]
            beside = [n for n in self._by_life.get((low, high), ()) if n != number]
            later = self._by_start.get((high, size), [])
            earlier = self._by_end.get((low, size), [])
            count = len(beside) + len(later) + len(earlier)
            if not count:
                continue
            pick = self._random.randrange(count)
            pair = (number, [*beside, *later, *earlier][pick])
            if pick >= len(beside) + len(later):
                pair = pair[::-1]
            joined = self._join(*pair)
            heapq.heappush(queue, (self._ambiguity(joined), joined))

    def _join(self, one: int, other: int) -> int:
        """Join the lower and the upper, or the earlier and the later."""
        low, high, size, _, _ = self._known[one]
        if self._known[other][0] == low:
            size += self._known[other][2]
        else:
            high = self._known[other][1]
        self._lift(one)
        self._lift(other)
        self._known.append((low, high, size, one, other))
        self._lay(len(self._known) - 1)
        self.joins += 1
        return len(self._known) - 1

    def blocks(self, items: int, spent: int) -> Blocks:
        """The blocks on the table; items are the first numbers."""
        block = np.zeros(items, dtype=np.int64)
        inside = np.zeros(items, dtype=np.int64)
        top = sorted(self.top)
        for index, number in enumerate(top):
            todo = [(number, 0)]
            while todo:
                part, offset = todo.pop()
                start, _, _, one, other = self._known[part]
                if one < 0:
                    block[part], inside[part] = index, offset
                    continue
                todo.append((one, offset))
                upon = self._known[other][0] == start
                todo.append((other, offset + (self._known[one][2] if upon else 0)))
        shape = np.array([self._known[n][:3] for n in top], dtype=np.int64)
        low, high, size = shape.T
        return Blocks(block, inside, low, high, size, spent)
