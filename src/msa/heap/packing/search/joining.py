"""Joining items into blocks: fewer decisions, at the price of some packings.

Two items with the same sections may be stacked on each other and moved as one, and
two of the same size may be laid end to end, if one begins where the other ends. Where
programs update buffers in place, or cut them, most packings have such pairs side by
side, and a search over blocks finds one of these packings with far fewer decisions.
Whatever packs the blocks packs the items; that blocks cannot be packed proves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from msa.heap.packing.instance import Ints
from msa.heap.packing.search.core import Core, Flags, maximal_sections

#: Rounds of laying end to end and stacking; what was stacked may fit end to end.
_ROUNDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Items of a core as blocks.

    Attributes:
        core: of the blocks; their ids are their numbers.
        block: per item of the joined core, its block.
        inside: per item, its offset above the floor of its block.
    """

    core: Core
    block: Ints
    inside: Ints


def can_join(core: Core) -> bool:
    """Whether any item may be joined: none with pieces, pins or alignments is."""
    return core.simple and bool(_is_free(core).any())


def _is_free(core: Core) -> Flags:
    free: Flags = (core.fixed < 0) & (core.alignment == 1)
    return free


def join(
    core: Core, in_time: float, in_space: float, random: np.random.Generator
) -> Blocks:
    """Join items at random.

    Args:
        core: with simple items; see `can_join`.
        in_time: the share of the possible pairs that are laid end to end.
        in_space: the share of the possible pairs that are stacked.
        random: what decides.

    O(n log n) for n items.
    """
    table = _Table(core, random)
    for _ in range(_ROUNDS):
        joined = table.lay_end_to_end(in_time) + table.stack(in_space)
        if not joined:
            break
    return table.blocks(core)


class _Table:
    """The blocks while they grow; a joined block stays in the one that it joined."""

    def __init__(self, core: Core, random: np.random.Generator) -> None:
        self._random = random
        self._low, self._high = core.low.tolist(), core.high.tolist()
        self._size = core.size.tolist()
        self._members = [[(item, 0)] for item in range(core.items)]
        order = np.lexsort((core.high, core.low))
        #: Blocks that may be joined, by their first section.
        self._free = order[_is_free(core)[order]].tolist()
        self._fixed = np.flatnonzero(~_is_free(core)).tolist()

    def lay_end_to_end(self, share: float) -> int:
        """Let blocks be followed by blocks of the same size; how many were."""
        low, high, size = self._low, self._high, self._size
        starts: dict[tuple[int, int], list[int]] = defaultdict(list)
        for block in self._free:
            starts[low[block], size[block]].append(block)
        gone: set[int] = set()
        for block in self._free:
            if block in gone:
                continue
            while found := starts.get((high[block], size[block])):
                if self._random.random() >= share:
                    break
                follower = found.pop(int(self._random.integers(len(found))))
                high[block] = high[follower]
                self._members[block] += self._members[follower]
                gone.add(follower)
        self._free = [block for block in self._free if block not in gone]
        return len(gone)

    def stack(self, share: float) -> int:
        """Stack blocks of the same sections; how many were put on another."""
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for block in self._free:
            groups[self._low[block], self._high[block]].append(block)
        gone: set[int] = set()
        for group in groups.values():
            if len(group) == 1:
                continue
            order = self._random.permutation(len(group)).tolist()
            below = group[order[0]]
            for index in order[1:]:
                block = group[index]
                if self._random.random() >= share:
                    below = block
                    continue
                at = self._size[below]
                self._members[below] += [(i, at + o) for i, o in self._members[block]]
                self._size[below] += self._size[block]
                gone.add(block)
        self._free = [block for block in self._free if block not in gone]
        return len(gone)

    def blocks(self, core: Core) -> Blocks:
        """The core of the blocks."""
        kept = np.array(sorted(self._free + self._fixed), dtype=np.int64)
        block = np.zeros(core.items, dtype=np.int64)
        inside = np.zeros(core.items, dtype=np.int64)
        for number, first in enumerate(kept.tolist()):
            for item, offset in self._members[first]:
                block[item], inside[item] = number, offset
        low, high, sections = maximal_sections(
            np.array(self._low)[kept], np.array(self._high)[kept], core.sections
        )
        size = np.array(self._size)[kept]
        numbers = np.arange(len(kept))
        joined = Core(
            ids=numbers,
            section_ids=core.section_ids[sections],
            size=size,
            alignment=core.alignment[kept],
            fixed=core.fixed[kept],
            rank=numbers,
            piece_item=numbers,
            piece_low=low,
            piece_high=high,
            piece_size=size,
        )
        return Blocks(joined, block, inside)
