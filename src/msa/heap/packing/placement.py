"""Placement of items one by one in a given order: first fit and best fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from msa.heap.packing.instance import Instance, Ints
from msa.heap.packing.occupied import Codec, Keys, OccupiedSpans

Rule = Literal["first", "best"]


def place(instance: Instance, order: Ints, rule: Rule) -> Ints:
    """Offsets of all items, placed in this order of item numbers.

    Pinned items come first and lie where they are pinned, in the order or not; an
    item that is neither pinned nor in the order gets offset 0 and is in nobody's way.

    Args:
        instance: in units.
        order: items, each at most once.
        rule: the lowest gap that is large enough (`"first"`) or the smallest
            (`"best"`).
    """
    ceiling = int((instance.piece_size + instance.alignment[instance.piece_item]).sum())
    codec = Codec(ceiling + int(instance.fixed.max(initial=0)))
    occupied = OccupiedSpans(instance, codec)
    choose = _first_fit if rule == "first" else _best_fit
    pinned = instance.fixed >= 0
    offsets = np.maximum(instance.fixed, 0)
    pieces_of = np.searchsorted(
        instance.piece_item, np.arange(instance.items + 1)
    ).tolist()
    piece_size = instance.piece_size.tolist()
    sizes, alignments = instance.size.tolist(), instance.alignment.tolist()
    for item in np.flatnonzero(pinned).tolist():
        offset = int(offsets[item])
        for piece in range(pieces_of[item], pieces_of[item + 1]):
            occupied.add(piece, offset, offset + piece_size[piece])
    for item in order[~pinned[order]].tolist():
        pieces = range(pieces_of[item], pieces_of[item + 1])
        found: list[Keys] = []
        for piece in pieces:
            occupied.query(piece, found)
        offset = 0
        if found:
            keys = np.concatenate(found)
            keys.sort()
            used, ends = codec.decode(keys)
            offset = choose(used, ends, sizes[item], alignments[item])
            offsets[item] = offset
        for piece in pieces:
            occupied.add(piece, offset, offset + piece_size[piece])
    return offsets


Choice = Callable[[Ints, Ints, int, int], int]


def _gaps(used: Ints, ends: Ints, alignment: int) -> tuple[Ints, Ints, int]:
    """Aligned starts below each used range, the room there, and the top."""
    tops = np.maximum.accumulate(ends)
    starts = np.empty_like(tops)
    starts[0] = 0
    starts[1:] = tops[:-1]
    top = int(tops[-1])
    if alignment > 1:
        starts = -(-starts // alignment) * alignment
        top = -(-top // alignment) * alignment
    return starts, used - starts, top


def _first_fit(used: Ints, ends: Ints, size: int, alignment: int) -> int:
    starts, room, top = _gaps(used, ends, alignment)
    fits = room >= size
    index = int(fits.argmax())
    return int(starts[index]) if fits[index] else top


def _best_fit(used: Ints, ends: Ints, size: int, alignment: int) -> int:
    starts, room, top = _gaps(used, ends, alignment)
    fitting = np.flatnonzero(room >= size)
    if not len(fitting):
        return top
    return int(starts[fitting[room[fitting].argmin()]])
