"""Result shapes that the reader works out itself, whatever the text states.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.parser.state import ReaderState
from msa.hlo.primitive import U32
from msa.hlo.shape import Shape

RECOMPUTED: Final = frozenset(
    {
        "send",
        "send-done",
        "recv",
        "recv-done",
        "after-all",
        "add-dependency",
        "infeed",
        "outfeed",
    }
)
"""Opcodes whose stated shape is not taken as it stands."""

_CONTEXT: Final = Shape.array(U32)


def recomputed_shape(
    state: ReaderState,
    opcode: str,
    stated: Shape | None,
    operands: tuple[Instruction, ...],
    at: int,
) -> Shape:
    """The result shape of one of `RECOMPUTED`; operand counts are checked already."""
    token = Shape.token()
    if opcode in ("send-done", "after-all", "outfeed"):
        return token
    if opcode == "send":
        return Shape.tuple_of(operands[0].shape, _CONTEXT, token)
    if opcode == "add-dependency":
        return operands[0].shape
    if opcode == "recv-done":
        source = operands[0].shape
        if not source.is_tuple or not source.children:
            state.cursor.fail("recv-done expects the tuple of a recv", at=at)
        return Shape.tuple_of(source.children[0], token)
    if stated is None:
        state.cursor.fail(f"cannot infer shape for opcode: {opcode}", at=at)
    if not stated.is_tuple or not stated.children:
        state.cursor.fail(
            f"{opcode} expects a tuple shape whose element 0 is the data, got {stated}",
            at=at,
        )
    if opcode == "recv":
        return Shape.tuple_of(stated.children[0], _CONTEXT, token)
    return Shape.tuple_of(stated.children[0], token)
