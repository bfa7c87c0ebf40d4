"""An optimized module in a form that XLA compiles again.

The CPU compiler refuses fusions without its own annotations, and layouts are lost on
the way into it. So fusions become calls, bitcasts between layouts become transposes
and reshapes, an all-reduce of several arrays becomes one for each, and every layout
becomes row-major.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np

from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.layout import Layout
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.hlo.replica_groups import ListGroups
from msa.hlo.shape import Shape

DEVICES = 8
"""Devices of every partitioned module of the corpus."""


def portable(module: Module) -> Module:
    """A clone with the same meaning that any XLA backend accepts."""
    clone = module.clone()
    clone.schedule = None
    clone.entry_layout = None
    clone.aliases = ()
    clone.buffer_donors = ()
    clone.attributes = MappingProxyType({})
    for computation in clone.computations:
        for instruction in list(computation.instructions):
            if instruction.opcode == "bitcast":
                replace_bitcast(computation, instruction)
            elif instruction.opcode == "all-reduce" and instruction.shape.is_tuple:
                split_all_reduce(computation, instruction)
    for computation in clone.computations:
        order = computation.post_order()
        computation.instructions[:] = order
        for instruction in order:
            instruction.drop_control_dependencies()
            instruction.metadata_text = None
            plain(instruction)
    return clone


def manual(module: Module) -> Module:
    """Mark everything as partitioned by hand, so that XLA leaves it as it is."""
    for computation in module.computations:
        for instruction in computation.instructions:
            count = sum(1 for _ in instruction.shape.leaves())
            text = "{manual}"
            if instruction.shape.is_tuple:
                text = "{" + ", ".join(["{manual}"] * count) + "}"
            attributes = {**instruction.attributes, "sharding": text}
            instruction.attributes = MappingProxyType(attributes)
    return module


def plain(instruction: Instruction) -> None:
    """Drop what only the compiler that wrote the module understands."""
    drop = {"sharding", "frontend_attributes", "origin", "statistics"}
    if instruction.opcode == "fusion":
        instruction.opcode = "call"
        drop |= {"kind", "output_to_operand_aliasing"}
    if instruction.opcode != "custom-call":
        instruction.backend_config = None
        instruction.shape = row_major(instruction.shape)
    groups = instruction.attributes.get("replica_groups")
    kept = {k: v for k, v in instruction.attributes.items() if k not in drop}
    if groups is not None:
        kept["replica_groups"] = ListGroups(groups.expand(DEVICES))
    instruction.attributes = MappingProxyType(kept) if kept else NO_ATTRIBUTES
    if instruction.opcode == "constant":
        literal = kept["literal"]
        text = Literal(row_major(literal.shape), literal.text)
        instruction.attributes = MappingProxyType({"literal": text})


def row_major(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple_of(*map(row_major, shape.children))
    if not shape.is_array:
        return shape
    return Shape.array(shape.element_type, shape.dimensions)


def physical_sizes(shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Dimensions in memory order, and that order."""
    layout = shape.layout or Layout.row_major(len(shape.dimensions))
    order = tuple(reversed(layout.minor_to_major))
    return tuple(shape.dimensions[d] for d in order), order


def replace_bitcast(computation: Computation, bitcast: Instruction) -> None:
    """Transpose into memory order, reshape, retype, transpose back."""
    source, target = bitcast.operands[0].shape, bitcast.shape
    if not (source.is_array and target.is_array):
        bitcast.replace_all_uses_with(bitcast.operands[0])
        computation.remove([bitcast])
        return
    kind = source.element_type
    sizes, order = physical_sizes(source)
    value = bitcast.operands[0]

    def add(opcode: str, shape: Shape, attributes: Any = NO_ATTRIBUTES) -> Instruction:
        return computation.create(
            f"{bitcast.name}.{opcode}", opcode, shape, (value,), attributes
        )

    if order != tuple(range(len(order))):
        dims = MappingProxyType({"dimensions": order})
        value = add("transpose", Shape.array(kind, sizes), dims)
    if target.element_type is not kind:
        assert target.element_type.bits == kind.bits
        value = add("bitcast-convert", Shape.array(target.element_type, sizes))
        kind = target.element_type
    flat, back = physical_sizes(target)
    assert math.prod(flat) == math.prod(sizes)
    value = add("reshape", Shape.array(kind, flat))
    if back != tuple(range(len(back))):
        inverse = tuple(int(i) for i in np.argsort(back))
        dims = MappingProxyType({"dimensions": inverse})
        value = add("transpose", Shape.array(kind, target.dimensions), dims)
    bitcast.replace_all_uses_with(value)
    computation.remove([bitcast])


def split_all_reduce(computation: Computation, whole: Instruction) -> None:
    """One all-reduce per array: the reader of the compiler loses their types else."""
    attributes = {k: v for k, v in whole.attributes.items() if k != "channel_id"}
    first = 1000 * whole.attributes.get("channel_id", 1)
    parts = [
        computation.create(
            f"{whole.name}.{number}",
            "all-reduce",
            operand.shape,
            (operand,),
            MappingProxyType({"channel_id": first + number, **attributes}),
            whole.called_computations,
        )
        for number, operand in enumerate(whole.operands)
    ]
    joined = computation.create(f"{whole.name}.all", "tuple", whole.shape, parts)
    whole.replace_all_uses_with(joined)
    computation.remove([whole])


def fill_constants(module: Module, contents: Any) -> Module:
    """A clone in which constants left out of the text have made-up contents."""
    clone = module.clone()
    for computation in clone.computations:
        for instruction in computation.instructions:
            literal = instruction.attributes.get("literal")
            if instruction.opcode == "constant" and literal.is_elided:
                values = contents(instruction, instruction.shape)
                text = literal_text(np.asarray(values))
                new = Literal(instruction.shape, text)
                instruction.attributes = MappingProxyType({"literal": new})
    return clone


def literal_text(values: np.ndarray) -> str:
    """A literal in nested braces; iterative over the last dimension only."""
    if values.ndim == 0:
        item = values.item()
        if isinstance(item, complex):
            return f"({item.real!r}, {item.imag!r})"
        return str(item).lower() if isinstance(item, bool) else repr(item)
    return "{" + ", ".join(literal_text(row) for row in values) + "}"
