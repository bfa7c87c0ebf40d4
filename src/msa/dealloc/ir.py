"""A region/block IR of buffers: functions, regions, blocks, operations, values.

Functions hold one region; regions hold blocks; blocks hold operations, the last of
which is the terminator. Structured operations (`for`, `while`, `if`, `parallel`)
hold regions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msa.dealloc.errors import BufferIRError

TERMINATORS: Final = frozenset({"br", "cond_br", "return", "yield", "condition"})
STRUCTURED: Final = frozenset({"for", "while", "if", "parallel"})
VIEWS: Final = frozenset({"view", "cast", "subview"})
HEAP: Final = frozenset({"alloc", "clone", "call"})
MAX_NESTING: Final = 100
"""Structured operations may nest this deep; deeper programs are refused."""


@dataclass(frozen=True, slots=True)
class BufferType:
    """A buffer of a shape; None marks a dynamic size.

    >>> str(BufferType((2, None), "f32"))
    'buf<2x?xf32>'
    """

    shape: tuple[int | None, ...]
    dtype: str

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known."""
        return None not in self.shape

    @property
    def element_count(self) -> int:
        """Number of elements of a static buffer (a dynamic size counts one)."""
        count = 1
        for size in self.shape:
            count *= 1 if size is None else size
        return count

    def __str__(self) -> str:
        sizes = "".join("?x" if s is None else f"{s}x" for s in self.shape)
        return f"buf<{sizes}{self.dtype}>"


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A scalar such as `i1` or `index`.

    >>> str(ScalarType("i1"))
    'i1'
    """

    dtype: str

    def __str__(self) -> str:
        return self.dtype


Type = BufferType | ScalarType
I1: Final = ScalarType("i1")
INDEX: Final = ScalarType("index")


class Value:
    """The result of an operation, or an argument of a block.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> [v.name for v in function.values()]
    ['a']
    """

    __slots__ = ("index", "name", "owner", "type")

    def __init__(
        self, name: str, type_: Type, owner: Operation | Block, index: int
    ) -> None:
        self.name = name
        self.type = type_
        self.owner = owner
        self.index = index

    @property
    def is_buffer(self) -> bool:
        """Whether this is a buffer."""
        return isinstance(self.type, BufferType)

    @property
    def is_argument(self) -> bool:
        """Whether this is an argument of a block."""
        return isinstance(self.owner, Block)

    @property
    def block(self) -> Block:
        """The block in which the value comes into being."""
        if isinstance(self.owner, Block):
            return self.owner
        return self.owner.block

    def __repr__(self) -> str:
        return f"%{self.name}"


@dataclass(eq=False, slots=True)
class Successor:
    """A branch target with the values passed to its arguments."""

    block: Block
    arguments: list[Value]


class Operation:
    """One operation.

    Attributes:
        kind: `alloc`, `use`, `for` …
        operands, results, attributes, regions, successors: as usual.
        reads, writes: operand numbers that an opaque operation reads and writes.
        block: the block that holds it.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> next(iter(function.walk())).results[0].name
    'a'
    """

    __slots__ = (
        "attributes", "block", "kind", "operands", "reads", "regions", "results",
        "successors", "writes",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        *,
        names: Sequence[str] = (),
        attributes: dict[str, Any] | None = None,
        reads: Sequence[int] = (),
        writes: Sequence[int] = (),
    ) -> None:
        self.kind = kind
        self.operands = list(operands)
        self.attributes = dict(attributes or {})
        self.reads = tuple(reads)
        self.writes = tuple(writes)
        self.regions: list[Region] = []
        self.successors: list[Successor] = []
        self.block: Block = None  # type: ignore[assignment]  # set by the block
        self.results = [
            Value(names[i] if i < len(names) else "", type_, self, i)
            for i, type_ in enumerate(result_types)
        ]

    @property
    def is_terminator(self) -> bool:
        """Whether a block ends here."""
        return self.kind in TERMINATORS

    def add_region(self) -> Region:
        """A new region of this operation."""
        region = Region(self)
        self.regions.append(region)
        return region

    def used_values(self) -> Iterator[Value]:
        """Operands and everything passed to successors."""
        yield from self.operands
        for successor in self.successors:
            yield from successor.arguments

    def replace_uses(self, old: Value, new: Value) -> None:
        """Use `new` wherever this operation itself uses `old`."""
        self.operands = [new if v is old else v for v in self.operands]
        for successor in self.successors:
            successor.arguments = [new if v is old else v for v in successor.arguments]

    def remove(self) -> None:
        """Take the operation out of its block."""
        self.block.operations.remove(self)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.results}>"


class Block:
    """Arguments and operations; the last operation is the terminator.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> function.region.entry.name, function.region.entry.terminator.kind
    ('entry', 'return')
    """

    __slots__ = ("arguments", "name", "operations", "region")

    def __init__(self, name: str, region: Region) -> None:
        self.name = name
        self.region = region
        self.arguments: list[Value] = []
        self.operations: list[Operation] = []

    def add_argument(self, name: str, type_: Type) -> Value:
        """A new argument at the end."""
        value = Value(name, type_, self, len(self.arguments))
        self.arguments.append(value)
        return value

    def append(self, operation: Operation) -> Operation:
        """Add an operation at the end."""
        operation.block = self
        self.operations.append(operation)
        return operation

    def insert_before(self, place: Operation, operation: Operation) -> Operation:
        """Add an operation just before another of this block."""
        operation.block = self
        self.operations.insert(self.operations.index(place), operation)
        return operation

    def insert_after(self, place: Operation, operation: Operation) -> Operation:
        """Add an operation just after another of this block."""
        operation.block = self
        self.operations.insert(self.operations.index(place) + 1, operation)
        return operation

    @property
    def terminator(self) -> Operation:
        """The last operation."""
        if not self.operations:
            raise BufferIRError(f"block ^{self.name} is empty")
        return self.operations[-1]

    def __repr__(self) -> str:
        return f"^{self.name}"


class Region:
    """Ordered blocks; the first is the entry. `parent` is the operation around.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> len(function.region.blocks)
    1
    """

    __slots__ = ("blocks", "parent")

    def __init__(self, parent: Operation | None) -> None:
        self.parent = parent
        self.blocks: list[Block] = []

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]

    def add_block(self, name: str = "") -> Block:
        """A new block at the end."""
        block = Block(name or f"b{len(self.blocks)}", self)
        self.blocks.append(block)
        return block

    def predecessors(self) -> dict[Block, list[tuple[Operation, int]]]:
        """For each block, the terminators and successor numbers that lead to it."""
        found: dict[Block, list[tuple[Operation, int]]] = {b: [] for b in self.blocks}
        for block in self.blocks:
            if block.operations:
                for number, successor in enumerate(block.terminator.successors):
                    found[successor.block].append((block.terminator, number))
        return found


class Function:
    """A named region; its entry block's arguments are the parameters.

    Attributes:
        argument_attributes: one dict per parameter (`restrict` …).
        result_types: types of the returned values.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> function.name, [op.kind for op in function.walk()]
    ('f', ['alloc', 'use', 'return'])
    """

    __slots__ = ("_counter", "argument_attributes", "name", "region", "result_types")

    def __init__(self, name: str, result_types: Sequence[Type] = ()) -> None:
        self.name = name
        self.region = Region(None)
        self.result_types = tuple(result_types)
        self.argument_attributes: list[dict[str, Any]] = []
        self._counter = 0

    @property
    def arguments(self) -> list[Value]:
        """The parameters."""
        return self.region.entry.arguments

    def walk(self) -> Iterator[Operation]:
        """All operations, an operation before those in its regions."""
        stack: list[Operation] = _operations_reversed(self.region)
        while stack:
            operation = stack.pop()
            yield operation
            for region in reversed(operation.regions):
                stack.extend(_operations_reversed(region))

    def regions(self) -> Iterator[Region]:
        """All regions, outer ones first."""
        yield self.region
        for operation in self.walk():
            yield from operation.regions

    def uses(self) -> dict[Value, list[Operation]]:
        """Operations that use each value, in order of the walk."""
        found: dict[Value, list[Operation]] = {}
        for operation in self.walk():
            for value in dict.fromkeys(operation.used_values()):
                found.setdefault(value, []).append(operation)
        return found

    def values(self) -> Iterator[Value]:
        """All values: block arguments and results."""
        for region in self.regions():
            for block in region.blocks:
                yield from block.arguments
                for operation in block.operations:
                    yield from operation.results

    def fresh_name(self, base: str = "v") -> str:
        """A value name that the function does not use."""
        used = {value.name for value in self.values()}
        name = base
        while name in used:
            self._counter += 1
            name = f"{base}{self._counter}"
        return name

    def __str__(self) -> str:
        from msa.dealloc.printing import print_function

        return print_function(self)


class BufferModule:
    """Functions by name.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> list(BufferModule([function]).functions)
    ['f']
    """

    __slots__ = ("functions",)

    def __init__(self, functions: Sequence[Function] = ()) -> None:
        self.functions = {function.name: function for function in functions}

    def add(self, function: Function) -> Function:
        """Add a function (raises BufferIRError for a repeated name)."""
        if function.name in self.functions:
            raise BufferIRError(f"function @{function.name} is defined twice")
        self.functions[function.name] = function
        return function

    def __str__(self) -> str:
        return "\n".join(str(f) for f in self.functions.values())


def _operations_reversed(region: Region) -> list[Operation]:
    return [
        op for block in reversed(region.blocks) for op in reversed(block.operations)
    ]


def lift(operation: Operation, region: Region) -> Operation | None:
    """The ancestor of an operation (or itself) directly in a block of `region`."""
    here: Operation | None = operation
    while here is not None and here.block.region is not region:
        here = here.block.region.parent
    return here


def lift_block(block: Block, region: Region) -> Block | None:
    """The block of `region` that holds `block`, directly or nested."""
    if block.region is region:
        return block
    parent = block.region.parent
    found = None if parent is None else lift(parent, region)
    return None if found is None else found.block


def ancestors(region: Region) -> Iterator[Region]:
    """A region and those around it, innermost first."""
    here: Region | None = region
    while here is not None:
        yield here
        parent = here.parent
        here = None if parent is None else parent.block.region
