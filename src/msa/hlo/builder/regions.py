"""Called computations given in place: what parameters they take, and standard ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msa.errors import HloError
from msa.hlo.shape import Shape

Shapes = tuple[Shape, ...]

COMPARISONS: Final = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE"})
"""Names of standard computations that compare two scalars."""


def scalar_of(shape: Shape) -> Shape:
    """A scalar of the array's element type."""
    return Shape.array(shape.element_type)


def region_parameters(
    opcode: str, name: str, number: int, operands: Shapes, attributes: Mapping[str, Any]
) -> Shapes:
    """Parameter shapes of the computation that an instruction calls.

    Args:
        opcode: the calling instruction's opcode.
        name: the attribute that names the computation.
        number: its place in a list of computations.
        operands: shapes of the calling instruction's operands.
        attributes: the calling instruction's attributes.

    Raises:
        HloError: the shapes do not follow from the operands.
    """
    half = len(operands) // 2
    if opcode in ("call", "fusion", "async-start", "while"):
        return operands
    if opcode == "conditional":
        place = {"true_computation": 1, "false_computation": 2}.get(name, 1 + number)
        return operands[place : place + 1]
    if opcode == "map":
        return tuple(map(scalar_of, operands))
    if opcode in ("reduce", "reduce-window"):
        return operands[half:] + tuple(map(scalar_of, operands[:half]))
    if opcode == "sort":
        return tuple(scalar_of(x) for x in operands for _ in range(2))
    if opcode == "select-and-scatter":
        return (scalar_of(operands[1 if name == "scatter" else 0]),) * 2
    if opcode == "scatter":
        inputs, updates = operands[:half], operands[half + 1 :]
        return tuple(map(scalar_of, inputs + updates))
    if opcode == "scan":
        return _scanned(operands, attributes)
    if opcode in ("all-reduce", "all-reduce-start", "reduce-scatter"):
        return (scalar_of(operands[0]),) * 2
    raise HloError(f"{opcode}: give {name} as a computation, its parameters are open")


def _scanned(operands: Shapes, attributes: Mapping[str, Any]) -> Shapes:
    axis, carries = attributes["dimensions"][0], attributes["num_carries"]
    inputs = len(operands) - carries
    slices = []
    for shape in operands[:inputs]:
        dims = shape.dimensions
        slices.append(Shape.array(shape.element_type, dims[:axis] + dims[axis + 1 :]))
    return (*slices, *operands[inputs:])
