"""Writing memory spaces into layouts, and the table of chunks.

Reference: `MemorySpaceAssignment::ExportAndColorBuffers` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from msa.analysis.alias import AliasAnalysis
from msa.analysis.values import Position
from msa.assignment.lowering.shards import Shards
from msa.assignment.lowering.state import Place
from msa.assignment.options import Options
from msa.errors import PlanError
from msa.heap.chunk import Chunk
from msa.hlo.instruction import Instruction
from msa.hlo.layout import SplitConfig
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex


class Placed(NamedTuple):
    """A place in alternate memory; `split` if it is cut into shards there."""

    place: Place
    chunk: Chunk
    split: SplitConfig | None = None


def export_and_color(
    placed: Sequence[Placed], alias: AliasAnalysis, options: Options
) -> dict[Place, Chunk]:
    """Color every position of every placed buffer; the chunk of each buffer, once.

    `placed` may name a buffer several times (through its copies, loop parameters …).
    Linear in positions.

    Raises:
        PlanError: one buffer is placed at two offsets, or cut in two ways.
    """
    space = options.alternate_memory_space
    chunks: dict[Place, Chunk] = {}
    seen: dict[int, tuple[Place, Chunk]] = {}
    cuts: dict[int, SplitConfig | None] = {}
    colored: dict[Instruction, set[ShapeIndex]] = {}
    cut: list[tuple[Position, Shape]] = []
    for place, chunk, split in placed:
        buffer = alias.unique_buffer_at(place.instruction, place.index)
        if buffer.id in seen:
            other, known = seen[buffer.id]
            if cuts[buffer.id] != split and split is not None:
                raise PlanError(
                    f"{place.text} and {other.text} share storage but are cut into "
                    f"different shards",
                    where=place.text,
                )
            if known.offset != chunk.offset:
                raise PlanError(
                    f"{place.text} and {other.text} share storage but are placed at "
                    f"{chunk.offset} and {known.offset}",
                    where=place.text,
                )
            continue
        seen[buffer.id] = (place, chunk)
        cuts[buffer.id] = split
        chunks[place] = chunk
        for value in buffer.values:
            for position in value.positions:
                colored.setdefault(position.instruction, set()).add(position.index)
        if split is not None:
            shards = Shards(place, split, options.bitcast_split_fn)
            positions = [p for value in buffer.values for p in value.positions]
            cut += [(position, shards.cut(position)) for position in positions]
    for position, shape in cut:
        position.instruction.shape = _with_node(
            position.instruction.shape, position.index, shape
        )
    shapes: dict[Shape, Shape] = {}
    tuples: dict[tuple[Shape, frozenset[ShapeIndex]], Shape] = {}
    for instruction, indices in colored.items():
        key = (instruction.shape, frozenset(indices))
        if key not in tuples:
            tuples[key] = recolored(instruction.shape, indices, space, shapes)
        instruction.shape = tuples[key]
    return chunks


def _with_node(shape: Shape, index: ShapeIndex, node: Shape) -> Shape:
    """The shape with another array at an index. Depth is that of its nesting."""
    if not index:
        return node
    children = list(shape.children)
    children[index[0]] = _with_node(children[index[0]], index[1:], node)
    return Shape.tuple_of(*children)


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
