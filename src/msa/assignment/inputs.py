"""Which program inputs may be fetched before the program starts.

Weights are worth it, activations are not: those come from the caller just before.
What an input is, is told from its readers.

Reference: `IsCrossProgramPrefetchCandidate` and `LooksLikeAnActivation` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module

#: `(instruction, operand number, operand index)`, as analyses state uses.
HloUse = Any
#: In-place pairs of an instruction: `((operand, operand index), output index)`.
InPlacePairs = Callable[["Instruction"], Iterable[tuple[Any, tuple[int, ...]]]]
#: Uses of the value at `(instruction, index)`.
UsesAt = Callable[["Instruction", tuple[int, ...]], Iterable[HloUse]]


def fusions_by_body(module: Module) -> dict[Computation, Instruction]:
    """The fusion that runs each fused computation. Linear."""
    return {
        instruction.fused_computation: instruction
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == "fusion"
    }


def looks_like_an_activation(
    instruction: Instruction,
    fusions: dict[Computation, Instruction],
    *,
    permissive: bool,
) -> bool:
    """Whether the readers treat the value as data rather than as weights.

    Readers are asked in order; the first that can tell decides. An unknown reader
    counts as a sign of an activation unless `permissive`, and then ends the asking
    at its level.
    """
    # Depth first over chains of bitcasts, fusions and updates, without recursion:
    # an entry is the iterator over the users of one instruction.
    stack = [(instruction, iter(instruction.users))]
    while stack:
        current, users = stack[-1]
        user = next(users, None)
        if user is None:
            stack.pop()
            continue
        verdict = _reader_says(current, user, fusions)
        if verdict is None:
            if not permissive:
                return True
            stack.pop()
        elif verdict is True:
            return True
        elif verdict is not False:
            stack.extend((x, iter(x.users)) for x in reversed(verdict))
    return False


def _reader_says(
    current: Instruction, user: Instruction, fusions: dict[Computation, Instruction]
) -> bool | list[Instruction] | None:
    """True: an activation; False: cannot tell; a list: ask its users; None: unknown."""
    opcode, operands = user.opcode, user.operands
    if opcode in ("convolution", "dot"):
        return operands[0] is current
    if opcode == "gather":
        return operands[1] is current
    if opcode == "fusion":
        parameters = user.fused_computation.parameters
        return [parameters[i] for i, x in enumerate(operands) if x is current]
    if opcode in ("bitcast", "broadcast", "transpose"):
        return [user]
    if opcode == "copy":
        fusion = fusions.get(user.computation) if user.is_root else None
        return True if fusion is None else [fusion]
    if opcode in ("dynamic-update-slice", "dynamic-slice"):
        if any(x is current for x in operands[1:]):
            return True
        return [user]
    if opcode == "reduce":
        if any(x is current for x in operands[len(operands) // 2 :]):
            return True
        return [user]
    return None


def eligible_uses(
    uses: Iterable[HloUse], root: Instruction, pairs: InPlacePairs, uses_at: UsesAt
) -> list[HloUse]:
    """The uses through which a value does not become part of the program's result."""
    return [use for use in uses if not _lives_out(use, root, pairs, uses_at)]


def _lives_out(
    use: HloUse, root: Instruction, pairs: InPlacePairs, uses_at: UsesAt
) -> bool:
    pending = [use]
    seen = {_key(use)}
    while pending:
        instruction, operand, index = _key(pending.pop())
        if instruction is root and root.opcode in ("tuple", "bitcast"):
            return True
        for (number, operand_index), output in pairs(instruction):
            if (number, tuple(operand_index)) != (operand, index):
                continue
            if instruction is root:
                return True
            for other in uses_at(instruction, tuple(output)):
                key = _key(other)
                if key not in seen:
                    seen.add(key)
                    pending.append(other)
    return False


def _key(use: HloUse) -> tuple[Any, int, tuple[int, ...]]:
    return use.instruction, use.operand_number, tuple(use.operand_index)


def is_suitable(
    defining: Instruction,
    index: tuple[int, ...],
    uses: list[HloUse],
    fusions: dict[Computation, Instruction],
    *,
    permissive: bool,
) -> bool:
    """Whether a program input with these eligible uses is worth fetching ahead."""
    if len(index) > 1 or not uses:
        return False
    for use in uses:
        source = use.instruction.operands[use.operand_number]
        if source.opcode == "bitcast":
            below = source.operands[0]
            if below is defining or (
                below.opcode == "get-tuple-element" and below.operands[0] is defining
            ):
                continue
            return False
        if source.opcode not in ("get-tuple-element", "parameter"):
            return False
        if looks_like_an_activation(source, fusions, permissive=permissive):
            return False
    return True
