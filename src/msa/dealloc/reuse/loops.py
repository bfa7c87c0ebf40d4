"""Loop-carried buffers: two that take turns instead of one for every trip."""

from __future__ import annotations

from msa.dealloc.edges import Interfaces
from msa.dealloc.ir import Function, Operation, Region, Value
from msa.dealloc.reuse.queries import all_uses, is_static_alloc, replace_everywhere


def double_buffer(function: Function) -> bool:
    """Pair allocations and frees of one type in a loop's region.

    The freed value of this trip is the new buffer of the next: it is carried as one
    more value, made before the loop and freed after it.
    """
    for operation in list(function.walk()):
        if operation.kind not in ("for", "while"):
            continue
        if any(len(region.blocks) != 1 for region in operation.regions):
            continue
        for number, region in enumerate(operation.regions):
            pair = _pair(region)
            if pair is not None:
                _carry(function, operation, number, *pair)
                return True
    return False


def _pair(region: Region) -> tuple[Operation, Operation] | None:
    """The first allocation with the first free of the same type, of a value that
    the region did not allocate itself."""
    block = region.blocks[0]
    made = {
        op.results[0]
        for op in block.operations
        if op.kind in ("alloc", "alloca", "clone")
    }
    for alloc in block.operations:
        if not is_static_alloc(alloc):
            continue
        for free in block.operations:
            if (
                free.kind == "dealloc"
                and free.operands[0].type == alloc.results[0].type
                and free.operands[0] not in made
                and free.operands[0].block is block
            ):
                return alloc, free
    return None


def _carry(
    function: Function, loop: Operation, number: int, alloc: Operation, free: Operation
) -> None:
    fresh, old = alloc.results[0], free.operands[0]
    alloc.remove()
    free.remove()
    name = function.fresh_name("spare")
    initial = Operation("alloc", (), [fresh.type], attributes=alloc.attributes)
    initial.results[0].name = name
    loop.block.insert_before(loop, initial)
    loop.operands.append(initial.results[0])
    carried = []
    for region in loop.regions:
        argument = region.entry.add_argument(function.fresh_name("next"), fresh.type)
        carried.append(argument)
    for place, region in enumerate(loop.regions):
        end = region.blocks[0].terminator
        end.operands.append(old if place == number else carried[place])
    replace_everywhere(function, fresh, carried[number])
    result = Value(function.fresh_name("last"), fresh.type, loop, len(loop.results))
    loop.results.append(result)
    loop.block.insert_after(loop, Operation("dealloc", [result]))


def simplify_loop_frees(function: Function) -> bool:
    """Free the buffers that went into a loop instead of those that came out.

    Possible where a class of values joined by the loop's edges holds only operands,
    its own arguments, and results that are freed in the same block or unused, and as
    many distinct operands as frees.
    """
    for operation in list(function.walk()):
        if not operation.regions or not operation.results:
            continue
        for members in _classes(operation):
            if _retarget(function, operation, members):
                return True
    return False


def _classes(operation: Operation) -> list[list[Value]]:
    group: dict[Value, set[Value]] = {}
    for edge in Interfaces().edges(operation) or ():
        for number, target in enumerate(edge.targets):
            source = edge.carrier.operands[edge.first + number]
            if not source.is_buffer:
                continue
            joined = group.get(source, {source}) | group.get(target, {target})
            for value in joined:
                group[value] = joined
    unique = {id(members): members for members in group.values()}
    return [sorted(m, key=lambda v: v.name) for m in unique.values()]


def _retarget(function: Function, loop: Operation, members: list[Value]) -> bool:
    operands: list[Value] = []
    frees: list[Operation] = []
    for value in members:
        if value in loop.operands:
            operands.append(value)
        elif value.owner is loop:
            uses = all_uses(function, value)
            if any(u.kind != "dealloc" or u.block is not loop.block for u in uses):
                return False
            frees += uses
        elif not (value.is_argument and value.block.region in loop.regions):
            return False
    outer = [v for v in operands if not _freed_here(function, v)]
    if not frees or len(outer) != len(operands) or len(operands) != len(frees):
        return False
    for free, value in zip(frees, operands, strict=True):
        free.operands[0] = value
    return True


def _freed_here(function: Function, value: Value) -> bool:
    return any(op.kind == "dealloc" for op in all_uses(function, value))
