"""Control edges of structured operations, and interfaces of custom ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msa.dealloc.ir import Block, Operation, Region, Value


@dataclass(frozen=True, slots=True)
class RegionEdge:
    """Values that flow from the parent or a region to the parent or a region.

    Attributes:
        source, target: number of a region, or None for the parent.
        carrier: whose operands are passed: the operation or a terminator of `source`.
        first: operand number of the first value passed.
        targets: values of the target, in the order of the operands.

    >>> from msa.dealloc import Interfaces, parse_function
    >>> function = parse_function('''
    ... func @f(%c: i1) {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   %s = if %c : buf<4xf32> {
    ...     yield %a
    ...   } else {
    ...     yield %a
    ...   }
    ...   return
    ... }''')
    >>> [op] = [op for op in function.walk() if op.regions]
    >>> len(Interfaces().edges(op))
    4
    """

    source: int | None
    target: int | None
    carrier: Operation
    first: int
    targets: tuple[Value, ...]

    def operand(self, target: Value) -> tuple[int, Value]:
        """Operand number and value passed to one of the targets."""
        number = self.first + self.targets.index(target)
        return number, self.carrier.operands[number]


BuildDealloc = Callable[[Value], Operation]
BuildClone = Callable[[Value], Operation]


@dataclass(frozen=True, slots=True)
class Interfaces:
    """What custom operations can do.

    Attributes:
        dealloc, clone: kind of the allocating operation → builder of the matching
            free and copy; built-in allocations have plain ones.
        branches: kind of a structured operation → its region edges.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> [Interfaces().edges(op) for op in function.walk() if op.regions]
    []
    """

    dealloc: dict[str, BuildDealloc] = field(default_factory=dict)
    clone: dict[str, BuildClone] = field(default_factory=dict)
    branches: dict[str, Callable[[Operation], list[RegionEdge]]] = field(
        default_factory=dict
    )

    def edges(self, operation: Operation) -> list[RegionEdge] | None:
        """Region edges; None when the operation's kind is not known."""
        finder = _EDGES.get(operation.kind) or self.branches.get(operation.kind)
        return None if finder is None else finder(operation)


def _terminators(region: Region, kind: str) -> list[Operation]:
    return [
        block.terminator
        for block in region.blocks
        if block.operations and block.terminator.kind == kind
    ]


def _for(op: Operation) -> list[RegionEdge]:
    body = op.regions[0]
    carried, results = tuple(body.entry.arguments[1:]), tuple(op.results)
    edges = [
        RegionEdge(None, 0, op, 3, carried),
        RegionEdge(None, None, op, 3, results),
    ]
    for end in _terminators(body, "yield"):
        edges.append(RegionEdge(0, 0, end, 0, carried))
        edges.append(RegionEdge(0, None, end, 0, results))
    return edges


def _while(op: Operation) -> list[RegionEdge]:
    before, after = op.regions
    first, second = tuple(before.entry.arguments), tuple(after.entry.arguments)
    edges = [RegionEdge(None, 0, op, 0, first)]
    for end in _terminators(before, "condition"):
        edges.append(RegionEdge(0, 1, end, 1, second))
        edges.append(RegionEdge(0, None, end, 1, tuple(op.results)))
    edges += [RegionEdge(1, 0, end, 0, first) for end in _terminators(after, "yield")]
    return edges


def _if(op: Operation) -> list[RegionEdge]:
    edges = []
    for number, region in enumerate(op.regions):
        edges.append(RegionEdge(None, number, op, 1, ()))
        edges += [
            RegionEdge(number, None, end, 0, tuple(op.results))
            for end in _terminators(region, "yield")
        ]
    if len(op.regions) == 1:
        edges.append(RegionEdge(None, None, op, 1, ()))
    return edges


def _parallel(op: Operation) -> list[RegionEdge]:
    ends = _terminators(op.regions[0], "yield")
    return [
        RegionEdge(None, 0, op, len(op.operands), ()),
        *(RegionEdge(0, None, end, 0, ()) for end in ends),
    ]


_EDGES = {"for": _for, "while": _while, "if": _if, "parallel": _parallel}


def region_number(block: Block) -> int:
    """Number of a block's region in the operation around it."""
    parent = block.region.parent
    assert parent is not None
    return parent.regions.index(block.region)
