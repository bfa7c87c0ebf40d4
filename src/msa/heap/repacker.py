"""Repacking: placing everything anew, to make room.

Reference: `xla/service/memory_space_assignment/best_fit_repacker.{h,cc}`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

from msa.errors import InternalError
from msa.heap.allocation_block import AllocationBlock, rings
from msa.heap.best_fit import GlobalDecreasingSizeBestFitHeap
from msa.heap.chunk import Chunk, align_up
from msa.heap.free_space import Gap, best_fit, free_gaps
from msa.heap.slice_permutations import (
    AllocatedSlice,
    PermutationKind,
    SlicePermutations,
    checked_kind,
)
from msa.heap.sliced_finder import SlicedAllocationFinder
from msa.heap.whole_number import read_whole

Ring = list[AllocationBlock]
RingKey = Callable[[Ring], tuple[int, ...]]


class Repacker(Protocol):
    """Finds new offsets for blocks that lie somewhere already.

    >>> repacker: Repacker = BestFitRepacker(1024)
    >>> repacker.repack([])
    True
    """

    def repack(self, blocks: Sequence[AllocationBlock]) -> bool:
        """Set the offset of every block if it can; False changes nothing."""


def longest_first(ring: Ring) -> tuple[int, ...]:
    """XLA's order: from the leader's start to the last end, then size, then id."""
    leader = ring[0]
    end = max(block.end_time for block in ring)
    return (leader.inclusive_start_time - end, -leader.size, leader.id)


class BestFitRepacker:
    """Places all blocks from scratch by best fit; XLA's repacker.

    It ignores where the blocks lie, so it may fail although they fit now.

    Args:
        max_size: bytes available.
        alignment: of all offsets (bytes).
        permutations: which orders of arrival of slices are tried.
        order: the key by which rings are placed, ascending; the longest first by
            default.
        validate: check the result pair by pair (O(n²)).

    Raises:
        OptionsError: an option is no whole number, out of range or unknown.

    O(n * (live + log n)) time for blocks that are not sliced.

    >>> from msa.heap import AllocationBlock
    >>> blocks = [AllocationBlock(0, 3, 4, id=0, offset=4), AllocationBlock(1, 4, 4, id=1, offset=8)]
    >>> BestFitRepacker(8).repack(blocks), sorted(b.offset for b in blocks)
    (True, [0, 4])
    """

    __slots__ = ("alignment", "max_size", "order", "permutations", "validate")

    def __init__(
        self,
        max_size: int,
        alignment: int = 1,
        *,
        permutations: PermutationKind = "preferred",
        order: RingKey = longest_first,
        validate: bool = False,
    ) -> None:
        self.max_size = read_whole(max_size, "max_size")
        self.alignment = read_whole(alignment, "alignment", at_least=1)
        self.permutations: PermutationKind = checked_kind(permutations)
        self.order = order
        self.validate = validate

    def repack(self, blocks: Sequence[AllocationBlock]) -> bool:
        """Set `offset` (and `repacked_slices`) of every block, if all fits.

        Returns:
            Whether it fits; if not, nothing is changed.
        """
        placement = _Placement(self.alignment, self.permutations)
        for ring in sorted(rings(blocks), key=self.order):
            placement.place(ring)
        if placement.height > self.max_size:
            return False
        placement.write()
        if self.validate:
            validate_blocks(blocks)
        return True


class _Placement:
    """Rings placed so far, with their offsets and slices."""

    __slots__ = ("_alignment", "_heap", "_kind", "_placed", "_slices", "height")

    def __init__(self, alignment: int, kind: PermutationKind) -> None:
        self._alignment = alignment
        self._kind = kind
        self._heap = GlobalDecreasingSizeBestFitHeap(alignment)
        self._placed: list[tuple[Ring, int]] = []
        self._slices: dict[int, tuple[AllocatedSlice, ...]] = {}
        self.height = 0

    def place(self, ring: Ring) -> None:
        """Find the offset of a ring and take the space."""
        room = max(block.size for block in ring)
        if not room:
            self._placed.append((ring, 0))
            return
        sliced = [block for block in ring if block.original_slices]
        if not sliced:
            gaps = free_gaps(self._used(ring), ring[0].size, self._alignment)
            offset = best_fit(gaps, room, self._alignment)
        else:
            offset = self._place_sliced(ring, sliced, room)
        self._placed.append((ring, offset))
        self.height = max(self.height, offset + room)
        self._commit(ring, offset)

    def _used(self, ring: Ring) -> list[tuple[int, int]]:
        tree = self._heap.interval_tree
        return [
            span
            for block in ring
            for span in tree.spans_overlapping(_settled_from(block), block.end_time)
        ]

    def _place_sliced(self, ring: Ring, sliced: Ring, room: int) -> int:
        """The offset at which the leader, and every sliced block, fits."""
        leader = ring[0]
        others = sorted(
            (block for block in sliced if block is not leader),
            key=lambda b: (
                b.inclusive_start_time,
                b.end_time,
                b.initial_offset,
                b.size,
            ),
        )
        finders = [(block, self._finder(block, [block], room)) for block in others]
        found: dict[int, list[Chunk]] = {}

        def allowed(offset: int) -> bool:
            for block, finder in finders:
                chunks = finder.find_for_offset(offset)
                if not chunks:
                    return False
                found[id(block)] = chunks
            return True

        predicate = allowed if finders else None
        finder = self._finder(leader, ring, room, predicate)
        # Above everything there is room, though the search may stop below.
        chunks = finder.find() or finder.find_for_offset(
            align_up(self.height, self._alignment)
        )
        if not chunks:
            raise InternalError("no room in an unlimited heap")
        offset = min(chunk.offset for chunk in chunks)
        if finders:
            allowed(offset)
        found[id(leader)] = chunks
        for block in sliced:
            self._slices[id(block)] = _as_slices(block, found[id(block)])
        return offset

    def _finder(
        self,
        block: AllocationBlock,
        ring: Ring,
        room: int,
        allowed: Callable[[int], bool] | None = None,
    ) -> SlicedAllocationFinder:
        """A finder for a block; the ring's other blocks count once they are whole."""
        slices = block.original_slices
        tree = self._heap.interval_tree
        starts = sorted(s.inclusive_start_time for s in slices or ())
        smallest = min((s.size for s in slices or ()), default=block.size)
        per_time: list[list[Gap]] = []
        for start, following in pairwise(starts):
            used = tree.spans_overlapping(start, following - 1)
            per_time.append(free_gaps(used, smallest, self._alignment))
        per_time.append(free_gaps(self._used(ring), block.size, self._alignment))
        by_offset = sorted(slices or (), key=lambda s: s.offset)
        return SlicedAllocationFinder(
            per_time,
            [s.size for s in by_offset] or [block.size],
            max_colocation_size=room,
            alignment=self._alignment,
            permutations=SlicePermutations.repack(self._kind, slices),
            is_offset_allowed=allowed,
        )

    def _commit(self, ring: Ring, offset: int) -> None:
        """Take the space; every block takes as much as it needs itself."""
        tree = self._heap.interval_tree
        for block in ring:
            for piece in self._slices.get(id(block), ()):
                tree.add(
                    piece.inclusive_start_time,
                    block.end_time,
                    Chunk(piece.offset, piece.size),
                )
            tree.add(_settled_from(block), block.end_time, Chunk(offset, block.size))

    def write(self) -> None:
        """Write offsets and slices into the blocks."""
        for ring, offset in self._placed:
            for block in ring:
                block.offset = offset
                block.repacked_slices = self._slices.get(id(block))


def _settled_from(block: AllocationBlock) -> int:
    """The time from which the block is there as a whole."""
    if not block.original_slices:
        return block.inclusive_start_time
    return max(s.inclusive_start_time for s in block.original_slices)


def _as_slices(
    block: AllocationBlock, chunks: Sequence[Chunk]
) -> tuple[AllocatedSlice, ...]:
    """The chunks by slice time as slices by offset."""
    if not block.original_slices:
        return ()
    starts = sorted(s.inclusive_start_time for s in block.original_slices)
    slices = [
        AllocatedSlice(chunk.size, chunk.offset, start)
        for chunk, start in zip(chunks, starts, strict=False)
    ]
    return tuple(sorted(slices, key=lambda s: s.offset))


def block_rectangles(block: AllocationBlock, offset: int) -> list[tuple[int, ...]]:
    """`(start, end, offset, chunk end)` of a block at an offset, times inclusive."""
    slices = block.repacked_slices
    if not slices:
        whole = (block.inclusive_start_time, block.end_time)
        return [(*whole, offset, offset + block.size)]
    return [
        (s.inclusive_start_time, block.end_time, s.offset, s.offset + s.size)
        for s in slices
    ]


def validate_blocks(blocks: Sequence[AllocationBlock]) -> None:
    """Raise `InternalError` if repacked blocks of different rings overlap. O(n²)."""
    placed: list[tuple[int, tuple[int, ...]]] = []
    for number, ring in enumerate(rings(blocks)):
        for block in ring:
            if block.offset != ring[0].offset:
                raise InternalError(f"{block!r} left its ring at {ring[0].offset}")
            placed += [(number, r) for r in block_rectangles(block, block.offset)]
    for index, (ring_a, a) in enumerate(placed):
        for ring_b, b in placed[index + 1 :]:
            in_time = a[0] <= b[1] and b[0] <= a[1]
            if ring_a != ring_b and in_time and a[2] < b[3] and b[2] < a[3]:
                raise InternalError(f"repacked blocks overlap: {a} and {b}")
