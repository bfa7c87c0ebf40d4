"""Lowering of allocations that stay and of plain copies.

Reference: `PinnedAllocation::Process`, `CopyAllocation::Process` and
`MirroredAllocation::Process` in `xla/service/memory_space_assignment/allocation.cc`.
"""

from __future__ import annotations

from msa.assignment.allocation import (
    CopyAllocation,
    MirroredAllocation,
    PinnedAllocation,
)
from msa.assignment.lowering.async_wrap import wrap_asynchronously
from msa.assignment.lowering.state import LoweringState, Place, create
from msa.errors import PlanError
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape

_CONTEXT = Shape.array("u32", ())
_ASYNC_FORMS = frozenset({"slice", "dynamic-slice", "fusion"})


def lower_pinned(
    state: LoweringState, allocation: PinnedAllocation | MirroredAllocation
) -> None:
    """The value stays where it is defined; its uses read it there."""
    position = allocation.position
    place = Place(state.steps[position.step], position.index)
    if isinstance(allocation, MirroredAllocation):
        original = allocation.original
        if original.is_copy_like and original.position == position:
            place = state.place_of(original)  # the end of the copy, not its source
    state.places[allocation] = place
    if allocation.uses:
        state.update_uses(allocation.uses, state.producer(place))


def lower_copy(state: LoweringState, allocation: CopyAllocation) -> None:
    """A pair `copy-start`, `copy-done`; uses read the latter."""
    if allocation.existing_start is not None:
        start = state.steps[allocation.existing_start]
        state.places[allocation] = Place(start, (0,))
        return
    producer = state.producer(state.place_of(allocation.source))
    replaced = None if allocation.replaces is None else state.steps[allocation.replaces]
    if replaced is None or replaced.opcode == "copy":
        start, done = _copy_pair(state, producer, allocation)
    elif replaced.opcode in _ASYNC_FORMS:
        start, done = wrap_asynchronously(replaced)
        _read_from(state, start, allocation.source_operand, producer)
    else:
        raise PlanError(
            f"{replaced.opcode} has no asynchronous form",
            where=f"step {allocation.replaces}, {replaced.name}",
        )
    state.places[allocation] = Place(done)
    state.record_transfer(
        allocation, start, done, allocation.start_after, allocation.done_before
    )
    state.update_uses(allocation.uses, done)


def _copy_pair(
    state: LoweringState, producer: Instruction, allocation: CopyAllocation
) -> tuple[Instruction, Instruction]:
    source = producer.shape
    target = source if allocation.is_alternate else _whole(source)
    attributes = {}
    if allocation.cross_program_index is not None:
        attributes["cross_program_prefetch_index"] = allocation.cross_program_index
    start = create(
        producer.computation,
        "copy-start",
        _start_shape(state, target, source),
        (producer,),
        attributes,
    )
    done = create(producer.computation, "copy-done", target, (start,))
    return start, done


def _start_shape(state: LoweringState, target: Shape, source: Shape) -> Shape:
    """What a `copy-start` gives, one object for all copies of such arrays."""
    key = (target, source)
    shape = state.start_shapes.get(key)
    if shape is None:
        shape = state.start_shapes[key] = Shape.tuple_of(target, source, _CONTEXT)
    return shape


def _whole(shape: Shape) -> Shape:
    """The shape without split configurations: default memory is one piece."""
    layout = shape.layout
    if layout is None or not layout.split_configs:
        return shape
    from dataclasses import replace

    return shape.with_layout(replace(layout, split_configs=()))


def _read_from(
    state: LoweringState, start: Instruction, operand: int, producer: Instruction
) -> None:
    """Make an asynchronous start read the allocation's source."""
    wanted = start.operands[operand].shape
    start.replace_operand(operand, state.as_shape(producer, wanted))
