"""The packing problem as arrays: groups merged into items, lifetimes into pieces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from msa.errors import PackingError
from msa.heap.packing.buffer import Buffer
from msa.heap.packing.reservation import Reservation, disjoint_rectangles
from msa.heap.whole_number import SIZE_LIMIT

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """Items to place; an item is a buffer or a group of colocated buffers.

    Attributes:
        item_of: per buffer, its item; -1 for an empty buffer, which needs no place.
        size: per item, the largest size of its pieces (bytes).
        alignment: per item (bytes).
        fixed: per item, its pinned offset, or -1.
        reserved: per item, whether it is a reservation (not counted in the height).
        piece_item, piece_start, piece_end, piece_size: the rectangles; an item has
            one or more, disjoint in time, ordered by item and start. Times are
            half-open, sizes in bytes.
    """

    item_of: Ints
    size: Ints
    alignment: Ints
    fixed: Ints
    reserved: npt.NDArray[np.bool_]
    piece_item: Ints
    piece_start: Ints
    piece_end: Ints
    piece_size: Ints

    @property
    def items(self) -> int:
        """The number of items."""
        return len(self.size)

    @property
    def simple(self) -> bool:
        """Whether every item has exactly one piece."""
        return len(self.piece_item) == len(self.size)

    def in_units(self) -> tuple[int, Instance]:
        """The unit (bytes) of all sizes and pins, and the instance in such units.

        Every end of a canonical packing is a multiple of the unit. Alignments that
        the unit satisfies by itself become 1.
        """
        fixed = self.fixed[self.fixed > 0]
        sizes = np.concatenate([self.piece_size, fixed])
        unit = int(np.gcd.reduce(sizes)) if len(sizes) else 1
        coarse = unit % self.alignment != 0
        unit = math.gcd(unit, int(np.gcd.reduce(self.alignment[coarse], initial=0)))
        scaled = replace(
            self,
            size=self.size // unit,
            alignment=np.where(coarse, self.alignment // unit, 1),
            fixed=np.where(self.fixed > 0, self.fixed // unit, self.fixed),
            piece_size=self.piece_size // unit,
        )
        return unit, scaled

    def select(self, items: Ints) -> Instance:
        """The instance of these items alone, renumbered in this order."""
        number = np.full(self.items, -1, dtype=np.int64)
        number[items] = np.arange(len(items))
        renumbered = number[self.piece_item]
        kept = np.flatnonzero(renumbered >= 0)
        kept = kept[np.argsort(renumbered[kept], kind="stable")]
        return Instance(
            item_of=np.full(0, -1, dtype=np.int64),
            size=self.size[items],
            alignment=self.alignment[items],
            fixed=self.fixed[items],
            reserved=self.reserved[items],
            piece_item=renumbered[kept],
            piece_start=self.piece_start[kept],
            piece_end=self.piece_end[kept],
            piece_size=self.piece_size[kept],
        )

    def height(self, offsets: Ints) -> int:
        """The highest end of an item that is no reservation, for these offsets."""
        counted = ~self.reserved
        ends = offsets[counted] + self.size[counted]
        return int(ends.max()) if len(ends) else 0


def merged_pieces(
    members: Sequence[tuple[int, int, int]],
) -> list[tuple[int, int, int]]:
    """Rectangles `(start, end, size)` of aliases merged: at each time the largest.

    >>> merged_pieces([(0, 4, 8), (2, 6, 4), (8, 9, 4)])
    [(0, 4, 8), (4, 6, 4), (8, 9, 4)]
    """
    times = sorted({t for start, end, _ in members for t in (start, end)})
    merged: list[tuple[int, int, int]] = []
    for start, end in pairwise(times):
        size = max((z for s, e, z in members if s <= start and end <= e), default=0)
        if not size:
            continue
        if merged and merged[-1][1] == start and merged[-1][2] == size:
            merged[-1] = (merged[-1][0], end, size)
        else:
            merged.append((start, end, size))
    return merged


def build_instance(
    buffers: Sequence[Buffer],
    *,
    alignment: int = 1,
    reserved: Sequence[Reservation] = (),
) -> Instance:
    """The arrays for these buffers. O(n log n), apart from groups (quadratic each).

    Members of a group must not be pinned apart.

    Raises:
        PackingError: a packing may need addresses of more than 60 bits.
    """
    item_of = np.full(len(buffers), -1, dtype=np.int64)
    groups: dict[object, int] = {}
    members: list[list[int]] = []
    alive = {b.group for b in buffers if b.group is not None and b.is_live}
    for index, buffer in enumerate(buffers):
        if buffer.group is None:
            if buffer.is_live:
                item_of[index] = len(members)
                members.append([index])
        elif buffer.group not in alive:
            continue
        elif buffer.group in groups:
            item_of[index] = groups[buffer.group]
            members[groups[buffer.group]].append(index)
        else:
            item_of[index] = groups[buffer.group] = len(members)
            members.append([index])
    rows: list[tuple[int, int, int]] = []
    pieces: list[tuple[int, int, int, int]] = []
    for item, indices in enumerate(members):
        if len(indices) == 1:
            buffer = buffers[indices[0]]
            if not buffer.gaps:
                pieces.append((item, buffer.start, buffer.end, buffer.size))
                fixed = -1 if buffer.offset is None else buffer.offset
                rows.append((buffer.size, buffer.alignment or alignment, fixed))
                continue
        rows.append(_add_group([buffers[i] for i in indices], alignment, item, pieces))
    first = min((p[1] for p in pieces), default=0)
    last = max((p[2] for p in pieces), default=0)
    for start, end, low, high in disjoint_rectangles(reserved, first, last):
        pieces.append((len(rows), start, end, high - low))
        rows.append((high - low, 1, low))
    _check_total(rows)
    size, align, fixed_at = (np.array(c, dtype=np.int64) for c in _columns(rows, 3))
    columns = [np.array(c, dtype=np.int64) for c in _columns(pieces, 4)]
    return Instance(
        item_of, size, align, fixed_at, np.arange(len(rows)) >= len(members), *columns
    )


def _check_total(rows: list[tuple[int, int, int]]) -> None:
    """Whatever is placed on whatever stays below the limit of addresses."""
    top = max((fixed + size for size, _, fixed in rows), default=0)
    if top + sum(size + multiple - 1 for size, multiple, _ in rows) >= SIZE_LIMIT:
        raise PackingError(
            "sizes, alignments and pins add up to more than 2**60 bytes",
            hint="are the sizes in bytes?",
        )


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[tuple[int, ...]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _add_group(
    members: list[Buffer],
    alignment: int,
    item: int,
    pieces: list[tuple[int, int, int, int]],
) -> tuple[int, int, int]:
    """Append the pieces of a group; its size, alignment and pinned offset."""
    merged = merged_pieces(
        [(s, e, m.size) for m in members for s, e in m.pieces() if m.size]
    )
    pieces += [(item, start, end, size) for start, end, size in merged]
    pins = [m.offset for m in members if m.offset is not None]
    multiple = math.lcm(*(m.alignment or alignment for m in members))
    size = max(z for _, _, z in merged)
    return size, multiple, pins[0] if pins else -1
