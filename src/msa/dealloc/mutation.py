"""Writes through a name after the buffer was merged under another."""

from __future__ import annotations

from dataclasses import dataclass

from msa.dealloc.flow import ValueFlow
from msa.dealloc.ir import Function, Operation, Value


@dataclass(frozen=True, slots=True)
class AliasMutation:
    """A write that a copy at a merge may hide from another name.

    >>> AliasMutation("x", "a", "use").merged
    'x'
    """

    merged: str
    written: str
    operation: str

    def __str__(self) -> str:
        return (
            f"{self.operation} writes %{self.written}, which may share its buffer with "
            f"the merged %{self.merged}: a copy made at the merge does not see it"
        )


def writes_of(operation: Operation) -> list[Value]:
    """Buffers that an operation may write."""
    if operation.kind == "copy":
        return [operation.operands[1]]
    if operation.kind == "store":
        return [operation.operands[-1]]
    return [operation.operands[i] for i in operation.writes]


def find_alias_mutation(
    function: Function, marked: list[Value], flow: ValueFlow
) -> list[AliasMutation]:
    """Conservative: writes of a merged value, or of one that it may share.

    For each merged value: the names that reach the same object before the merge
    (everything upstream and what else that reaches), and those after it. A write to
    one side counts when the other side is read anywhere.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> from msa.dealloc.flow import ValueFlow
    >>> find_alias_mutation(function, [], ValueFlow.run(function))
    []
    """
    backwards = flow.sources()
    written: dict[Value, list[Operation]] = {}
    read: set[Value] = set()
    for operation in function.walk():
        targets = writes_of(operation)
        for value in targets:
            written.setdefault(value, []).append(operation)
        read.update(v for v in operation.used_values() if v not in targets)
        read.update(operation.operands[i] for i in operation.reads)
    arguments = set(function.arguments)
    found = []
    for value in marked:
        after = set(flow.resolve(value))
        origins = _upstream(value, backwards)
        before = {name for o in origins for name in flow.resolve(o)} - after
        for side, other in ((after, before), (before, after)):
            visible = other & (read | arguments)
            if not visible:
                continue
            for name in sorted(side & written.keys(), key=lambda v: v.name):
                operation = written[name][0]
                found.append(AliasMutation(value.name, name.name, operation.kind))
    return found


def _upstream(value: Value, backwards: dict[Value, list[Value]]) -> set[Value]:
    seen: set[Value] = set()
    work = list(backwards.get(value, []))
    while work:
        here = work.pop()
        if here not in seen and here is not value:
            seen.add(here)
            work.extend(backwards.get(here, []))
    return seen
