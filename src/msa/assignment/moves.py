"""Which instructions of a module are synchronous moves that could be replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msa.assignment.options import Options
from msa.assignment.problem import SyncMove

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction


def sync_moves(
    steps: Sequence[Instruction], time: list[int], options: Options
) -> dict[int, SyncMove]:
    """Step → move, for the kinds that the options want replaced. Linear."""
    moves: dict[int, SyncMove] = {}
    if not options.sync_replacement:
        return moves
    for step, instruction in enumerate(steps):
        kind, operand = _kind(instruction, options)
        if kind and not instruction.is_root:
            moves[step] = SyncMove(
                kind,
                operand,
                tuple(time[s.id] for s in instruction.control_successors),
            )
    return moves


def _kind(instruction: Instruction, options: Options) -> tuple[str, int]:
    """Kind of move, and the operand that is moved; no kind if it cannot be replaced."""
    opcode = instruction.opcode
    if opcode == "copy" and options.enable_sync_copy_replacement:
        source = instruction.operands[0].shape
        same = source == instruction.shape and source.memory_space == 0
        return ("copy", 0) if same else ("", 0)
    if opcode in ("slice", "dynamic-slice") and options.enable_sync_slice_replacement:
        implemented = options.is_async_slice_implemented_fn
        source = instruction.operands[0].shape
        if (
            implemented is not None
            and implemented(instruction)
            and source.memory_space == 0
            and instruction.shape.memory_space == 0
            and source.element_type is instruction.shape.element_type
        ):
            return "slice", 0
    if opcode == "fusion" and options.enable_sync_custom_fusion_replacement:
        operand_of = options.custom_fusion_block_prefetch_operand_index_fn
        if operand_of is not None and instruction.attributes.get("kind") == "kCustom":
            operand = operand_of(instruction)
            if operand is not None:
                return "fusion", operand
    return "", 0
