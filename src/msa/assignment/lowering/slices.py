"""Lowering of prefetches in slices and of window prefetches.

Reference: `SlicedCopyAllocation::Process` and `WindowPrefetchedAllocation::Process`
in `xla/service/memory_space_assignment/allocation.cc`.
"""

from __future__ import annotations

import json
import math
from typing import Final

from msa.assignment.allocation import (
    Slice,
    SlicedCopyAllocation,
    WindowPrefetchedAllocation,
)
from msa.assignment.lowering.async_wrap import wrap_asynchronously
from msa.assignment.lowering.state import LoweringState, Place, TransferStep, create
from msa.errors import PlanError
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape

JOIN_TARGET: Final = "ConcatBitcast"
"""Target of the custom call that names slices lying next to each other as one value."""

WINDOW_TARGET: Final = "WindowPrefetch"
"""Target of the custom call that fetches the first bytes of an operand."""


def lower_sliced_copy(state: LoweringState, allocation: SlicedCopyAllocation) -> None:
    """One asynchronous slice per piece, and a join that uses read."""
    producer = state.producer(state.place_of(allocation.source))
    view = _byte_view(state, producer) if allocation.uniform else producer
    dones = [_slice(state, allocation, view, piece) for piece in allocation.slices]
    # The join names the pieces in order of address.
    by_address = sorted(
        zip(allocation.slices, dones, strict=True), key=lambda x: x[0].chunk.offset
    )
    join = create(
        view.computation,
        "custom-call",
        view.shape,
        [done for _, done in by_address],
        {"custom_call_target": JOIN_TARGET},
    )
    state.transfers.append(
        TransferStep(None, allocation.done_before, join, allocation.done_before, True)
    )
    whole = join
    if allocation.uniform:
        whole = create(view.computation, "bitcast", producer.shape, (join,))
    state.places[allocation] = Place(whole)
    state.update_uses(allocation.uses, whole)


def _byte_view(state: LoweringState, producer: Instruction) -> Instruction:
    """The value as one row of bytes."""
    wanted = state.options.get_equivalent_s8_shape_fn
    shape = (
        Shape.array("s8", (producer.shape.byte_size(),))
        if wanted is None
        else wanted(producer.shape)
    )
    return create(producer.computation, "bitcast", shape, (producer,))


def _slice(
    state: LoweringState,
    allocation: SlicedCopyAllocation,
    view: Instruction,
    piece: Slice,
) -> Instruction:
    dimensions = view.shape.dimensions
    if len(piece.bounds) != len(dimensions):
        raise PlanError(
            f"a slice of {len(piece.bounds)} dimensions of {view.shape}",
            where=view.name,
        )
    for bounds, size in zip(piece.bounds, dimensions, strict=True):
        if not 0 <= bounds.start < bounds.limit <= size:
            raise PlanError(
                f"slice [{bounds.start}:{bounds.limit}] of a dimension of {size}",
                where=view.name,
            )
    shape = Shape(
        view.shape.element_type,
        tuple(b.limit - b.start for b in piece.bounds),
        (),
        view.shape.layout,
    )
    sliced = create(
        view.computation,
        "slice",
        shape,
        (view,),
        {"slice": tuple((b.start, b.limit, 1) for b in piece.bounds)},
    )
    start, done = wrap_asynchronously(sliced)
    view.computation.remove([sliced])
    state.record_transfer(
        allocation, start, done, piece.start_after, allocation.done_before
    )
    return done


def lower_window(state: LoweringState, allocation: WindowPrefetchedAllocation) -> None:
    """A custom call fetches the window; the fusion that reads it gets two operands.

    Raises:
        PlanError: the reader is not a fusion.
    """
    use = allocation.use
    reader = state.steps[use.step]
    if reader.opcode != "fusion":
        raise PlanError(
            f"a window can only be read by a fusion, not by {reader.opcode}",
            where=f"step {use.step}, {reader.name}",
        )
    producer = state.producer(state.place_of(allocation.source))
    space = state.options.alternate_memory_space
    window = Shape.array("u8", (allocation.window_bytes,)).with_memory_space(space)
    fetch = create(
        producer.computation,
        "custom-call",
        Shape.tuple_of(window, Shape.array("s32", (2,))),
        (producer,),
        {"custom_call_target": WINDOW_TARGET},
    )
    number = len(reader.operands)
    for part in (state.element(fetch, 0), state.element(fetch, 1)):
        _append_operand(state, reader, use.operand, part)
    fetch.backend_config = json.dumps(
        {"parameter_index": use.operand, "buffer_index": number}
    )
    state.places[allocation] = Place(state.element(fetch, 0))
    state.transfers.append(
        TransferStep(
            fetch,
            allocation.start_after,
            state.element(fetch, 0),
            allocation.done_before,
            True,
        )
    )
    state.copy_of[allocation] = [(fetch, fetch)]


def _append_operand(
    state: LoweringState, reader: Instruction, operand: int, part: Instruction
) -> None:
    body = reader.fused_computation
    number = len(reader.operands)
    body.create(
        f"window_param_{number}",
        "parameter",
        part.shape,
        (),
        {"parameter_number": number},
    )
    reader.append_operand(part)
    notify = state.options.notify_operand_appended_fn
    if notify is not None:
        notify(reader, operand, number)


def slice_bytes(shape: Shape) -> int:
    """Bytes of an array (dense; slices are never of tuples)."""
    return math.prod(shape.dimensions) * shape.element_type.byte_width
