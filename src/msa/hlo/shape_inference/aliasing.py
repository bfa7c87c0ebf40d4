"""What a call states about its operands: results in their storage, their layouts.

Source: `xla/service/hlo_verifier.cc`, `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from msa.hlo.shape import Shape
from msa.hlo.shape_inference.operation import Operation, compatible, dims_text


def check_aliasing(op: Operation) -> None:
    """Each row of `output_to_operand_aliasing` ties equal shapes that exist."""
    for index, number, within in op.attribute("output_to_operand_aliasing", ()):
        if not 0 <= number < len(op.operands):
            op.fail(f"output_to_operand_aliasing: there is no operand {number}")
        ends = (
            (op.stated, index, "the result"),
            (
                op.operands[number],
                within,
                f"operand {number}",
            ),
        )
        shapes: list[Shape] = []
        for shape, place, what in ends:
            if shape is None:
                return
            if not shape.has_index(place):
                op.fail(f"output_to_operand_aliasing: {what} has no element {place}")
            shapes.append(shape.subshape(place).as_array)  # or a buffer of one
        if not compatible(*shapes):
            op.fail(
                f"output_to_operand_aliasing ties {dims_text(shapes[0])} to "
                f"{dims_text(shapes[1])}"
            )


def check_operand_layouts(op: Operation) -> None:
    """`operand_layout_constraints` has one shape for each operand."""
    stated = op.attribute("operand_layout_constraints", None)
    if stated is None:
        return
    if len(stated) != len(op.operands):
        op.fail(
            f"expected {len(op.operands)} operand layout constraints, got {len(stated)}"
        )
    for number, (shape, operand) in enumerate(zip(stated, op.operands, strict=True)):
        if not compatible(shape, operand):
            op.fail(
                f"operand_layout_constraints has {dims_text(shape)} for operand "
                f"{number}, which is {dims_text(operand)}"
            )
