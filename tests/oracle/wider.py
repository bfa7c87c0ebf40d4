"""A module computed in double precision.

Floats of all kinds become f64 and complex numbers c128: evaluating the clone gives
what the module means, without the rounding of its own types.
"""

from __future__ import annotations

from types import MappingProxyType

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.module import Module
from msa.hlo.primitive import PRIMITIVE_TYPES
from msa.hlo.shape import Shape

WIDER = {
    **dict.fromkeys(["bf16", "f16", "f32"], PRIMITIVE_TYPES["f64"]),
    "c64": PRIMITIVE_TYPES["c128"],
}
OF_ONE_TYPE = frozenset({"custom-call", "reduce-precision"})
"""Opcodes that mean something else, or nothing, in another type."""


def can_widen(module: Module) -> bool:
    """Whether the module means the same in double precision."""
    return not any(
        instruction.opcode in OF_ONE_TYPE
        for computation in module.computations
        for instruction in computation.instructions
    )


def wider(module: Module) -> Module:
    """A clone of a portable module (see `portable`) in double precision."""
    clone = module.clone()
    for computation in clone.computations:
        own = {x: x.shape for x in computation.instructions}
        for instruction, shape in own.items():
            if instruction.opcode == "bitcast-convert":
                keep_bits(computation, instruction, own[instruction.operands[0]])
                continue
            instruction.shape = wide_shape(shape)
            literal = instruction.attributes.get("literal")
            if literal is not None:
                wide = Literal(wide_shape(literal.shape), literal.text)
                attributes = {**instruction.attributes, "literal": wide}
                instruction.attributes = MappingProxyType(attributes)
        computation.instructions[:] = computation.post_order()
    return clone


def wide_shape(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple_of(*map(wide_shape, shape.children))
    if not shape.is_array or shape.element_type.name not in WIDER:
        return shape
    return Shape.array(WIDER[shape.element_type.name], shape.dimensions)


def keep_bits(computation: Computation, bits: Instruction, source: Shape) -> None:
    """Bits are those of the narrow types: convert before and after."""
    if wide_shape(source) != source:
        name = f"{bits.name}.narrow"
        narrow = computation.create(name, "convert", source, bits.operands)
        bits.set_operands((narrow,))
    if wide_shape(bits.shape) != bits.shape:
        shape = wide_shape(bits.shape)
        wide = computation.create(f"{bits.name}.wide", "convert", shape, (bits,))
        bits.replace_all_uses_with(wide)
        wide.set_operands((bits,))
