"""A repacker that is never worse than the present packing, and searches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msa.errors import CapacityError
from msa.heap.allocation_block import AllocationBlock, rings
from msa.heap.packing.buffer import Buffer
from msa.heap.packing.instance import build_instance
from msa.heap.packing.placement import place
from msa.heap.packing.portfolio import pack
from msa.heap.repacker import BestFitRepacker
from msa.heap.slice_permutations import AllocatedSlice, PermutationKind, checked_kind
from msa.heap.whole_number import read_whole

#: Search nodes of one repacking: it runs often inside an assignment.
DEFAULT_EFFORT = 2_000


class SearchRepacker:
    """Best fit, then the present packing compacted, then `pack` with a search.

    Compaction drops the blocks one after another, the lowest first, so it never needs
    more than the present packing: if the blocks fit now, this repacker succeeds. In
    the last two steps sliced blocks move as a whole, with their inner layout.

    Args:
        max_size: bytes available.
        alignment: of all offsets (bytes).
        effort: search nodes a call; 0 for heuristics alone.
        seed: of the search.
        permutations: orders of arrival of slices that best fit tries.

    >>> from msa.heap import AllocationBlock
    >>> blocks = [AllocationBlock(0, 3, 4, id=0, offset=4), AllocationBlock(1, 4, 4, id=1, offset=8)]
    >>> SearchRepacker(8).repack(blocks), sorted(b.offset for b in blocks)
    (True, [0, 4])
    """

    __slots__ = ("alignment", "effort", "max_size", "permutations", "seed")

    def __init__(
        self,
        max_size: int,
        alignment: int = 1,
        *,
        effort: int = DEFAULT_EFFORT,
        seed: int = 0,
        permutations: PermutationKind = "preferred",
    ) -> None:
        self.max_size = read_whole(max_size, "max_size")
        self.alignment = read_whole(alignment, "alignment", at_least=1)
        self.effort = read_whole(effort, "effort", at_least=0)
        self.seed = read_whole(seed, "seed", at_least=0)
        self.permutations: PermutationKind = checked_kind(permutations)

    def repack(self, blocks: Sequence[AllocationBlock]) -> bool:
        """Set the offset of every block if all fits; False changes nothing."""
        simple = BestFitRepacker(
            self.max_size, self.alignment, permutations=self.permutations
        )
        if simple.repack(blocks):
            return True
        groups = rings(blocks)
        buffers = [
            _as_buffer(block, number)
            for number, ring in enumerate(groups)
            for block in ring
        ]
        offsets = self._compacted(groups, buffers) or self._searched(buffers)
        if offsets is None:
            return False
        for ring in groups:
            for block in ring:
                _move(block, offsets[block.id])
        return True

    def _compacted(
        self, groups: list[list[AllocationBlock]], buffers: list[Buffer]
    ) -> dict[int, int] | None:
        """Offsets by block id after dropping every ring, if that fits."""
        if any(ring[0].initial_offset < 0 for ring in groups):
            return None
        instance = build_instance(buffers, alignment=self.alignment)
        at = {n: ring[0].initial_offset for n, ring in enumerate(groups)}
        order: dict[int, int] = {}
        for buffer, item in zip(buffers, instance.item_of.tolist(), strict=True):
            if item >= 0:
                order[item] = at[buffer.group]
        items = sorted(order, key=lambda item: (order[item], item))
        offsets = place(instance, np.array(items, dtype=np.int64), "first")
        if instance.height(offsets) > self.max_size:
            return None
        return {
            buffer.id: int(offsets[item]) if item >= 0 else 0
            for buffer, item in zip(buffers, instance.item_of.tolist(), strict=True)
        }

    def _searched(self, buffers: list[Buffer]) -> dict[int, int] | None:
        try:
            plan = pack(
                buffers,
                capacity=max(self.max_size, 0),
                alignment=self.alignment,
                effort=self.effort,
                seed=self.seed,
            )
        except CapacityError:
            return None
        return plan.as_dict()


def _as_buffer(block: AllocationBlock, group: int) -> Buffer:
    # Inclusive times become half-open here.
    return Buffer(
        block.id,
        block.inclusive_start_time,
        block.end_time + 1,
        block.size,
        group=group,
    )


def _move(block: AllocationBlock, offset: int) -> None:
    """Put a block at an offset, its slices with it."""
    block.offset = offset
    if block.original_slices:
        base = block.original_slices[0].offset
        block.repacked_slices = tuple(
            AllocatedSlice(s.size, s.offset - base + offset, s.inclusive_start_time)
            for s in block.original_slices
        )
