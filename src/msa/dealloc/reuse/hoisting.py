"""Allocations out of loops and branches."""

from __future__ import annotations

from msa.dealloc.ir import STRUCTURED, Function, Operation, Value
from msa.dealloc.reuse.pairs import reuse_pairs
from msa.dealloc.reuse.queries import free_of, is_static_alloc, replace_everywhere


def hoist(function: Function) -> bool:
    """Move buffers made and freed in one region before and after the operation.

    Regions of one operation share them: an allocation of a later region takes a
    hoisted buffer of its type. After a level was hoisted, freed buffers there are
    reused before outer levels are looked at.
    """
    changed = False
    for operation in reversed(list(function.walk())):
        if operation.kind in STRUCTURED and _hoist_from(function, operation):
            changed = True
            reuse_pairs(function, aggressive=False)
    return changed


def _hoist_from(function: Function, operation: Operation) -> bool:
    if any(len(region.blocks) != 1 for region in operation.regions):
        return False
    if operation.kind == "parallel":
        return False  # iterations run at once: each needs its own
    hoisted: list[Value] = []
    changed = False
    for region in operation.regions:
        block = region.blocks[0]
        free = list(hoisted)
        for inner in list(block.operations):
            if not is_static_alloc(inner):
                continue
            value = inner.results[0]
            end = free_of(value, block)
            if end is None:
                continue
            changed = True
            end.remove()
            inner.remove()
            shared = next((v for v in free if _same(v, value, inner)), None)
            if shared is not None:
                free.remove(shared)
                replace_everywhere(function, value, shared)
                continue
            operation.block.insert_before(operation, inner)
            operation.block.insert_after(operation, end)
            hoisted.append(value)
    return changed


def _same(hoisted: Value, value: Value, operation: Operation) -> bool:
    owner = hoisted.owner
    return (
        hoisted.type == value.type
        and isinstance(owner, Operation)
        and owner.attributes == operation.attributes
    )
