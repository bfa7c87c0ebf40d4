"""Kernels by opcode: how one instruction becomes a function of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msa.errors import UnsupportedError

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction
    from msa.runtime.evaluator.context import Context

Kernel = Callable[..., Any]
"""A pure function from operand values to the result; never writes to an operand."""

Builder = Callable[["Instruction", "Context"], Kernel]
"""Reads shapes and attributes once, so that loops pay for them once."""

BUILDERS: Final[dict[str, Builder]] = {}
"""Filled when the family modules are imported, not changed afterwards."""


def kernel(*opcodes: str) -> Callable[[Builder], Builder]:
    """Register a builder for some opcodes."""

    def register(builder: Builder) -> Builder:
        for opcode in opcodes:
            BUILDERS[opcode] = builder
        return builder

    return register


def build(instruction: Instruction, context: Context) -> Kernel:
    """The kernel of an instruction.

    Raises:
        UnsupportedError: the opcode (or this form of it) cannot be executed;
            `subject` is the opcode.
    """
    builder = BUILDERS.get(instruction.opcode)
    if builder is None:
        raise UnsupportedError(
            f"{instruction.opcode} cannot be executed",
            subject=instruction.opcode,
            where=instruction.name,
        )
    return builder(instruction, context)


def unsupported(instruction: Instruction, what: str) -> UnsupportedError:
    """An error that names the opcode and the form that is not supported."""
    return UnsupportedError(
        f"{instruction.opcode}: {what}",
        subject=instruction.opcode,
        where=instruction.name,
    )
