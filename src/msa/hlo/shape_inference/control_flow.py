"""Calls, loops, branches, fusions, tuples and leaves of the graph.

Source: `xla/service/shape_inference.cc`, `xla/service/hlo_verifier.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.hlo.primitive import PRED, S32, U32
from msa.hlo.shape import Shape
from msa.hlo.shape_inference.aliasing import check_aliasing, check_operand_layouts
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    Signature,
    compatible,
    dims_text,
    row_major,
)


def check_arguments(
    op: Operation, callee: Signature, arguments: tuple[Shape, ...], what: str
) -> None:
    """Arguments fit the parameters of a called computation."""
    if len(callee.parameters) != len(arguments):
        op.fail(f"{what} takes {len(callee.parameters)} operands, got {len(arguments)}")
    for number, (parameter, argument) in enumerate(
        zip(callee.parameters, arguments, strict=True)
    ):
        if not compatible(parameter, argument):
            op.fail(
                f"parameter {number} of {what} is {dims_text(parameter)} but the "
                f"operand is {dims_text(argument)}"
            )


def _call(op: Operation) -> Shape:
    callee = op.signature()
    check_arguments(op, callee, op.operands, "the called computation")
    check_aliasing(op)
    return callee.result


def _fusion(op: Operation) -> Shape:
    body = op.signature()
    check_arguments(op, body, op.operands, "the fused computation")
    check_aliasing(op)
    return body.result


def _while(op: Operation) -> Shape:
    body, condition = op.signature(0), op.signature(1)
    state = op.operands[0]
    check_arguments(op, body, op.operands, "the body")
    check_arguments(op, condition, op.operands, "the condition")
    if not compatible(body.result, state):
        op.fail(
            f"the body gives {dims_text(body.result)} but the loop carries "
            f"{dims_text(state)}"
        )
    if condition.result.element_type is not PRED or condition.result.dimensions:
        op.fail(f"the condition must give pred[], got {dims_text(condition.result)}")
    return state


def _conditional(op: Operation) -> Shape:
    chooser, arguments = op.array(0), op.operands[1:]
    branches = op.called
    if not branches:
        op.fail("a called computation is missing")
    if chooser.dimensions or chooser.element_type not in (PRED, S32):
        op.fail(f"operand 0 must be pred[] or s32[], got {dims_text(chooser)}")
    if chooser.element_type is PRED and len(branches) != 2:
        op.fail(f"a pred chooses between two branches, got {len(branches)}")
    if len(arguments) != len(branches):
        op.fail(f"{len(branches)} branches need as many operands after the first")
    for number, (branch, argument) in enumerate(zip(branches, arguments, strict=True)):
        check_arguments(op, branch, (argument,), f"branch {number}")
        if not compatible(branch.result, branches[0].result):
            op.fail(
                f"branch {number} gives {dims_text(branch.result)} but branch 0 "
                f"{dims_text(branches[0].result)}"
            )
    return branches[0].result


def _tuple(op: Operation) -> Shape:
    return Shape.tuple_of(*op.operands)


def _get_tuple_element(op: Operation) -> Shape:
    shape, index = op.operands[0], op.integer("index")
    if not shape.is_tuple:
        op.fail(f"operand must be a tuple, got {dims_text(shape)}")
    if not 0 <= index < len(shape.children):
        op.fail(f"index {index} is out of bounds for {dims_text(shape)}")
    return shape.children[index]


def _stated(op: Operation) -> Shape | None:
    return op.stated


def _custom_call(op: Operation) -> Shape | None:
    check_operand_layouts(op)
    check_aliasing(op)
    return op.stated


def _parameter(op: Operation) -> Shape | None:
    if op.integer("parameter_number") < 0:
        op.fail("parameter number must be >= 0")
    flags = op.attribute("parameter_replication", None)
    if flags is not None and op.stated is not None:
        leaves = sum(1 for _ in op.stated.leaves())
        if len(flags) != leaves:
            op.fail(f"parameter_replication has {len(flags)} flags for {leaves} leaves")
    return op.stated


def _constant(op: Operation) -> Shape | None:
    literal = op.attribute("literal")
    shape: Shape = literal.shape
    return shape


def _pass_through(op: Operation) -> Shape:
    return op.operands[0]


def _identity_number(op: Operation) -> Shape:
    del op
    return row_major(U32, ())


def _rng(op: Operation) -> Shape | None:
    op.attribute("distribution")
    for number in range(len(op.operands)):
        op.scalar(number)
    if len(op.operands) == 2 and op.operands[0].element_type is not (
        op.operands[1].element_type
    ):
        op.fail("operands differ in type")
    if op.stated is not None and op.stated.element_type.family == "special":
        op.fail(f"cannot give {dims_text(op.stated)}")
    return op.stated


def _rng_bit_generator(op: Operation) -> Shape | None:
    state, stated = op.operands[0], op.stated
    if stated is None or not stated.is_tuple:
        if stated is not None and not stated.element_type.is_integral:
            op.fail(f"cannot give {dims_text(stated)}")
        return stated
    if len(stated.children) != 2:
        op.fail(f"gives (state, bits), not {dims_text(stated)}")
    return Shape.tuple_of(state, stated.children[1])


RULES: Final[dict[str, Rule]] = {
    "call": _call,
    "conditional": _conditional,
    "constant": _constant,
    "custom-call": _custom_call,
    "domain": _pass_through,
    "fusion": _fusion,
    "get-tuple-element": _get_tuple_element,
    "opt-barrier": _pass_through,
    "parameter": _parameter,
    "partition-id": _identity_number,
    "replica-id": _identity_number,
    "rng": _rng,
    "rng-bit-generator": _rng_bit_generator,
    "rng-get-and-update-state": _stated,
    "tuple": _tuple,
    "while": _while,
}
