"""Results computed in place of an operand that dies: classes of buffers.

Beyond buffers that must share storage, a result may take over an operand's bytes
when the operand is not read any more. Classes are formed in order of time; the
members of a class get one offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from msa.analysis.buffer_assignment.holes import Piece
from msa.analysis.copy_insertion.hazards import reads_elsewhere
from msa.hlo.opcode import is_elementwise

if TYPE_CHECKING:
    from msa.analysis.live_ranges import LiveRanges
    from msa.analysis.operand_sharing import OperandSharing
    from msa.analysis.values import HloBuffer, Value
    from msa.hlo.instruction import Instruction


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
        pieces: half-open times in which a member holds a needed value.
        host: number of the output or donated argument whose storage it is, or -1.
        taken: the last step at which one member took over from another, or -1; at
            one step only one may.

    Invariant: members are alive at different times, except for the step at which
    one is computed in place of another.
    """

    __slots__ = ("buffers", "host", "pieces", "size", "taken")

    def __init__(
        self, buffer: HloBuffer, size: int, pieces: list[Piece], host: int = -1
    ) -> None:
        self.buffers = [buffer]
        self.size = size
        self.pieces = pieces
        self.host = host
        self.taken = -1


def share_classes(
    buffers: Iterable[tuple[HloBuffer, int, int]],
    live: LiveRanges,
    sharing: OperandSharing,
    size_of: Callable[[Value], int],
) -> list[ShareClass]:
    """Unite buffers whose values are computed in place of each other.

    Args:
        buffers: rows (buffer, bytes, host or -1); each has a live range.
        live: normalised live ranges.
        sharing: which results may be written over which operands.
        size_of: bytes of a value; only equal sizes share.

    Near linear: unions of classes that interleave in time are given up when they
    have many pieces.
    """
    dataflow = live.alias.dataflow
    owner: dict[int, ShareClass] = {}
    buffer_of: dict[int, HloBuffer] = {}
    for buffer, size, host in buffers:
        owner[buffer.id] = ShareClass(buffer, size, pieces_of(buffer, live), host)
        for value in buffer.values:
            buffer_of[value.id] = buffer
    values = sorted(
        (
            (bound.start, value.id, value)
            for b in (c.buffers[0] for c in owner.values())
            for value in b.values
            if (bound := live.range_of(value)) is not None
        ),
        key=lambda row: row[:2],
    )
    parent: dict[int, int] = {}

    def find(number: int) -> int:
        path = []
        while number in parent:
            path.append(number)
            number = parent[number]
        for passed in path:
            parent[passed] = number
        return number

    for start, _, value in values:
        user, index = value.position
        if not user.operands or user.opcode in _NEVER:
            continue
        mine = find(buffer_of[value.id].id)
        for operand in dict.fromkeys(user.operands):
            found = dataflow.values_at(operand, ())
            if len(found) != 1 or found[0].id not in buffer_of:
                continue
            old = found[0]
            bound = live.range_of(old)
            theirs = find(buffer_of[old.id].id)
            if bound is None or bound.end != start or theirs == mine:
                continue
            if size_of(old) != size_of(value) or not can_overwrite(
                sharing, operand, user, index
            ):
                continue
            keep, gone = owner[theirs], owner[mine]
            united = _unite(keep, gone, start)
            if united is None:
                continue
            if gone.host >= 0:
                keep.host = gone.host
            keep.pieces = united
            keep.taken = start
            keep.buffers.extend(gone.buffers)
            parent[mine] = theirs
            del owner[mine]
            break
    return list(owner.values())


_NEVER = frozenset({"parameter", "constant", "while", "conditional", "call"})
_MANY_PIECES = 256


def can_overwrite(
    sharing: OperandSharing,
    operand: Instruction,
    user: Instruction,
    index: tuple[int, ...],
) -> bool:
    """Whether a result may be written over an operand that dies at its user.

    Stricter than `can_share`: every slot that reads the operand must allow it.
    """
    if not sharing.can_share(operand, (), user, index):
        return False
    slots = user.operand_indices(operand)
    if len(slots) > 1:
        return all(is_elementwise(user, slot) for slot in slots)
    if user.opcode == "fusion" and not is_elementwise(user, slots[0]):
        return not reads_elsewhere(user, slots[0], (), index)
    return True


def _unite(a: ShareClass, b: ShareClass, time: int) -> list[Piece] | None:
    """Pieces of both, when they overlap at most at the step `time`; else None."""
    if a.size != b.size or (a.host >= 0 and b.host >= 0):
        return None
    if time in (a.taken, b.taken):
        return None
    if a.pieces[-1][1] == time + 1 and b.pieces[0][0] == time:
        # The usual case, a chain: the last piece of one meets the first of the other.
        joined = (a.pieces[-1][0], b.pieces[0][1])
        if len(b.pieces) == 1:
            a.pieces[-1] = joined
            return a.pieces
        return [*a.pieces[:-1], joined, *b.pieces[1:]]
    if len(a.pieces) + len(b.pieces) > _MANY_PIECES:
        return None
    events = sorted([*a.pieces, *b.pieces])
    for (_, end), (start, _) in pairwise(events):
        if start < end and not (start == time and end == time + 1):
            return None
    return merge_pieces(events)
