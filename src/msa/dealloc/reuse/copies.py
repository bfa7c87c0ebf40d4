"""Copies into a buffer that the source could have been from the start."""

from __future__ import annotations

from msa.dealloc.ir import Function, Operation, Value
from msa.dealloc.reuse.queries import replace_everywhere, single_blocks, uses_in


def eliminate_copies(function: Function) -> bool:
    """Remove `copy s, d` before `dealloc s` where d can take the place of s.

    d is a `restrict` argument that nothing uses before the copy, or an allocation of
    the same block that nothing uses between its definition and the copy, made before
    any use of s.
    """
    changed = False
    for block in single_blocks(function):
        place = 0
        while place + 1 < len(block.operations):
            copy, free = block.operations[place : place + 2]
            if (
                copy.kind == "copy"
                and free.kind == "dealloc"
                and free.operands[0] is copy.operands[0]
                and _may_replace(function, copy)
            ):
                source, target = copy.operands
                free.remove()
                copy.remove()
                owner = source.owner
                assert isinstance(owner, Operation)
                owner.remove()
                replace_everywhere(function, source, target)
                changed = True
                place = 0
            else:
                place += 1
    return changed


def _may_replace(function: Function, copy: Operation) -> bool:
    source, target = copy.operands
    owner = source.owner
    if source.type != target.type or not isinstance(owner, Operation):
        return False
    if owner.kind != "alloc" or source is target:
        return False
    if target.is_argument:
        return _is_restrict(function, target) and not _used_before(
            function, target, copy
        )
    made = target.owner
    assert isinstance(made, Operation)
    if made.kind != "alloc" or made.block is not copy.block:
        return False
    operations = copy.block.operations
    first, last = operations.index(made), operations.index(copy)
    if any(uses_in(op, target) for op in operations[first + 1 : last]):
        return False
    return not any(uses_in(op, source) for op in operations[:first])


def _is_restrict(function: Function, value: Value) -> bool:
    if value not in function.arguments:
        return False
    attributes = function.argument_attributes
    number = value.index
    return number < len(attributes) and bool(attributes[number].get("restrict"))


def _used_before(function: Function, value: Value, stop: Operation) -> bool:
    """Whether anything that may run before an operation uses a value."""
    for operation in function.walk():
        if operation is stop:
            return False
        if value in tuple(operation.used_values()):
            return True
    return False
