"""An allocation takes the buffer that was freed before it; dead code; the stack."""

from __future__ import annotations

from typing import Final

from msa.dealloc.ir import BufferType, Function, Operation
from msa.dealloc.reuse.queries import (
    inside,
    is_static_alloc,
    replace_everywhere,
    single_blocks,
)

STACK_ELEMENTS: Final = 4096
"""Elements that a block may put on the stack."""

_PURE: Final = frozenset({"view", "cast", "subview", "constant", "cmp", "add"})


def drop_dead(function: Function) -> bool:
    """Remove pure operations without uses, and allocations that are only freed."""
    changed = False
    again = True
    while again:
        again = False
        uses = function.uses()
        for operation in list(function.walk()):
            used = [u for r in operation.results for u in uses.get(r, ())]
            if operation.kind in _PURE and not used:
                operation.remove()
                again = True
            elif operation.kind in ("alloc", "alloca", "clone") and all(
                u.kind == "dealloc" for u in used
            ):
                for user in used:
                    user.remove()
                operation.remove()
                again = True
            if again:
                break
        changed |= again
    return changed


def reuse_pairs(function: Function, *, aggressive: bool) -> bool:
    """`dealloc x` … `alloc y` of one block and type become one buffer.

    Conservatively only when no other allocation of the type lies between.
    """
    changed = False
    for block in single_blocks(function):
        place = 0
        while place < len(block.operations):
            free = block.operations[place]
            found = _next_alloc(free, aggressive) if free.kind == "dealloc" else None
            if found is None:
                place += 1
                continue
            old = free.operands[0]
            free.remove()
            found.remove()
            replace_everywhere(function, found.results[0], old)
            changed = True
    return changed


def _next_alloc(free: Operation, aggressive: bool) -> Operation | None:
    """The allocation later in the block that may take the freed buffer."""
    value = free.operands[0]
    owner = value.owner
    if not isinstance(owner, Operation) and value.block is not free.block:
        return None
    operations = free.block.operations
    for operation in operations[operations.index(free) + 1 :]:
        if is_static_alloc(operation) and operation.results[0].type == value.type:
            return operation
        if not aggressive and any(
            op.kind == "alloc" and op.results[0].type == value.type
            for op in inside(operation)
        ):
            return None
    return None


def promote_to_stack(function: Function) -> bool:
    """Small buffers freed in the block that makes them go to the stack."""
    changed = False
    for block in single_blocks(function):
        budget = STACK_ELEMENTS
        for operation in list(block.operations):
            if not is_static_alloc(operation):
                continue
            value = operation.results[0]
            free = next(
                (
                    op
                    for op in block.operations
                    if op.kind == "dealloc" and op.operands[0] is value
                ),
                None,
            )
            if free is None:
                continue
            place = block.operations.index(operation)
            type_ = value.type
            assert isinstance(type_, BufferType)
            if block.operations[place + 1] is free:
                free.remove()
                operation.remove()
            elif type_.element_count <= budget:
                budget -= type_.element_count
                operation.kind = "alloca"
                free.remove()
            else:
                continue
            changed = True
    return changed
