"""Returned buffers are owned by the caller: fresh, distinct, nobody else's."""

from __future__ import annotations

from msa.dealloc.edges import Interfaces
from msa.dealloc.flow import UnknownOps, ValueFlow
from msa.dealloc.ir import HEAP, Function, Operation, Value


def own_returns(
    function: Function, interfaces: Interfaces, unknown_ops: UnknownOps
) -> list[Operation]:
    """Clone returned buffers that are not the function's own alone; the clones.

    A value is returned as it is when it stands for exactly one object: it has one
    source, an allocation directly in the function's region, and no earlier operand
    of the same return has that source.
    """
    backwards = ValueFlow.run(function, interfaces, unknown_ops).sources()
    clones: list[Operation] = []
    for block in function.region.blocks:
        if not block.operations or block.terminator.kind != "return":
            continue
        terminator = block.terminator
        taken: set[Value] = set()
        for number, value in enumerate(terminator.operands):
            if not value.is_buffer:
                continue
            sources = _origins(value, backwards)
            (only,) = sources if len(sources) == 1 else (None,)
            if only is not None and only not in taken and _is_own(only, function):
                taken.add(only)
                continue
            clone = Operation("clone", [value], [value.type])
            clone.results[0].name = function.fresh_name("own")
            block.insert_before(terminator, clone)
            terminator.operands[number] = clone.results[0]
            clones.append(clone)
    return clones


def _origins(value: Value, backwards: dict[Value, list[Value]]) -> list[Value]:
    """Values without predecessors from which the value may come."""
    seen = {value}
    work = [value]
    origins = []
    while work:
        here = work.pop()
        before = backwards.get(here, [])
        if not before:
            origins.append(here)
        for source in before:
            if source not in seen:
                seen.add(source)
                work.append(source)
    return origins


def _is_own(value: Value, function: Function) -> bool:
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and owner.kind in HEAP
        and owner.block.region is function.region
    )
