"""What the problem says of each value of a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msa.assignment.allocation import Position, Use
from msa.assignment.option_types import bytes_from
from msa.assignment.options import Options
from msa.assignment.problem import Value

if TYPE_CHECKING:
    from msa.analysis.manager import AnalysisManager
    from msa.analysis.memory_boundedness import CostModel
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module

_HOST_TRANSFERS = frozenset({"recv", "recv-done", "send", "send-done"})


@dataclass(slots=True)
class ValueFacts:
    """What values are described from.

    Attributes:
        time: schedule step per instruction id, -1 if not scheduled.
    """

    module: Module
    options: Options
    analyses: AnalysisManager
    model: CostModel
    time: list[int]


def build_values(
    facts: ValueFacts,
) -> tuple[list[Value], list[tuple[int, ...]]]:
    """Values that the schedule defines, and the buffers that they form. Linear.

    Ids are dense and in the order of the dataflow analysis.
    """
    ranges = facts.analyses.live_ranges.ranges
    known = [v for v in facts.analyses.dataflow.values if v.id in ranges]
    number = {v.id: i for i, v in enumerate(known)}
    buffers: list[tuple[int, ...]] = []
    buffer_of = [0] * len(known)
    for buffer in facts.analyses.alias.buffers:
        members = tuple(number[v.id] for v in buffer.values if v.id in number)
        if members:
            for member in members:
                buffer_of[member] = len(buffers)
            buffers.append(members)
    values = [
        _build(facts, value, i, buffer_of[i], ranges[value.id])
        for i, value in enumerate(known)
    ]
    return values, buffers


def _build(facts: ValueFacts, value: Any, number: int, buffer: int, live: Any) -> Value:
    options, time, model = facts.options, facts.time, facts.model
    positions = [p for p in value.positions if time[p.instruction.id] >= 0]
    uses = [u for u in value.uses if time[u.instruction.id] >= 0]
    shape = value.shape
    is_array = shape.is_array
    defining: Instruction = value.instruction
    size_of = options.size_fn
    return Value(
        id=number,
        buffer=buffer,
        size=value.byte_size()
        if size_of is None
        else bytes_from("size_fn", size_of(value), value.position),
        positions=tuple(Position(time[p.instruction.id], p.index) for p in positions),
        uses=tuple(
            Use(time[u.instruction.id], u.operand_number, u.operand_index) for u in uses
        ),
        live=(live.start, live.end),
        position_bytes=tuple(
            model.output_bytes(p.instruction, p.index) if is_array else 0.0
            for p in positions
        ),
        use_bytes=tuple(
            model.operand_bytes(u.instruction, u.operand_number, u.operand_index)
            if is_array
            else 0.0
            for u in uses
        ),
        placeable=_is_placeable(value, positions, options)
        and not _is_inside_asynchronous(facts, positions)
        and not (options.faithful and _comes_by_several_updates(positions)),
        definable=_is_definable(facts, value),
        is_tuple=shape.is_tuple,
        is_scalar=is_array and shape.is_effective_scalar,
        is_constant=defining.opcode == "constant",
        live_out=value.live_out,
        reserved=is_array and _is_reserved(facts, value, positions),
        pinned=is_array and shape.memory_space == options.alternate_memory_space,
        banned_uses=_numbers_not(options.is_use_allowed_in_alternate_mem_fn, uses),
        banned_positions=_numbers_not(
            options.is_position_allowed_in_alternate_mem_fn, positions
        ),
        contiguous_positions=_numbers_of(
            options.position_requires_contiguous_allocation_fn, positions
        ),
        key=value,
    )


def _is_inside_asynchronous(facts: ValueFacts, positions: list[Any]) -> bool:
    """Whether the value never leaves a computation that runs asynchronously.

    It may be needed at any time until that ends, not only at its own steps.
    """
    contexts = facts.analyses.schedule.async_context
    return bool(contexts) and all(
        p.instruction.computation in contexts for p in positions
    )


def _comes_by_several_updates(positions: list[Any]) -> bool:
    """Whether the value is the result of an operation with more than one update.

    XLA leaves such results in default memory.
    """
    return any(
        p.instruction.opcode == "async-update"
        and p.index[:1] == (1,)
        and p.instruction.operands[0].opcode == "async-update"
        for p in positions
    )


def _is_placeable(value: Any, positions: list[Any], options: Options) -> bool:
    """Whether alternate memory is possible at all."""
    shape = value.shape
    if not shape.is_array or shape.is_effective_scalar:
        return False
    spaces = (0, options.alternate_memory_space)
    for position in positions:
        instruction = position.instruction
        opcode = instruction.opcode
        if opcode == "add-dependency":
            return False
        if opcode in _HOST_TRANSFERS and instruction.attributes.get("is_host_transfer"):
            return False
        if instruction.shape.subshape(position.index).memory_space not in spaces:
            return False
    return True


def _is_reserved(facts: ValueFacts, value: Any, positions: list[Any]) -> bool:
    """Whether the caller hands it over, or wants it, in alternate memory."""
    entry = facts.module.entry
    color = facts.options.alternate_memory_space
    defining: Instruction = value.instruction
    if (
        defining.opcode == "parameter"
        and defining.computation is entry
        and value.shape.memory_space == color
    ):
        return True
    return any(
        p.instruction is entry.root
        and p.instruction.shape.subshape(p.index).memory_space == color
        for p in positions
    )


def _is_definable(facts: ValueFacts, value: Any) -> bool:
    """Whether it may be defined in alternate memory."""
    allowed = facts.options.is_allowed_in_alternate_mem_fn
    if allowed is not None:
        return bool(allowed(value))
    defining: Instruction = value.instruction
    return not (
        defining.opcode == "parameter" and defining.computation is facts.module.entry
    )


def _numbers_not(allowed: Any, places: list[Any]) -> frozenset[int]:
    if allowed is None:
        return frozenset()
    return frozenset(i for i, place in enumerate(places) if not allowed(place))


def _numbers_of(asked: Any, places: list[Any]) -> frozenset[int]:
    if asked is None:
        return frozenset()
    return frozenset(i for i, place in enumerate(places) if asked(place))
