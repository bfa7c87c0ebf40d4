"""Repacking: everything that is placed already is placed anew, to make room.

Every finished allocation in alternate memory has a block; blocks of allocations that
share an offset form a ring. A repacker moves rings in address, never in time, so the
bytes in use per step stay as they are.

Reference: `ExportAllocationsForRepacking` and `ImportRepackedAllocations` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    ScopedAllocation,
    Slice,
    SlicedCopyAllocation,
)
from msa.errors import InternalError
from msa.heap.allocation_block import AllocationBlock, colocate
from msa.heap.chunk import Chunk
from msa.heap.repacker import BestFitRepacker
from msa.heap.slice_permutations import AllocatedSlice

if TYPE_CHECKING:
    from msa.assignment.coloring import Reservation
    from msa.assignment.state import State


@dataclass(slots=True, eq=False)
class _Placed:
    """A block and what it stands for: an allocation, or room held for a colour.

    Room may be held for `scratch`, which moves with it.
    """

    block: AllocationBlock
    allocation: Allocation | None = None
    reservation: Reservation | None = None
    scratch: Sequence[ScopedAllocation] = ()


class Repacking:
    """Blocks of all finished allocations, and the repacker.

    Attributes:
        calls, successes: how often the repacker was asked, and moved something.
    """

    __slots__ = ("_next_id", "_placed", "_repacker", "calls", "successes")

    def __init__(self, capacity: int, alignment: int, repacker: Any = None) -> None:
        self._repacker = repacker or BestFitRepacker(capacity, alignment)
        self._placed: list[_Placed] = []
        self._next_id = 0
        self.calls = 0
        self.successes = 0

    def add(self, allocations: Iterable[Allocation]) -> None:
        """Blocks for finished allocations; those that share an offset in one ring."""
        rings: dict[object, list[AllocationBlock]] = {}
        for allocation in allocations:
            if allocation.chunk is None:
                continue
            block = self._block(allocation.start, allocation.end, allocation.chunk)
            self._placed.append(_Placed(block, allocation))
            rings.setdefault(allocation.aliased_offset or allocation, []).append(block)
        for ring in rings.values():
            colocate(ring)

    def add_scoped(
        self,
        scoped: list[ScopedAllocation],
        rooms: Sequence[tuple[list[Reservation], list[ScopedAllocation]]] = (),
        *,
        same_offset: bool,
    ) -> None:
        """Blocks for scratch; all in one ring if it must stay at one address.

        `rooms`: pieces at one address that are held for several scratches together.
        """
        first = len(self._placed)
        self.add(scoped)
        for pieces, members in rooms:
            self.add_room(pieces, members)
        if same_offset:
            colocate(
                placed.block
                for placed in self._placed[first:]
                if not getattr(placed.allocation, "is_post_module", False)
            )

    def add_room(
        self, pieces: list[Reservation], scratch: list[ScopedAllocation]
    ) -> None:
        """Blocks for room, in pieces at one address, that several scratches share."""
        blocks: list[AllocationBlock] = []
        for piece in pieces:
            block = self._block(piece.start, piece.end, piece.chunk)
            inside = () if blocks else tuple(scratch)
            self._placed.append(_Placed(block, reservation=piece, scratch=inside))
            blocks.append(block)
        colocate(blocks)

    def add_reservation(self, reservation: Reservation) -> None:
        """A block for room that is held for a colour, until it is released."""
        block = self._block(reservation.start, reservation.end, reservation.chunk)
        self._placed.append(_Placed(block, reservation=reservation))

    def _block(self, start: int, end: int, chunk: Chunk) -> AllocationBlock:
        self._next_id += 1
        return AllocationBlock(
            start,
            end,
            chunk.size,
            id=self._next_id - 1,
            initial_offset=chunk.offset,
        )

    @property
    def is_frozen(self) -> bool:
        """Whether a replaced synchronous operation is among the blocks."""
        return any(
            isinstance(placed.allocation, CopyAllocation)
            and placed.allocation.replaces is not None
            for placed in self._placed
        )

    def run(
        self, state: State, *, always_import: bool = False, discard: bool = False
    ) -> bool:
        """Ask the repacker, and move everything where it says.

        Args:
            state: of the algorithm.
            always_import: take offsets over although it reports no change, if it set
                all of them.
            discard: only ask (for repackers that watch).

        Returns:
            Whether it found a packing.
        """
        self.calls += 1
        live = [
            p
            for p in self._placed
            if p.reservation is None or not p.reservation.released
        ]
        if state.options.reduce_scoped_memory_limit:
            self._shrink_scratch(state, live)
        for placed in live:
            _export(placed)
        found = bool(self._repacker.repack([placed.block for placed in live]))
        self.successes += found
        complete = all(placed.block.offset >= 0 for placed in live)
        if not discard and (found or (always_import and complete)):
            for placed in live:
                _import(placed)
            state.space.replace(
                [rectangle for placed in live for rectangle in _rectangles(placed)]
            )
        return found

    def _shrink_scratch(self, state: State, live: list[_Placed]) -> None:
        """Scratch may need less now that operands and results are in fast memory."""
        reserve = state.options.reserved_scoped_memory_fn
        if reserve is None:
            return
        for placed in live:
            scoped = placed.allocation
            if not isinstance(scoped, ScopedAllocation) or scoped.is_post_module:
                continue
            step = scoped.position.step
            assert scoped.chunk is not None
            size = int(
                reserve(
                    state.problem.keys[step],
                    frozenset(state.alternate_operands.get(step, ())),
                    frozenset(state.alternate_outputs.get(step, ())),
                )
            )
            size = min(size, state.capacity)
            state.space.peak.remove(scoped.start, scoped.end, scoped.chunk.size - size)
            state.transaction.commit()
            scoped.chunk = Chunk(scoped.chunk.offset, size)
            placed.block.size = size


def _export(placed: _Placed) -> None:
    block, allocation = placed.block, placed.allocation
    block.offset = -1
    block.repacked_slices = None
    block.original_slices = None
    if allocation is not None:
        block.inclusive_start_time = allocation.start
        block.end_time = allocation.end
    if isinstance(allocation, SlicedCopyAllocation):
        block.original_slices = tuple(
            sorted(
                (
                    AllocatedSlice(s.chunk.size, s.chunk.offset, s.start_after + 1)
                    for s in allocation.slices
                ),
                key=lambda s: s.offset,
            )
        )


def _import(placed: _Placed) -> None:
    block, allocation = placed.block, placed.allocation
    if placed.reservation is not None:
        placed.reservation.chunk = Chunk(block.offset, block.size)
        for scoped in placed.scratch:
            scoped.move(block.offset)
    elif isinstance(allocation, SlicedCopyAllocation) and block.repacked_slices:
        _import_slices(allocation, block)
    elif allocation is not None:
        allocation.move(block.offset)
    if allocation is not None and allocation.aliased_offset is not None:
        allocation.aliased_offset.offset = block.offset
    block.initial_offset = block.offset
    block.offset = -1


def _import_slices(allocation: SlicedCopyAllocation, block: AllocationBlock) -> None:
    """By rank of offset: where each slice lies now, and when it starts."""
    assert allocation.chunk is not None
    assert block.repacked_slices is not None
    before = sorted(allocation.slices, key=lambda s: s.chunk.offset)
    after = sorted(block.repacked_slices, key=lambda s: s.offset)
    old = sorted((s.chunk.size, s.start_after + 1) for s in before)
    new = sorted((s.size, s.inclusive_start_time) for s in after)
    if old != new:
        raise InternalError(f"the repacker changed slices {old} to {new}")
    moved = [
        Slice(
            one.bounds,
            Chunk(other.offset, other.size),
            other.inclusive_start_time - 1,
            one.resource,
        )
        for one, other in zip(before, after, strict=True)
    ]
    moved.sort(key=lambda s: (s.start_after, s.chunk.offset))
    allocation.slices = tuple(moved)
    allocation.chunk = Chunk(after[0].offset, allocation.chunk.size)


def _rectangles(placed: _Placed) -> list[tuple[int, int, Chunk]]:
    """What the block holds: (first step, last step, chunk)."""
    block, allocation = placed.block, placed.allocation
    if isinstance(allocation, SlicedCopyAllocation):
        return [(s.start_after + 1, block.end_time, s.chunk) for s in allocation.slices]
    chunk = Chunk(block.initial_offset, block.size)
    return [(block.inclusive_start_time, block.end_time, chunk)]
