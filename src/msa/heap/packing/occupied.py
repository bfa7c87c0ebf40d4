"""Which addresses are taken in a span of time, for very many placed pieces.

Time is cut into leaves of equal numbers of endpoints, and the leaves are the
bottom of a tree. Two kinds of rows remember placed address ranges:

* `cover`, per leaf: ranges of pieces that live through the whole leaf;
* `touch`, per tree node: ranges of pieces that live at any time of the node.

A piece that lives in part of a leaf is also listed in the leaf with its times. A
query reads `touch` of the few nodes that tile its whole leaves, and `cover` and the
listed pieces of the (at most two) leaves that it cuts. Rows merge what is
contiguous, so they stay short where memory is densely packed, however many pieces
live there. The answer is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from msa.heap.packing.instance import Instance, Ints

Keys = npt.NDArray[Any]
Key = int | complex | tuple[int, int]
Flags = npt.NDArray[np.bool_]

#: Recent ranges of a row before they are merged.
_ROW = 256
#: Endpoints of pieces in a leaf; 256 to 512 measured alike, less and more slower.
_LEAF_ENDPOINTS = 384
#: Children of a node are `2**_ARITY_BITS`: an added piece touches a row per level.
_ARITY_BITS = 3
#: Below this, a range is packed into one integer, which sorts fast.
_PACKED = 2**31
#: Below this, a pair of floating-point numbers holds it exactly.
_EXACT = 2**53
#: Above, a range is a record, which sorts slowly.
_RECORD = np.dtype([("offset", np.int64), ("end", np.int64)])


class Codec:
    """Address ranges as sortable scalars, by what addresses below `ceiling` need.

    Packed integers, complex numbers (which sort by real, then imaginary part), or
    records.

    >>> for ceiling in (100, 2**40, 2**59):
    ...     codec = Codec(ceiling)
    ...     keys = np.array([codec.encode(3, ceiling - 1)], dtype=codec.dtype)
    ...     offsets, ends = codec.decode(keys)
    ...     print(offsets.tolist(), ceiling - ends.tolist()[0])
    [3] 1
    [3] 1
    [3] 1
    """

    __slots__ = ("_records", "dtype", "packed")

    def __init__(self, ceiling: int) -> None:
        self.packed = ceiling < _PACKED
        self._records = ceiling >= _EXACT
        self.dtype: npt.DTypeLike = np.int64 if self.packed else np.complex128
        if self._records:
            self.dtype = _RECORD

    def encode(self, offset: int, end: int) -> Key:
        """One range as a scalar; scalars sort by offset."""
        if self._records:
            return offset, end
        return offset << 32 | end if self.packed else complex(offset, end)

    def decode(self, keys: Keys) -> tuple[Ints, Ints]:
        """Offsets and ends of many."""
        if self.packed:
            numbers = keys.view(np.int64)
            return numbers >> 32, numbers & 0xFFFFFFFF
        if self._records:
            return keys["offset"].copy(), keys["end"].copy()
        return keys.real.astype(np.int64), keys.imag.astype(np.int64)

    def encode_many(self, offsets: Ints, ends: Ints) -> Keys:
        """Many ranges."""
        if self.packed:
            return offsets << 32 | ends
        if self._records:
            keys = np.empty(len(offsets), dtype=_RECORD)
            keys["offset"], keys["end"] = offsets, ends
            return keys
        return offsets + 1j * ends


class _Rows:
    """Many sets of ranges; each a merged sorted base and a few recent ones."""

    __slots__ = ("_base", "_codec", "_count", "_recent")

    def __init__(self, rows: int, codec: Codec) -> None:
        self._codec = codec
        self._base: list[Keys | None] = [None] * rows
        self._recent: Keys = np.zeros((rows, _ROW), dtype=codec.dtype)
        self._count = np.zeros(rows, dtype=np.int64)

    def add(self, rows: Ints, key: Key) -> None:
        count = self._count[rows]
        self._recent[rows, count] = key
        count += 1
        self._count[rows] = count
        if count.max(initial=0) == _ROW:
            for row in rows[count == _ROW].tolist():
                self._merge(row)

    def _merge(self, row: int) -> None:
        """Move the recent ranges into the base; join what touches."""
        keys = self._recent[row]
        base = self._base[row]
        keys = keys.copy() if base is None else np.concatenate([base, keys])
        keys.sort()
        offsets, ends = self._codec.decode(keys)
        tops = np.maximum.accumulate(ends)
        opens = np.concatenate([[True], offsets[1:] > tops[:-1]])
        closes = np.append(opens[1:], True)
        self._base[row] = self._codec.encode_many(offsets[opens], tops[closes])
        self._count[row] = 0

    def collect(self, row: int, out: list[Keys]) -> None:
        base, count = self._base[row], self._count[row]
        if base is not None:
            out.append(base)
        if count:
            out.append(self._recent[row, :count])


class OccupiedSpans:
    """Placed pieces of an instance; `add` a piece, `query` what overlaps one.

    Pieces and their times are known from the start; only offsets come later.
    Building costs O(p log p); a query about O(log p + r log r) with r the ranges
    that remain after merging; adding O(leaves that the piece lives in), vectorised.
    """

    __slots__ = (
        "_codec",
        "_cover",
        "_cover_high",
        "_cover_low",
        "_cuts",
        "_end",
        "_filled",
        "_first_leaf",
        "_last_leaf",
        "_level_start",
        "_listed_at",
        "_listed_end",
        "_listed_key",
        "_listed_start",
        "_paths",
        "_start",
        "_touch",
    )

    def __init__(self, instance: Instance, codec: Codec) -> None:
        start, end = instance.piece_start, instance.piece_end
        self._codec = codec
        endpoints = np.sort(np.concatenate([start, end]))
        bounds = np.unique(endpoints[::_LEAF_ENDPOINTS])
        leaves = len(bounds)
        closing = np.append(bounds[1:], endpoints[-1:])
        first = np.searchsorted(bounds, start, side="right") - 1
        last = np.searchsorted(bounds, end, side="left") - 1
        cuts_first = start > bounds[first]
        cuts_last = end < closing[last]
        self._start, self._end = start.tolist(), end.tolist()
        self._first_leaf, self._last_leaf = first.tolist(), last.tolist()
        self._cover_low = (first + cuts_first).tolist()
        self._cover_high = (last + 1 - cuts_last).tolist()
        self._list_leaves(first, last, cuts_first, cuts_last, leaves)
        self._cover = _Rows(leaves, codec)
        self._level_start = [0]
        width = leaves
        while width:
            self._level_start.append(self._level_start[-1] + width)
            width = 0 if width == 1 else (width - 1 >> _ARITY_BITS) + 1
        self._touch = _Rows(self._level_start.pop(), codec)
        self._paths: dict[int, Ints] = {}

    def _list_leaves(
        self, first: Ints, last: Ints, cuts_first: Flags, cuts_last: Flags, leaves: int
    ) -> None:
        """Room in every leaf for the pieces that live in only part of it."""
        cuts_last = cuts_last & ~(cuts_first & (first == last))
        self._cuts = list(zip(cuts_first.tolist(), cuts_last.tolist(), strict=True))
        room = np.bincount(first[cuts_first], minlength=leaves)
        room += np.bincount(last[cuts_last], minlength=leaves)
        ends = np.cumsum(room)
        self._listed_at = (ends - room).tolist()
        self._filled = (ends - room).tolist()
        total = int(ends[-1]) if leaves else 0
        self._listed_start = np.zeros(total, dtype=np.int64)
        self._listed_end = np.zeros(total, dtype=np.int64)
        self._listed_key: Keys = np.zeros(total, dtype=self._codec.dtype)

    def add(self, piece: int, offset: int, end: int) -> None:
        """The piece lies at the addresses `[offset, end)`."""
        key = self._codec.encode(offset, end)
        first, last = self._first_leaf[piece], self._last_leaf[piece]
        cuts_first, cuts_last = self._cuts[piece]
        if cuts_first:
            self._list(first, piece, key)
        if cuts_last:
            self._list(last, piece, key)
        low, high = self._cover_low[piece], self._cover_high[piece]
        if low < high:
            self._cover.add(np.arange(low, high), key)
        self._touch.add(self._nodes(first, last), key)

    def _list(self, leaf: int, piece: int, key: Key) -> None:
        slot = self._filled[leaf]
        self._filled[leaf] = slot + 1
        self._listed_start[slot] = self._start[piece]
        self._listed_end[slot] = self._end[piece]
        self._listed_key[slot] = key

    def _nodes(self, first: int, last: int) -> Ints:
        """All nodes of the tree above the leaves `first..last`, inclusive."""
        if first == last and first in self._paths:
            return self._paths[first]
        levels = [
            np.arange(
                start + (first >> _ARITY_BITS * k),
                start + (last >> _ARITY_BITS * k) + 1,
            )
            for k, start in enumerate(self._level_start)
        ]
        nodes = np.concatenate(levels)
        if first == last:
            self._paths[first] = nodes
        return nodes

    def query(self, piece: int, out: list[Keys]) -> None:
        """Append the ranges of all added pieces that share time with this one."""
        first, last = self._first_leaf[piece], self._last_leaf[piece]
        cuts_first, cuts_last = self._cuts[piece]
        if cuts_first:
            self._query_leaf(piece, first, out)
        if cuts_last:
            self._query_leaf(piece, last, out)
        self._query_tree(self._cover_low[piece], self._cover_high[piece], out)

    def _query_tree(self, low: int, high: int, out: list[Keys]) -> None:
        """The `touch` rows of the fewest nodes that tile the leaves `[low, high)`."""
        bits = _ARITY_BITS
        collect = self._touch.collect
        for base in self._level_start:
            # The children of whole parents are left to the next level.
            inner_low = -(-low >> bits) << bits
            inner_high = high >> bits << bits
            if inner_low >= inner_high or base == self._level_start[-1]:
                inner_low = inner_high = high
            for node in range(low, inner_low):
                collect(base + node, out)
            for node in range(inner_high, high):
                collect(base + node, out)
            if inner_low == inner_high:
                return
            low, high = inner_low >> bits, inner_high >> bits

    def _query_leaf(self, piece: int, leaf: int, out: list[Keys]) -> None:
        self._cover.collect(leaf, out)
        low, high = self._listed_at[leaf], self._filled[leaf]
        if low == high:
            return
        hits = self._listed_end[low:high] > self._start[piece]
        hits &= self._listed_start[low:high] < self._end[piece]
        keys = self._listed_key[low:high][hits]
        if len(keys):
            out.append(keys)
