"""Chains of asynchronous operations: what binds operands, where they start and end.

A chain is `async-start`, any number of `async-update`s and `async-done`, each reading
the one before as operand 0. Operands may be bound late: a start or update leaves
slots empty (shape `()`), a later update fills them with its operands 1, 2, ….

Source: `xla/hlo/ir/hlo_instruction_utils.cc`, `xla/hlo/ir/hlo_instructions.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape

ASYNC_OPCODES: Final = frozenset({"async-start", "async-update", "async-done"})
LOOP_CROSSING_SOURCES: Final = frozenset(
    {"get-tuple-element", "tuple", "while", "parameter"}
)
"""Opcodes of operand 0 of an update or done whose start is in another computation."""


def chain_start(instruction: Instruction) -> Instruction | None:
    """The start of the chain that an asynchronous operation belongs to, if in reach."""
    while instruction.opcode in ("async-update", "async-done"):
        if not instruction.operands:
            return None
        instruction = instruction.operands[0]
    return instruction if instruction.opcode == "async-start" else None


def chain_done(instruction: Instruction) -> Instruction | None:
    """The end of the chain after an asynchronous operation, if in reach."""
    while instruction.opcode != "async-done":
        instruction_or_none = next(
            (
                user
                for user in instruction._users
                if user.opcode in ("async-update", "async-done")
                and user.operands[0] is instruction
            ),
            None,
        )
        if instruction_or_none is None:
            return None
        instruction = instruction_or_none
    return instruction


def bound_operands(instruction: Instruction) -> tuple[Instruction, ...]:
    """Operands bound along the chain up to and including an operation.

    Empty when the start is out of reach. Linear in the length of the chain.
    """
    links = []
    while instruction.opcode in ("async-update", "async-done"):
        if not instruction.operands:
            return ()
        links.append(instruction.operands[1:])
        instruction = instruction.operands[0]
    if instruction.opcode != "async-start":
        return ()
    links.append(instruction.operands)
    return tuple(operand for link in reversed(links) for operand in link)


def wrapped_computation(instruction: Instruction) -> Computation:
    """The computation that an asynchronous operation runs.

    Raises:
        HloError: it names none and its start is out of reach.
    """
    if instruction.called_computations:
        return instruction.called_computations[0]
    start = chain_start(instruction)
    if start is None or not start.called_computations:
        raise HloError(f"{instruction.name} belongs to no asynchronous start")
    return start.called_computations[0]


def is_fully_bound(instruction: Instruction) -> bool:
    """Whether all operands and the result have been bound at an operation.

    Raises:
        HloError: see `wrapped_computation`.
    """
    wrapped = wrapped_computation(instruction)
    if instruction.opcode == "async-done":
        source, result = instruction.operands[0].shape, instruction.shape
    else:
        source = instruction.shape
        if not source.is_tuple or len(source.children) < 2:
            return False
        result = source.children[1]
    if not source.is_tuple or not source.children:
        return False
    slots = source.children[0]
    parameters = wrapped.parameters
    return (
        slots.is_tuple
        and len(slots.children) == len(parameters)
        and all(
            slot.compatible(p.shape)
            for slot, p in zip(slots.children, parameters, strict=True)
        )
        and result.compatible(wrapped.root.shape)
    )


def runs_wrapped(instruction: Instruction) -> bool:
    """Whether the wrapped computation is scheduled right before this operation.

    It is at the first operation of the chain at which everything is bound.
    """
    if not is_fully_bound(instruction):
        return False
    if instruction.opcode == "async-start":
        return True
    before = instruction.operands[0]
    if before.opcode not in ASYNC_OPCODES:
        return False
    return not is_fully_bound(before)


def is_unbound(shape: Shape) -> bool:
    """Whether this is the empty tuple that marks a slot bound later."""
    return shape.is_tuple and not shape.children
