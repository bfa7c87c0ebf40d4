"""Values of one computation: what each instruction creates, forwards and reads.

A scheduler orders one computation at a time and needs no more than this: which
storage appears at which instruction, and which instructions read it. Loops forward
the storage of their operand (they run in place); calls and conditionals create
their results.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc` (the rules of forwarding).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.shape import Shape

_FORWARD_ALL: Final = frozenset(
    {
        "add-dependency",
        "all-reduce-done",
        "bitcast",
        "domain",
        "opt-barrier",
        "while",
    }
)
_FORWARD_ELEMENTS: Final = frozenset({"async-update", "copy"})
_DONE_ELEMENT: Final = {
    "copy-done": 0,
    "recv-done": 0,
    "all-gather-done": 1,
    "collective-permute-done": 1,
    "async-done": 1,
}
_START_FORWARDS: Final = {
    "copy-start": 1,
    "send": 0,
    "all-gather-start": 0,
    "collective-permute-start": 0,
    "async-start": 0,
}
NO_STORAGE: Final = frozenset({"parameter", "constant"})
"""Opcodes whose storage is not made when they are scheduled."""


class LocalValues:
    """The values of a computation and where they are read.

    Attributes:
        instructions: in order of insertion; the positions here are the dense
            numbers used by everything else.
        number: instruction to position.
        bytes: per value, its size.
        definer: per value, the position of the instruction that creates it.
        defined: per instruction, the values that it creates.
        made: per instruction, bytes of storage that it creates (none for parameters
            and constants).
        fixed: per value, whether its storage is there whatever the order.
        held: per instruction, the values found anywhere in its result, each once.
        read: per instruction, the values that it reads, each once. A
            get-tuple-element reads the index table and the element it selects only.

    Linear in instructions plus result nodes.
    """

    __slots__ = (
        "bytes",
        "computation",
        "defined",
        "definer",
        "fixed",
        "held",
        "instructions",
        "made",
        "number",
        "read",
    )

    def __init__(self, computation: Computation, pointer_bytes: int = 8) -> None:
        self.computation = computation
        self.instructions: list[Instruction] = computation.instructions
        self.number = {x: i for i, x in enumerate(self.instructions)}
        self.bytes: list[int] = []
        self.definer: list[int] = []
        self.defined: list[tuple[int, ...]] = [()] * len(self.instructions)
        self.fixed: list[bool] = []
        self.made: list[int] = [0] * len(self.instructions)
        self.held: list[tuple[int, ...]] = [()] * len(self.instructions)
        self.read: list[tuple[int, ...]] = [()] * len(self.instructions)
        nodes: dict[Instruction, tuple[int, ...]] = {}
        for x in _operands_first(computation):
            i = self.number[x]
            first = len(self.bytes)
            nodes[x] = self._flow(x, nodes, pointer_bytes)
            self.defined[i] = tuple(range(first, len(self.bytes)))
            is_fixed = x.opcode in NO_STORAGE
            self.fixed.extend([is_fixed] * len(self.defined[i]))
            if not is_fixed:
                self.made[i] = sum(self.bytes[first:])
            self.held[i] = _unique(nodes[x])
            self.read[i] = _reads(x, nodes)

    def use_counts(self) -> list[int]:
        """Per value: instructions that read it, one more if the root holds it."""
        counts = [0] * len(self.bytes)
        for values in self.read:
            for v in values:
                counts[v] += 1
        for v in self.held[self.number[self.computation.root]]:
            counts[v] += 1
        return counts

    def _flow(
        self,
        x: Instruction,
        nodes: dict[Instruction, tuple[int, ...]],
        pointer_bytes: int,
    ) -> tuple[int, ...]:
        """Values at every node of the result, in pre-order."""
        forwarded = forwarded_values(x, nodes)
        result: list[int] = []
        shapes = _node_shapes(x.shape)
        me = self.number[x]
        for k, shape in enumerate(shapes):
            value = forwarded[k] if k < len(forwarded) else None
            if value is None:
                value = len(self.bytes)
                self.bytes.append(shape.byte_size(pointer_bytes))
                self.definer.append(me)
            result.append(value)
        return tuple(result)


def forwarded_values(
    x: Instruction, nodes: dict[Instruction, tuple[int, ...]]
) -> list[int | None]:
    """Per node of the result, the value that is passed on, or None for a new one.

    `nodes` holds the values of the operands, in pre-order. The list may be shorter
    than the result has nodes: what is left out is new.
    """
    opcode = x.opcode
    if opcode == "tuple":
        found: list[int | None] = [None]
        for operand in x.operands:
            found.extend(nodes[operand])
        return found
    if not x.operands:
        return []
    source = x.operands[0]
    values = nodes[source]
    if opcode == "get-tuple-element":
        return list(_element(source.shape, values, x.tuple_index))
    if opcode in _FORWARD_ALL:
        return list(values) if len(values) == node_count(x.shape) else []
    if opcode in _FORWARD_ELEMENTS and len(values) == node_count(x.shape):
        return [None, *values[1:]]
    if opcode in _DONE_ELEMENT and source.shape.is_tuple:
        return _done(x, source.shape, values)
    if opcode in _START_FORWARDS and x.shape.is_tuple:
        return _start(x, nodes)
    return []


def _done(x: Instruction, shape: Shape, values: tuple[int, ...]) -> list[int | None]:
    element = _DONE_ELEMENT[x.opcode]
    if element >= len(shape.children):
        return []
    inner = list(_element(shape, values, element))
    if x.opcode == "recv-done":
        return [None, *inner]
    return list(inner) if len(inner) == node_count(x.shape) else []


def _start(
    x: Instruction, nodes: dict[Instruction, tuple[int, ...]]
) -> list[int | None]:
    """Starts pass their operands on in one element of their result."""
    element = _START_FORWARDS[x.opcode]
    if element >= len(x.shape.children):
        return []
    before = _element_starts(x.shape)[element]
    inside = x.shape.children[element]
    alone = x.opcode == "send" or len(x.operands) == 1
    if alone and node_count(inside) == len(nodes[x.operands[0]]):
        return [*([None] * before), *nodes[x.operands[0]]]
    found: list[int | None] = [None] * (before + 1)
    for child, operand in zip(inside.children, x.operands, strict=False):
        if node_count(child) != len(nodes[operand]):
            return []
        found.extend(nodes[operand])
    return found


def _element(shape: Shape, values: tuple[int, ...], index: int) -> tuple[int, ...]:
    """Values of one element of a tuple."""
    starts = _element_starts(shape)
    return values[starts[index] : starts[index + 1]]


def _reads(
    x: Instruction, nodes: dict[Instruction, tuple[int, ...]]
) -> tuple[int, ...]:
    if x.opcode == "get-tuple-element":
        table = nodes[x.operands[0]][0]
        return _unique((table, *nodes[x]))
    if len(x.operands) == 1:
        return _unique(nodes[x.operands[0]])
    return _unique(v for operand in x.operands for v in nodes[operand])


def _unique(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(values))


def _operands_first(computation: Computation) -> list[Instruction]:
    """The order of insertion when operands come first in it, else post order."""
    seen: set[Instruction] = set()
    for x in computation.instructions:
        for operand in x.operands:
            if operand not in seen:
                return computation.post_order()
        seen.add(x)
    return computation.instructions


def node_count(shape: Shape) -> int:
    """Nodes of a shape: 1 for an array, more for tuples."""
    return _element_starts(shape)[-1] if shape.is_tuple else 1


@lru_cache(maxsize=4096)
def _element_starts(shape: Shape) -> tuple[int, ...]:
    """Pre-order place of each element of a tuple, and one past the last."""
    starts = [
        place for place, (index, _) in enumerate(shape.nodes()) if len(index) == 1
    ]
    total = sum(1 for _ in shape.nodes())
    return (*starts, total)


def _node_shapes(shape: Shape) -> list[Shape]:
    if not shape.is_tuple:
        return [shape]
    return [node for _, node in shape.nodes()]
