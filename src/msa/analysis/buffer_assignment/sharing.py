"""Results computed in place of an operand that dies: classes of buffers.

Beyond buffers that must share storage, a result may take over an operand's bytes
when the operand is not read any more. Classes are formed in order of time; the
members of a class get one offset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msa.analysis.buffer_assignment.holes import Piece
from msa.analysis.copy_insertion.conflicts import takes_over
from msa.analysis.shape_nodes import shape_nodes

if TYPE_CHECKING:
    from msa.analysis.live_ranges import LiveRanges
    from msa.analysis.operand_sharing import OperandSharing
    from msa.analysis.values import HloBuffer, Value

_NEVER: Final = frozenset(
    {"parameter", "constant", "while", "conditional", "call", "tuple"}
)


def pieces_of(buffer: HloBuffer, live: LiveRanges) -> list[Piece]:
    """Half-open times in which a buffer holds a value that is needed, merged."""
    bounds = (live.range_of(value) for value in buffer.values)
    return merge_pieces([(b.start, b.end + 1) for b in bounds if b is not None])


def merge_pieces(pieces: list[Piece]) -> list[Piece]:
    """Sorted, with those that touch or overlap united.

    >>> merge_pieces([(4, 6), (0, 2), (2, 3)])
    [(0, 3), (4, 6)]
    """
    merged: list[Piece] = []
    for start, end in sorted(pieces):
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


class ShareClass:
    """Buffers that are given one offset.

    Attributes:
        buffers: the members.
        size: bytes.
        rows: (start, end, value id), half-open, sorted: when which value is needed.
        host: number of the output or donated argument whose storage it is, or -1.

    Invariant: rows of different buffers overlap at most at the step at which one
    value is computed in place of the other.
    """

    __slots__ = ("_pieces", "buffers", "host", "rows", "size")

    def __init__(
        self, buffer: HloBuffer, size: int, live: LiveRanges, host: int = -1
    ) -> None:
        self.buffers = [buffer]
        self.size = size
        self.host = host
        self.rows = sorted(
            (bound.start, bound.end + 1, value.id)
            for value in buffer.values
            if (bound := live.range_of(value)) is not None
        )
        self._pieces: list[Piece] | None = None

    @property
    def pieces(self) -> list[Piece]:
        """Times in which some member is needed, merged."""
        if self._pieces is None:
            self._pieces = merge_pieces([row[:2] for row in self.rows])
        return self._pieces

    def absorb(self, other: ShareClass) -> None:
        """Take in another class; linear in the smaller one."""
        small, large = sorted((self.rows, other.rows), key=len)
        for row in small:
            if not large or row > large[-1]:
                large.append(row)
            else:
                large.insert(bisect_left(large, row), row)
        self.rows = large
        self._pieces = None
        self.buffers.extend(other.buffers)
        self.host = max(self.host, other.host)


def share_classes(
    buffers: Iterable[tuple[HloBuffer, int, int]],
    live: LiveRanges,
    sharing: OperandSharing,
    size_of: Callable[[Value], int],
) -> list[ShareClass]:
    """Unite buffers whose values are computed in place of each other.

    Args:
        buffers: rows (buffer, bytes, host or -1).
        live: normalised live ranges.
        sharing: which results may be written over which operands.
        size_of: bytes of a value; only equal sizes share.

    Near linear: the smaller class is always taken into the larger one.
    """
    return _Sharer(live, sharing, size_of).run(buffers)


class _Sharer:
    """Union of classes in order of time."""

    def __init__(
        self,
        live: LiveRanges,
        sharing: OperandSharing,
        size_of: Callable[[Value], int],
    ) -> None:
        self._live = live
        self._flow = live.alias.dataflow
        self._sharing = sharing
        self._size_of = size_of
        self._owner: dict[int, ShareClass] = {}
        self._buffer: dict[int, int] = {}
        self._parent: dict[int, int] = {}

    def run(self, buffers: Iterable[tuple[HloBuffer, int, int]]) -> list[ShareClass]:
        starts: list[tuple[int, int]] = []
        for buffer, size, host in buffers:
            group = ShareClass(buffer, size, self._live, host)
            self._owner[buffer.id] = group
            self._buffer.update((v.id, buffer.id) for v in buffer.values)
            starts.extend((row[0], row[2]) for row in group.rows)
        for start, number in sorted(starts):
            value = self._flow.value(number)
            x = value.instruction
            if x.operands and x.opcode not in _NEVER and not value.shape.is_tuple:
                self._settle(value, start)
        return list(self._owner.values())

    def _find(self, number: int) -> int:
        parent = self._parent
        while (up := parent.get(number, number)) != number:
            parent[number] = parent.get(up, up)
            number = up
        return number

    def _settle(self, value: Value, start: int) -> None:
        """Let a value take over the storage of an operand, the first that allows."""
        for operand in dict.fromkeys(value.instruction.operands):
            for index in shape_nodes(operand.shape).indices:
                for old in self._flow.values_at(operand, index):
                    bound = self._live.range_of(old)
                    if (
                        bound is None
                        or bound.end != start
                        or old.id not in self._buffer
                        or self._size_of(old) != self._size_of(value)
                    ):
                        continue
                    mine = self._find(self._buffer[value.id])
                    theirs = self._find(self._buffer[old.id])
                    if mine != theirs and self._unite(theirs, mine):
                        return

    def _unite(self, keep: int, gone: int) -> bool:
        a, b = self._owner[keep], self._owner[gone]
        if a.size != b.size or (a.host >= 0 and b.host >= 0) or self._clash(a, b):
            return False
        a.absorb(b)
        self._parent[gone] = keep
        del self._owner[gone]
        return True

    def _clash(self, a: ShareClass, b: ShareClass) -> bool:
        few, many = sorted((a.rows, b.rows), key=len)
        for row in few:
            at = bisect_left(many, (row[1],))
            while at:
                at -= 1
                other = many[at]
                if other[1] <= row[0]:
                    break
                first, second = sorted((row, other))
                if first[1] != second[0] + 1 or first[0] == second[0]:
                    return True
                old, new = self._flow.value(first[2]), self._flow.value(second[2])
                if not takes_over(self._sharing, self._live.alias.pairs, old, new):
                    return True
        return False
