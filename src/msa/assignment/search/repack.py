"""Packing apart from choosing: room that is there in pieces is made one.

Values that would gain in fast memory, and find no room in one piece although enough
bytes are free at every step, are chosen by what they gain. All chunks are packed anew
with them (`msa.heap.pack`); where that fails, with the dearer half of them, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msa.assignment.allocation import (
    AliasedOffset,
    Allocation,
    AllocationSequence,
    CopyAllocation,
    MirroredAllocation,
    ParentAllocation,
    PinnedAllocation,
    SlicedCopyAllocation,
)
from msa.assignment.refine.draft import duplicate
from msa.assignment.search.draft import Draft
from msa.assignment.search.free import FreePlace
from msa.assignment.search.layout import Layout
from msa.assignment.search.sketches import Wish, allocations_of
from msa.errors import CapacityError
from msa.heap.chunk import Chunk
from msa.heap.packing.buffer import Buffer
from msa.heap.packing.portfolio import pack

_MOVES: Final = (
    PinnedAllocation,
    CopyAllocation,
    SlicedCopyAllocation,
    MirroredAllocation,
    ParentAllocation,
)
"""Allocations that may lie anywhere; others stay where they are."""

_PACK_WORK: Final = 150.0
"""Cost of packing a chunk, in boundaries that a simulation passes."""


class Repacked(NamedTuple):
    """A plan at new offsets.

    Attributes:
        allocations: all of them, copied where they are those of the draft.
        places: where wishes were granted.
        cost: in boundaries, as the budget.
    """

    allocations: AllocationSequence
    places: tuple[FreePlace, ...]
    cost: float


def repack(
    draft: Draft, wishes: Iterable[Wish], steps: int, budget: float
) -> Repacked | None:
    """Pack a draft anew, with as many of the wishes as fit; None: none does.

    Args:
        draft: not changed.
        wishes: what should get room, the dearest first.
        steps: of the program.
        budget: what is used up ends it, when a packing fails.

    At most one packing per halving of the wishes.
    """
    chosen = _with_enough_bytes(draft, wishes, steps)
    cost = 0.0
    while chosen and cost < budget:
        gone = {n for w in chosen for n in draft.of_place.get(w.place.position, ())}
        sequence = AllocationSequence(
            duplicate(
                allocation
                for number, allocation in sorted(draft.allocations.items())
                if number not in gone
            )
        )
        chunks = [(a, a.chunk.size) for a in sequence if a.is_alternate and a.chunk]
        for wish in chosen:
            made = allocations_of(wish.place, wish.sketch)
            sequence.extend(made)
            chunks += [(a, wish.place.size) for a in made if a.is_alternate]
        cost += _PACK_WORK * len(chunks)
        if _lay_out(chunks, draft.layout):
            return Repacked(sequence, tuple(wish.place for wish in chosen), cost)
        chosen = chosen[: len(chosen) // 2]
    return None


def _with_enough_bytes(draft: Draft, wishes: Iterable[Wish], steps: int) -> list[Wish]:
    """Wishes that fit by the bytes free at every step, one after another."""
    loads: NDArray[np.int64] = np.zeros(steps + 2, np.int64)
    for allocation in draft.allocations.values():
        if allocation.is_alternate and allocation.chunk is not None:
            loads[allocation.start] += allocation.chunk.size
            loads[allocation.end + 1] -= allocation.chunk.size
    loads = np.cumsum(loads)
    chosen = []
    for wish in wishes:
        size = wish.place.size
        old = [
            allocation
            for number in draft.of_place.get(wish.place.position, ())
            if (allocation := draft.allocations[number]).is_alternate
        ]
        new = [
            allocation
            for allocation in allocations_of(wish.place, wish.sketch)
            if allocation.is_alternate
        ]
        _load(loads, old, -size)
        _load(loads, new, size)
        if any(loads[a.start : a.end + 1].max() > draft.layout.capacity for a in new):
            _load(loads, new, -size)
            _load(loads, old, size)
        else:
            chosen.append(wish)
    return chosen


def _load(
    loads: NDArray[np.int64], allocations: Iterable[Allocation], size: int
) -> None:
    for allocation in allocations:
        loads[allocation.start : allocation.end + 1] += size


def _lay_out(chunks: Sequence[tuple[Allocation, int]], layout: Layout) -> bool:
    """Give allocations offsets, the same ones to those that share one; if it can be."""
    rows = []
    for number, (allocation, size) in enumerate(chunks):
        pinned = None
        if not isinstance(allocation, _MOVES) and allocation.chunk is not None:
            pinned = allocation.chunk.offset
        shared = allocation.aliased_offset
        rows.append(
            Buffer(
                number,
                allocation.start,
                allocation.end + 1,
                size,
                offset=pinned,
                group=None if shared is None else id(shared),
            )
        )
    try:
        plan = pack(
            rows, capacity=layout.capacity, alignment=layout.alignment, effort=0
        )
    except CapacityError:
        return False
    shared_now: dict[int, AliasedOffset] = {}
    for (allocation, size), row, offset in zip(chunks, rows, plan.offsets, strict=True):
        if allocation.chunk is None:
            allocation.chunk = Chunk(offset, size)
            allocation.aliased_offset = AliasedOffset(offset)
        else:
            allocation.move(offset)
        if row.group is not None:
            at = shared_now.setdefault(row.group, AliasedOffset(offset))
            allocation.aliased_offset = at
    return True
