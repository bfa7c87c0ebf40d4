"""Asynchronous operations, copies between memories, hosts and devices, tokens.

Source: `xla/service/hlo_verifier.cc`, `xla/hlo/ir/hlo_instructions.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.hlo.primitive import U32
from msa.hlo.shape import Shape
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    compatible,
    dims_text,
    row_major,
)


def is_unbound(shape: Shape) -> bool:
    """Whether an operand or result slot of an async operation is not yet bound."""
    return shape.is_tuple and not shape.children


# -- generic async operations ------------------------------------------------


def check_async_shape(op: Operation, shape: Shape) -> None:
    """`((operands…), result, contexts…)`."""
    if not shape.is_tuple or len(shape.children) < 2:
        op.fail(f"must be of a tuple (operands, result, …), got {dims_text(shape)}")
    if not shape.children[0].is_tuple:
        op.fail(f"element 0 must be a tuple of operands, got {dims_text(shape)}")


def _async_start(op: Operation) -> Shape | None:
    stated = op.stated
    if stated is None:
        if not op.called:
            return None
        return Shape.tuple_of(Shape.tuple_of(*op.operands), op.called[0].result)
    check_async_shape(op, stated)
    slots, result = stated.children[0], stated.children[1]
    if is_unbound(slots) or is_unbound(result) or any(map(is_unbound, slots.children)):
        return stated
    if len(slots.children) != len(op.operands):
        op.fail(f"{dims_text(stated)} does not hold {len(op.operands)} operands")
    for number, (slot, operand) in enumerate(
        zip(slots.children, op.operands, strict=True)
    ):
        if not compatible(slot, operand):
            op.fail(
                f"slot {number} is {dims_text(slot)} but the operand is "
                f"{dims_text(operand)}"
            )
    return stated


def _async_update(op: Operation) -> Shape | None:
    source = op.operands[0]
    check_async_shape(op, source)
    if op.stated is None:
        return source
    check_async_shape(op, op.stated)
    bound = (source.children[0], source.children[1])
    if len(op.operands) > 1 or any(map(is_unbound, bound)):
        return op.stated
    for before, after in zip(bound, op.stated.children, strict=False):
        if not compatible(before, after):
            op.fail(f"{dims_text(op.stated)} is not {dims_text(source)}")
    return op.stated


def _async_done(op: Operation) -> Shape | None:
    source = op.operands[0]
    check_async_shape(op, source)
    result = source.children[1]
    return op.stated if is_unbound(result) and op.stated is not None else result


# -- copies ------------------------------------------------------------------


def _copy_start(op: Operation) -> Shape:
    """`(destination, source, context)`; layouts of the two may differ."""
    source, stated = op.operands[0], op.stated
    if stated is None:
        return Shape.tuple_of(source, source, row_major(U32, ()))
    if not stated.is_tuple or len(stated.children) != 3:
        op.fail(f"gives (destination, source, context), not {dims_text(stated)}")
    destination, echoed, context = stated.children
    for shape in (destination, echoed):
        if not compatible(shape, source):
            op.fail(f"copies {dims_text(source)}, not {dims_text(shape)}")
    if not context.element_type.is_integral or context.dimensions:
        op.fail(f"the context must be an integer scalar, got {dims_text(context)}")
    return stated


def _copy_done(op: Operation) -> Shape:
    return element(op, op.operands[0], 0)


def element(op: Operation, shape: Shape, index: int) -> Shape:
    """Element `index` of a tuple that the operation needs."""
    if not shape.is_tuple or index >= len(shape.children):
        op.fail(f"needs a tuple with element {index}, got {dims_text(shape)}")
    return shape.children[index]


# -- send, receive, infeed, outfeed ------------------------------------------


def _send(op: Operation) -> Shape:
    op.token(1)
    return Shape.tuple_of(op.operands[0], row_major(U32, ()), Shape.token())


def _recv(op: Operation) -> Shape | None:
    op.token(0)
    if op.stated is None:
        return None
    data = element(op, op.stated, 0)
    return Shape.tuple_of(data, row_major(U32, ()), Shape.token())


def _check_handle(op: Operation) -> Shape:
    handle = op.operands[0]
    if not handle.is_tuple or len(handle.children) != 3:
        op.fail(f"needs (data, u32[], token[]), got {dims_text(handle)}")
    if not handle.children[2].is_token:
        op.fail(f"element 2 must be a token: {dims_text(handle)}")
    return handle


def _send_done(op: Operation) -> Shape:
    _check_handle(op)
    return Shape.token()


def _recv_done(op: Operation) -> Shape:
    return Shape.tuple_of(_check_handle(op).children[0], Shape.token())


def _infeed(op: Operation) -> Shape | None:
    op.token(0)
    if op.stated is None:
        return None
    if not op.stated.is_tuple or not op.stated.children:
        op.fail(f"gives (data, token[]), not {dims_text(op.stated)}")
    return Shape.tuple_of(op.stated.children[0], Shape.token())


def _outfeed(op: Operation) -> Shape:
    op.token(1)
    sent = op.attribute("outfeed_shape", None)
    if isinstance(sent, Shape) and not compatible(sent, op.operands[0]):
        op.fail(f"sends {dims_text(op.operands[0])}, not {dims_text(sent)}")
    return Shape.token()


# -- tokens ------------------------------------------------------------------


def _after_all(op: Operation) -> Shape:
    del op
    return Shape.token()


def _add_dependency(op: Operation) -> Shape:
    op.token(1)
    return op.operands[0]


RULES: Final[dict[str, Rule]] = {
    "add-dependency": _add_dependency,
    "after-all": _after_all,
    "async-done": _async_done,
    "async-start": _async_start,
    "async-update": _async_update,
    "copy-done": _copy_done,
    "copy-start": _copy_start,
    "infeed": _infeed,
    "outfeed": _outfeed,
    "recv": _recv,
    "recv-done": _recv_done,
    "send": _send,
    "send-done": _send_done,
}
