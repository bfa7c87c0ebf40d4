"""Questions that the reuse rules ask."""

from __future__ import annotations

from collections.abc import Iterator

from msa.dealloc.ir import Block, BufferType, Function, Operation, Region, Value, lift


def single_blocks(function: Function) -> Iterator[Block]:
    """Blocks of regions that have just one, outer ones first."""
    for region in list(function.regions()):
        if len(region.blocks) == 1:
            yield region.blocks[0]


def is_static_alloc(operation: Operation) -> bool:
    """Whether this allocates a buffer of known size."""
    if operation.kind != "alloc":
        return False
    type_ = operation.results[0].type
    return isinstance(type_, BufferType) and type_.is_static


def free_of(value: Value, block: Block) -> Operation | None:
    """The deallocation of a value directly in a block."""
    for operation in block.operations:
        if operation.kind == "dealloc" and operation.operands[0] is value:
            return operation
    return None


def inside(operation: Operation) -> Iterator[Operation]:
    """An operation and everything nested in it."""
    work = [operation]
    while work:
        here = work.pop()
        yield here
        for region in here.regions:
            for block in region.blocks:
                work.extend(block.operations)


def uses_in(operation: Operation, value: Value) -> bool:
    """Whether an operation, or one nested in it, uses a value."""
    return any(value in tuple(op.used_values()) for op in inside(operation))


def all_uses(function: Function, value: Value) -> list[Operation]:
    """Operations that use a value."""
    return [op for op in function.walk() if value in tuple(op.used_values())]


def replace_everywhere(function: Function, old: Value, new: Value) -> None:
    """Use `new` for `old` in the whole function."""
    for operation in function.walk():
        operation.replace_uses(old, new)


def is_used_before(operation: Operation, value: Value, region: Region) -> bool:
    """Whether anything before an operation, in its function's order, uses a value."""
    stop = lift(operation, region)
    assert stop is not None
    for block in region.blocks:
        for other in block.operations:
            if other is stop:
                return False
            if uses_in(other, value):
                return True
    return False
