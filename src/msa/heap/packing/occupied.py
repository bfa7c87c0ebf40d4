"""Which addresses are taken in a span of time, for very many placed pieces.

Time is cut into leaves of equal numbers of endpoints, and the leaves are the
bottom of a binary tree. Two kinds of rows remember placed address ranges:

* `cover`, per leaf: ranges of pieces that live through the whole leaf;
* `touch`, per tree node: ranges of pieces that live at any time of the node.

A piece that lives in part of a leaf is also listed in the leaf with its times. A
query reads `touch` of the few nodes that tile its whole leaves, and `cover` and the
listed pieces of the (at most two) leaves that it cuts. Rows merge what is
contiguous, so they stay short where memory is densely packed, however many pieces
live there. The answer is exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from msa.heap.packing.instance import Instance, Ints

Keys = npt.NDArray[np.generic]

_ROW = 256
_LEAF_ENDPOINTS = 512
_DEAD = np.iinfo(np.int64).min
#: Below this, a range is packed into one integer, which sorts fast.
_PACKED = 2**31


class Codec:
    """Address ranges as sortable scalars: packed integers, or complex if large.

    >>> for ceiling in (100, 2**40):
    ...     codec = Codec(ceiling)
    ...     offsets, ends = codec.decode(np.array([codec.encode(3, 5)]))
    ...     print(offsets.tolist(), ends.tolist())
    [3] [5]
    [3] [5]
    """

    __slots__ = ("dtype", "packed")

    def __init__(self, ceiling: int) -> None:
        self.packed = ceiling < _PACKED
        # Complex numbers sort by real, then imaginary part; exact below 2**53.
        self.dtype: npt.DTypeLike = np.int64 if self.packed else np.complex128

    def encode(self, offset: int, end: int) -> int | complex:
        """One range as a scalar; scalars sort by offset."""
        return offset << 32 | end if self.packed else complex(offset, end)

    def decode(self, keys: Keys) -> tuple[Ints, Ints]:
        """Offsets and ends of many."""
        if self.packed:
            numbers = keys.view(np.int64)
            return numbers >> 32, numbers & 0xFFFFFFFF
        return keys.real.astype(np.int64), keys.imag.astype(np.int64)

    def encode_many(self, offsets: Ints, ends: Ints) -> Keys:
        """Many ranges."""
        if self.packed:
            return offsets << 32 | ends
        return offsets + 1j * ends


class _Rows:
    """Many sets of ranges; each a merged sorted base and a few recent ones."""

    __slots__ = ("_base", "_codec", "_count", "_recent")

    def __init__(self, rows: int, codec: Codec) -> None:
        self._codec = codec
        self._base: list[Keys | None] = [None] * rows
        self._recent: Keys = np.zeros((rows, _ROW), dtype=codec.dtype)
        self._count = np.zeros(rows, dtype=np.int64)

    def add(self, rows: Ints, key: int | complex) -> None:
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
        "_at",
        "_codec",
        "_cover",
        "_cover_high",
        "_cover_low",
        "_end",
        "_first_leaf",
        "_last_leaf",
        "_leaves",
        "_listed",
        "_listed_end",
        "_listed_key",
        "_listed_start",
        "_root",
        "_slots",
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
        self._leaves = leaves
        self._root = 1 << max(0, leaves - 1).bit_length()
        self._start, self._end = start.tolist(), end.tolist()
        self._first_leaf, self._last_leaf = first.tolist(), last.tolist()
        self._cover_low = (first + cuts_first).tolist()
        self._cover_high = (last + 1 - cuts_last).tolist()
        self._cover = _Rows(leaves, codec)
        self._touch = _Rows(self._root + leaves, codec)
        self._list_pieces(first, last, cuts_first, cuts_last)

    def _list_pieces(
        self,
        first: Ints,
        last: Ints,
        cuts_first: npt.NDArray[np.bool_],
        cuts_last: npt.NDArray[np.bool_],
    ) -> None:
        """Give each piece a slot in every leaf that it lives in only partly."""
        at_first = np.flatnonzero(cuts_first | (cuts_last & (first == last)))
        at_last = np.flatnonzero(cuts_last & (first != last))
        piece = np.concatenate([at_first, at_last])
        leaf = np.concatenate([first[at_first], last[at_last]])
        order = np.argsort(leaf, kind="stable")
        piece, leaf = piece[order], leaf[order]
        self._at = np.searchsorted(leaf, np.arange(self._leaves + 1)).tolist()
        by_piece = np.argsort(piece, kind="stable")
        pointers = np.searchsorted(piece[by_piece], np.arange(len(first) + 1))
        self._slots = by_piece
        self._listed = pointers.tolist()
        self._listed_start = np.array(self._start, dtype=np.int64)[piece]
        self._listed_end = np.full(len(piece), _DEAD, dtype=np.int64)
        self._listed_key: Keys = np.zeros(len(piece), dtype=self._codec.dtype)

    def add(self, piece: int, offset: int, end: int) -> None:
        """The piece lies at the addresses `[offset, end)`."""
        key = self._codec.encode(offset, end)
        slots = self._slots[self._listed[piece] : self._listed[piece + 1]]
        self._listed_end[slots] = self._end[piece]
        self._listed_key[slots] = key
        low, high = self._cover_low[piece], self._cover_high[piece]
        if low < high:
            self._cover.add(np.arange(low, high), key)
        first, last = self._first_leaf[piece], self._last_leaf[piece]
        self._touch.add(self._nodes(first, last), key)

    def _nodes(self, first: int, last: int) -> Ints:
        """All nodes of the tree above the leaves `first..last`, inclusive."""
        low, high = self._root + first, self._root + last
        levels = []
        while low < high:
            levels.append(np.arange(low, high + 1))
            low, high = low >> 1, high >> 1
        levels.append(np.array([low >> k for k in range(low.bit_length())]))
        return np.concatenate(levels) if len(levels) > 1 else levels[0]

    def query(self, piece: int, out: list[Keys]) -> None:
        """Append the ranges of all added pieces that share time with this one."""
        first, last = self._first_leaf[piece], self._last_leaf[piece]
        low, high = self._cover_low[piece], self._cover_high[piece]
        if low > first:
            self._query_leaf(piece, first, out)
        if high <= last and (last != first or low == first):
            self._query_leaf(piece, last, out)
        low, high = self._root + low, self._root + high
        while low < high:
            if low & 1:
                self._touch.collect(low, out)
                low += 1
            if high & 1:
                high -= 1
                self._touch.collect(high, out)
            low, high = low >> 1, high >> 1

    def _query_leaf(self, piece: int, leaf: int, out: list[Keys]) -> None:
        self._cover.collect(leaf, out)
        low, high = self._at[leaf], self._at[leaf + 1]
        hits = self._listed_end[low:high] > self._start[piece]
        hits &= self._listed_start[low:high] < self._end[piece]
        keys = self._listed_key[low:high][hits]
        if len(keys):
            out.append(keys)
