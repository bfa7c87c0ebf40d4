"""Dynamic-update-slices, alone or at the end of a fusion, written where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.shape import ShapeIndex
from msa.runtime.evaluator.elements import Array, to_codes
from msa.runtime.evaluator.indexing import clamped_starts
from msa.runtime.evaluator.values import (
    Value,
    coded_view,
    from_bytes,
    map_leaves,
    to_bytes,
)
from msa.runtime.machine.blocks import Block, Extent, Reference
from msa.runtime.machine.fused_updates import FusedUpdates, Update
from msa.runtime.machine.hazards import HalfMasks, Output
from msa.runtime.machine.storage_sets import position_text

if TYPE_CHECKING:
    from msa.runtime.machine.device import Device


class InPlaceUpdate:
    """One execution of an update on a device.

    Args:
        device: where.
        instruction: a dynamic-update-slice, or a fusion that ends in some.
        operands: references.
        split: the fusion's updates; None for a single dynamic-update-slice.
        scratch: what the instruction also writes to.
    """

    __slots__ = (
        "_blocks",
        "_device",
        "_instruction",
        "_operands",
        "_scratch",
        "_split",
        "_updates",
    )

    def __init__(
        self,
        device: Device,
        instruction: Instruction,
        operands: Sequence[Value],
        split: FusedUpdates | None,
        scratch: Extent | None,
    ) -> None:
        self._scratch = scratch
        self._device = device
        self._instruction = instruction
        self._operands = operands
        self._split = split
        self._updates = split.updates if split is not None else (_single(instruction),)
        self._blocks: list[Block] = []

    def run(self) -> Value | None:
        """Do it; None if a result does not live in its operand."""
        device, name = self._device, self._instruction.name
        roots = dict(device.placement.leaf_sets(self._instruction))
        for update in self._updates:
            target = self._target(update)
            if target.life.block is not device.spaces.block(roots[update.index]):
                return None
            self._blocks.append(target.life.block)
        if len({id(block) for block in self._blocks}) < len(self._blocks):
            return None
        for update in self._updates:
            device.spaces.check(self._target(update), name)
        values = self._values()
        plain = self._plain_outputs(values, roots)
        nothing = np.empty(0, dtype=np.uint8)
        outputs = [
            Output(update.index, update.shape, block, nothing)
            for update, block in zip(self._updates, self._blocks, strict=True)
        ]
        device.check_overlap(
            self._instruction, self._operands, [*plain, *outputs], self._scratch
        )
        if self._split is not None and device.is_checked_now(self._instruction):
            self._check(values, plain, roots)
        made: dict[ShapeIndex, Reference] = {}
        for update, block in zip(self._updates, self._blocks, strict=True):
            position = position_text(self._instruction, update.index)
            life = device.spaces.claim(block, position, name)
            self._write(update, block, values)
            shape = self._instruction.shape.subshape(update.index)
            made[update.index] = Reference(life, shape)
        for output in plain:
            made[output.index] = device.write(self._instruction, output)
        return map_leaves(self._instruction.shape, lambda index, _: made.get(index))

    def _target(self, update: Update) -> Reference:
        item = self._operands[update.operand]
        for i in update.operand_index:
            item = item[i]
        assert isinstance(item, Reference)
        return item

    def _values(self) -> list[Any]:
        """What is written, start indices and plain results, out of memory's reach."""
        name = self._instruction.name
        if self._split is None:
            loaded = [self._device.load_tree(x, name) for x in self._operands[1:]]
            return [np.array(x) for x in loaded]
        arrays = [self._device.load_tree(x, name) for x in self._operands]
        results = self._device.evaluate(self._split.code, arrays)
        return [x if isinstance(x, tuple) else np.array(x) for x in results]

    def _plain_outputs(
        self, values: Sequence[Any], roots: dict[ShapeIndex, int]
    ) -> list[Output]:
        if self._split is None:
            return []
        rows = []
        for index, place, rest in self._split.plain:
            item = values[place]
            for i in rest:
                item = item[i]
            rows.append(
                self._device.output(self._instruction, index, roots[index], item)
            )
        return rows

    def _region(self, update: Update, values: Sequence[Any]) -> tuple[slice, ...]:
        starts = tuple(values[update.first + 1 : update.first + update.count])
        limits = update.shape.dimensions
        places = clamped_starts(starts, update.sizes, limits)
        return tuple(
            slice(start, start + size)
            for start, size in zip(places, update.sizes, strict=True)
        )

    def _write(
        self,
        update: Update,
        block: Block,
        values: Sequence[Any],
        mask: Array | None = None,
    ) -> None:
        """Write an update (only where `mask` says so)."""
        shape = update.shape
        view = block.cells()[: shape.byte_size()]
        region = self._region(update, values)
        new = values[update.first]
        coded = coded_view(shape, view)
        if coded is None:
            whole = np.array(from_bytes(shape, view))
            whole[region] = new if mask is None else np.where(mask, new, whole[region])
            view[:] = to_bytes(shape, whole)
            return
        codes = to_codes(shape.element_type, new)
        if mask is None:
            coded[region] = codes
        else:
            coded[region] = np.where(mask, codes, coded[region])

    def _save(
        self, update: Update, block: Block, values: Sequence[Any]
    ) -> tuple[Array, Array]:
        """A view of what will be overwritten, and a copy of its contents."""
        view = block.cells()
        coded = coded_view(update.shape, view[: update.shape.byte_size()])
        if coded is not None:
            view = coded[self._region(update, values)]
        return view, view.copy()

    def _check(
        self,
        values: Sequence[Any],
        plain: Sequence[Output],
        roots: dict[ShapeIndex, int],
    ) -> None:
        """Write half of each update, compute again, and compare the other half."""
        device = self._device
        early = HalfMasks(device.numpy_chance)
        saved = []
        for update, block in zip(self._updates, self._blocks, strict=True):
            saved.append(self._save(update, block, values))
            count = int(np.prod(update.sizes, dtype=np.int64))
            mask = early.mask(count).reshape(update.sizes)
            self._write(update, block, values, mask)
        again = self._values()
        for view, before in saved:
            view[...] = before
        for update, block in zip(self._updates, self._blocks, strict=True):
            first, second = values[update.first], again[update.first]
            mask = early.mask(first.size).reshape(update.sizes)
            same_place = self._region(update, values) == self._region(update, again)
            if not same_place or not _same_bits(first[~mask], second[~mask]):
                device.hazard(self._instruction, update.index, block)
        for first_output, second_output in zip(
            plain, self._plain_outputs(again, roots), strict=True
        ):
            known = first_output.shape.as_array.element_count in early.counts
            if known and not early.rest_agrees(first_output, second_output):
                device.hazard(self._instruction, first_output.index, first_output.block)


def _single(instruction: Instruction) -> Update:
    operands = instruction.operands
    sizes = operands[1].shape.dimensions
    return Update((), 0, (), instruction.shape, sizes, 0, len(operands) - 1)


def _same_bits(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()
