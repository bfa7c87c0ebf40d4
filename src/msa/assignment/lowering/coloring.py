"""Writing memory spaces into layouts, and the table of chunks.

Reference: `MemorySpaceAssignment::ExportAndColorBuffers` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from msa.analysis.alias import AliasAnalysis
from msa.assignment.lowering.state import Place
from msa.errors import PlanError
from msa.heap.chunk import Chunk
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex


def export_and_color(
    placed: Sequence[tuple[Place, Chunk]], alias: AliasAnalysis, space: int
) -> dict[Place, Chunk]:
    """Color every position of every placed buffer; the chunk of each buffer, once.

    `placed` may name a buffer several times (through its copies, loop parameters …).
    Linear in positions.

    Raises:
        PlanError: one buffer is placed at two offsets.
    """
    chunks: dict[Place, Chunk] = {}
    seen: dict[int, tuple[Place, Chunk]] = {}
    colored: dict[Instruction, set[ShapeIndex]] = {}
    for place, chunk in placed:
        buffer = alias.unique_buffer_at(place.instruction, place.index)
        if buffer.id in seen:
            other, known = seen[buffer.id]
            if known.offset != chunk.offset:
                raise PlanError(
                    f"{place.text} and {other.text} share storage but are placed at "
                    f"{chunk.offset} and {known.offset}",
                    where=place.text,
                )
            continue
        seen[buffer.id] = (place, chunk)
        chunks[place] = chunk
        for value in buffer.values:
            for position in value.positions:
                colored.setdefault(position.instruction, set()).add(position.index)
    shapes: dict[Shape, Shape] = {}
    for instruction, indices in colored.items():
        instruction.shape = recolored(instruction.shape, indices, space, shapes)
    return chunks


def decolor_inputs(module: Module, places: Iterable[Place], space: int) -> None:
    """Put inputs that are fetched ahead into default memory, in the signature too.

    `places` are all positions of their values.
    """
    indices: dict[Instruction, set[ShapeIndex]] = {}
    for place in places:
        shape = place.instruction.shape.subshape(place.index)
        if shape.memory_space == space:
            indices.setdefault(place.instruction, set()).add(place.index)
        if place.instruction.opcode == "parameter":
            _decolor_signature(module, place, space)
    for instruction, colored in indices.items():
        instruction.shape = recolored(instruction.shape, colored, 0, {})


def _decolor_signature(module: Module, place: Place, space: int) -> None:
    layout, number = module.entry_layout, place.instruction.parameter_number
    if layout is None or not place.instruction.computation.is_entry:
        return
    if layout.parameters[number].subshape(place.index).memory_space == space:
        parameters = list(layout.parameters)
        parameters[number] = recolored(parameters[number], [place.index], 0, {})
        module.entry_layout = replace(layout, parameters=tuple(parameters))


def recolored(
    shape: Shape,
    indices: Iterable[ShapeIndex],
    space: int,
    shapes: dict[Shape, Shape],
) -> Shape:
    """The shape with the arrays at `indices` in another memory space.

    `shapes` remembers changed arrays, so that equal shapes stay shared. Depth is that
    of the shape's nesting.
    """
    nested: dict[int, list[ShapeIndex]] = {}
    for index in indices:
        if not index:
            if shape not in shapes:
                shapes[shape] = shape.with_memory_space(space)
            return shapes[shape]
        nested.setdefault(index[0], []).append(index[1:])
    children = list(shape.children)
    for number, inner in nested.items():
        children[number] = recolored(children[number], inner, space, shapes)
    return Shape.tuple_of(*children)
