"""The fixed data of a part under search, as flat arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from msa.heap.packing.instance import Ints

Flags = npt.NDArray[np.bool_]


class Core:
    """Items with the sections they live in, laid out by section and by item.

    An *entry* is an item in a section. All sizes are units.

    Attributes:
        ids: per item, its number in the instance.
        section_ids: per section, its number in the root (failures are counted there).
        size, alignment, fixed, rank: per item (`fixed` is -1 if free).
        low, high: per item, the hull `[low, high)` of its sections.
        piece_item, piece_low, piece_high, piece_size: ranges of sections per item.
        entry_item, entry_size, entry_section: entries by section;
            `section_start` points to the first entry of each section.
        item_sections: sections by item; `item_start` points to the first of each.
        twin: per item, the first item with the same shape (itself if there is none).
        has_twins, has_pins, has_alignment: whether these need any work.
        simple: every item has one piece.
    """

    __slots__ = (
        "alignment",
        "entry_item",
        "entry_section",
        "entry_size",
        "fixed",
        "has_alignment",
        "has_pins",
        "has_twins",
        "high",
        "ids",
        "item_sections",
        "item_start",
        "low",
        "piece_high",
        "piece_item",
        "piece_low",
        "piece_size",
        "rank",
        "section_ids",
        "section_start",
        "simple",
        "size",
        "twin",
    )

    def __init__(
        self,
        *,
        ids: Ints,
        section_ids: Ints,
        size: Ints,
        alignment: Ints,
        fixed: Ints,
        rank: Ints,
        piece_item: Ints,
        piece_low: Ints,
        piece_high: Ints,
        piece_size: Ints,
    ) -> None:
        self.ids, self.section_ids = ids, section_ids
        self.size, self.alignment, self.fixed, self.rank = size, alignment, fixed, rank
        self.piece_item, self.piece_size = piece_item, piece_size
        self.piece_low, self.piece_high = piece_low, piece_high
        self.simple = len(piece_item) == len(ids)
        self.has_alignment = bool((alignment > 1).any())
        self.has_pins = bool((fixed >= 0).any())
        self._lay_out()
        self._find_twins()

    @property
    def items(self) -> int:
        """The number of items."""
        return len(self.ids)

    @property
    def sections(self) -> int:
        """The number of sections."""
        return len(self.section_ids)

    def _lay_out(self) -> None:
        span = self.piece_high - self.piece_low
        owner = np.repeat(self.piece_item, span)
        first = np.cumsum(span) - span
        section = np.arange(len(owner)) - np.repeat(first - self.piece_low, span)
        self.item_sections = section
        self.item_start = np.searchsorted(owner, np.arange(self.items))
        order = np.argsort(section, kind="stable")
        self.entry_section = section[order]
        self.entry_item = owner[order]
        self.entry_size = np.repeat(self.piece_size, span)[order]
        self.section_start = np.searchsorted(
            self.entry_section, np.arange(self.sections)
        )
        if self.simple:
            self.low, self.high = self.piece_low, self.piece_high
        else:
            starts = np.searchsorted(self.piece_item, np.arange(self.items))
            self.low = np.minimum.reduceat(self.piece_low, starts)
            self.high = np.maximum.reduceat(self.piece_high, starts)

    def _find_twins(self) -> None:
        self.twin = np.arange(self.items)
        self.has_twins = False
        if not self.simple or self.items < 2:
            return
        shape = (self.low * self.sections + self.high, self.size, self.alignment)
        order = np.lexsort((*shape, self.fixed))
        same = self.fixed[order][1:] == -1
        for column in shape:
            same &= column[order][1:] == column[order][:-1]
        if same.any():
            self.has_twins = True
            leader = np.concatenate([[0], np.cumsum(~same)])
            firsts = np.flatnonzero(np.concatenate([[True], ~same]))
            self.twin[order] = order[firsts[leader]]

    def neighbour_rise(self, item: int) -> Ints | None:
        """Per item, the size of `item` where the two share time (0 where not).

        None if simple: then it is the size of the item, see `shares_time`.
        """
        if self.simple:
            return None
        low = np.searchsorted(self.piece_item, [item, item + 1])
        rise = np.zeros(self.items, dtype=np.int64)
        for piece in range(low[0], low[1]):
            entries = self.entries_of(
                int(self.piece_low[piece]), int(self.piece_high[piece])
            )
            np.maximum.at(rise, self.entry_item[entries], self.piece_size[piece])
        rise[item] = 0
        return rise

    def shares_time(self, item: int) -> Flags:
        """Per item, whether the hulls of the two share a section (itself too)."""
        beside: Flags = self.low < self.high[item]
        beside &= self.high > self.low[item]
        return beside

    def entries_of(self, low: int, high: int) -> slice:
        """The entries of the sections `[low, high)`."""
        first = int(self.section_start[low])
        last = (
            int(self.section_start[high])
            if high < self.sections
            else len(self.entry_item)
        )
        return slice(first, last)

    def part(self, items: Ints) -> Core:
        """The core of some items alone, with the sections that still matter."""
        number = np.full(self.items, -1, dtype=np.int64)
        number[items] = np.arange(len(items))
        renumbered = number[self.piece_item]
        kept = np.flatnonzero(renumbered >= 0)
        low, high, sections = maximal_sections(
            self.piece_low[kept], self.piece_high[kept], self.sections
        )
        return Core(
            ids=self.ids[items],
            section_ids=self.section_ids[sections],
            size=self.size[items],
            alignment=self.alignment[items],
            fixed=self.fixed[items],
            rank=self.rank[items],
            piece_item=renumbered[kept],
            piece_low=low,
            piece_high=high,
            piece_size=self.piece_size[kept],
        )


def maximal_sections(low: Ints, high: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Renumber sections so that only maximal live sets remain.

    Args:
        low, high: ranges `[low, high)` of sections out of `count`.

    Returns:
        The ranges in new numbers, and the old number of each new section.

    >>> [a.tolist() for a in maximal_sections(np.array([1, 2]), np.array([3, 4]), 5)]
    [[0, 0], [1, 1], [2]]
    """
    has_start = np.zeros(count + 1, dtype=bool)
    has_end = np.zeros(count + 1, dtype=bool)
    has_start[low] = True
    has_end[high] = True
    # An end closes a section if something started since the previous end.
    starts_before = np.cumsum(has_start) - has_start
    ends = np.flatnonzero(has_end)
    seen = starts_before[ends]
    emits = ends[np.diff(seen, prepend=0) > 0]
    emitted = np.zeros(count + 1, dtype=np.int64)
    emitted[emits] = 1
    emitted = np.cumsum(emitted)
    return emitted[low], emitted[high], emits - 1
