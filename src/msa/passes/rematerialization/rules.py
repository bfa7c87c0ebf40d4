"""Which instructions may be computed again."""

from __future__ import annotations

from typing import Final

from msa.hlo.instruction import Instruction
from msa.hlo.opcode import ASYNC_DONES, ASYNC_STARTS, has_side_effect

_NEVER: Final = (
    frozenset(
        {"call", "conditional", "constant", "custom-call", "parameter", "while"}
        | {"after-all", "add-dependency", "async-update", "domain", "opt-barrier"}
        | {"partition-id", "replica-id"}
    )
    | ASYNC_STARTS
    | ASYNC_DONES
)


def why_not_recomputable(instruction: Instruction) -> str:
    """Why an instruction may not be computed again; empty when it may.

    A collective counts unless it constrains layouts (that is a side effect); both
    halves of an asynchronous operation stay, because one start has one done.
    """
    opcode = instruction.opcode
    if opcode in _NEVER:
        return f"{opcode} is never computed again"
    if opcode == "copy" and instruction.operands[0].shape == instruction.shape:
        return "a copy within one layout gives a value storage of its own"
    if has_side_effect(instruction):
        return f"{opcode} has an effect besides its result"
    return ""
