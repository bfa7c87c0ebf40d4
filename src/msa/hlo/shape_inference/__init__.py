"""Result shapes of operations from operand shapes and attributes.

One file holds the rules of one family of opcodes; `infer_shape` is the only door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msa.errors import ShapeInferenceError
from msa.hlo.shape import Shape
from msa.hlo.shape_inference import (
    collectives,
    contraction,
    control_flow,
    data_movement,
    elementwise,
    indexing,
    reduction,
    transfers,
)
from msa.hlo.shape_inference.operands import OPERAND_COUNTS
from msa.hlo.shape_inference.operation import Operation, Rule, Signature

__all__ = ["OPERAND_COUNTS", "RULES", "Signature", "infer_operation", "infer_shape"]

RULES: Final[Mapping[str, Rule]] = {
    **collectives.RULES,
    **contraction.RULES,
    **control_flow.RULES,
    **data_movement.RULES,
    **elementwise.RULES,
    **indexing.RULES,
    **reduction.RULES,
    **transfers.RULES,
}
"""The rule of every opcode."""


def infer_shape(
    opcode: str,
    operand_shapes: Sequence[Shape],
    attributes: Mapping[str, Any],
    called_signatures: Sequence[Signature] = (),
    *,
    stated: Shape | None = None,
) -> Shape | None:
    """The result shape of an operation.

    Layouts follow XLA's reader: operations that keep their operand's dimensions keep
    its layout, all others give row-major arrays.

    Args:
        opcode: text name of the opcode.
        operand_shapes: one shape per operand.
        attributes: parsed attributes as instructions hold them.
        called_signatures: parameter and result shapes of the called computations
            (`while`: body, condition; `select-and-scatter`: select, scatter).
        stated: the result shape that the program states, for opcodes whose result
            does not follow from the operands; it is checked against them.

    Returns:
        The shape, or None when the opcode is unknown or its result has to be stated.

    Raises:
        ShapeInferenceError: operands, attributes and stated shape do not fit.

    >>> f32 = Shape.array("f32", (8, 10)), Shape.array("f32", (10, 16))
    >>> dims = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
    >>> str(infer_shape("dot", f32, dims))
    'f32[8,16]{1,0}'
    """
    if opcode not in RULES:
        return None
    return infer_operation(
        Operation(opcode, operand_shapes, attributes, called_signatures, stated)
    )


def infer_operation(op: Operation) -> Shape | None:
    """`infer_shape` for an operation that is already packed up."""
    least, most = OPERAND_COUNTS[op.opcode]
    count = len(op.operands)
    if count < least or (most is not None and count > most):
        wanted = str(least) if least == most else f"at least {least}"
        op.fail(f"takes {wanted} operands, got {count}")
    try:
        return RULES[op.opcode](op)
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        raise ShapeInferenceError(
            f"malformed attributes: {error}", opcode=op.opcode
        ) from error
