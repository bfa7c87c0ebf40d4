"""Logical buffers of one computation, and through which names they are reached.

A buffer is a node of an instruction's result that the instruction creates. Tuples,
get-tuple-elements, bitcasts and loops pass buffers on. A use is *direct* when the
value can be named again from its creator through get-tuple-elements and bitcasts
alone, seeing through tuples; every other use is *indirect* and pins the buffer.

Source: `xla/service/tuple_points_to_analysis.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msa.analysis.in_place import InPlacePairs
from msa.analysis.schedulers.local_values import forwarded_values
from msa.analysis.shape_nodes import node_number, shape_nodes
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape, ShapeIndex


class Use(NamedTuple):
    """An operand through which an instruction reads a buffer."""

    user: Instruction
    operand_number: int


class Buffer:
    """A logical buffer.

    Attributes:
        creator: the instruction that creates it.
        index: the node of its result.
        bytes: its size.
        counted: bytes that it adds while live: none for arguments and results, and
            none in host memory.
        live_out: part of the result of the computation.
        indirect: some use cannot be redirected to another creator.
        uses: who reads it.
        unfinished: distinct readers that have not run.
        writers: readers that write into it (updates in place, loops).
    """

    __slots__ = (
        "bytes",
        "counted",
        "creator",
        "index",
        "indirect",
        "live_out",
        "unfinished",
        "uses",
        "writers",
    )

    def __init__(self, creator: Instruction, index: ShapeIndex, size: int) -> None:
        self.creator = creator
        self.index = index
        self.bytes = size
        self.counted = size
        self.live_out = False
        self.indirect = False
        self.uses: list[Use] = []
        self.unfinished = 0
        self.writers: list[Instruction] = []


class Carried(NamedTuple):
    """A result that takes over the storage of an argument (along a loop, say)."""

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex


def carried_by(computation: Computation, is_loop_body: bool) -> list[Carried]:
    """What a computation writes over its arguments: a loop's state, donations."""
    if is_loop_body:
        shape = computation.root.shape
        return [Carried(index, 0, index) for index, _ in shape.leaves()]
    if not computation.is_entry:
        return []
    return [
        Carried(a.output_index, a.parameter_number, a.parameter_index)
        for a in computation.module.aliases
    ]


class Storage:
    """The buffers of a sequence of instructions.

    Attributes:
        buffers: all of them.
        defined: per instruction, numbers of the buffers that it creates.
        used: per instruction, numbers of the buffers that it reads, each once. A
            get-tuple-element reads the table of pointers only.

    Linear in instructions plus nodes of results.
    """

    __slots__ = ("_nodes", "_plain", "buffers", "defined", "used")

    def __init__(
        self,
        sequence: Sequence[Instruction],
        root: Instruction,
        size_of: Callable[[Shape], int] = Shape.byte_size,
        host_space: int | None = None,
    ) -> None:
        self.buffers: list[Buffer] = []
        self.defined: dict[Instruction, list[int]] = {}
        self.used: dict[Instruction, list[int]] = {}
        self._nodes: dict[Instruction, tuple[int, ...]] = {}
        # Per node, whether the value is reached through names that can be made again.
        self._plain: dict[Instruction, tuple[bool, ...]] = {}
        pairs = InPlacePairs()
        for x in sequence:
            self._read(x, pairs)
            self._create(x, size_of, host_space)
        for number in self._nodes[root]:
            buffer = self.buffers[number]
            buffer.live_out = True
            buffer.counted = 0

    def _read(self, x: Instruction, pairs: InPlacePairs) -> None:
        used: dict[int, None] = {}
        direct_user = x.opcode != "while"
        for k, operand in enumerate(x.operands):
            nodes = self._nodes[operand]
            plain = self._plain[operand]
            named = operand.opcode in ("bitcast", "get-tuple-element")
            for place, number in enumerate(nodes):
                if place and x.opcode == "get-tuple-element":
                    break  # reads the table only
                buffer = self.buffers[number]
                if number not in used:
                    used[number] = None
                    buffer.unfinished += 1
                buffer.uses.append(Use(x, k))
                if not direct_user or not (
                    buffer.creator is operand or (named and plain[place])
                ):
                    buffer.indirect = True
        self.used[x] = list(used)
        if x.opcode == "while":
            for number in used:
                self.buffers[number].writers.append(x)
            return
        for written, _ in pairs(x):
            operand = x.operands[written.operand_number]
            node = node_number(operand.shape, written.operand_index)
            if 0 <= node < len(self._nodes[operand]):
                self.buffers[self._nodes[operand][node]].writers.append(x)

    def _create(
        self, x: Instruction, size_of: Callable[[Shape], int], host: int | None
    ) -> None:
        forwarded = forwarded_values(x, self._nodes)
        table = shape_nodes(x.shape)
        nodes: list[int] = []
        plain: list[bool] = []
        created: list[int] = []
        passed_on = self._passed_on(x)
        for place, (index, shape) in enumerate(
            zip(table.indices, table.shapes, strict=True)
        ):
            number = forwarded[place] if place < len(forwarded) else None
            if number is None:
                number = len(self.buffers)
                buffer = Buffer(x, index, size_of(shape))
                if x.opcode == "parameter" or _is_on_host(shape, host):
                    buffer.counted = 0
                self.buffers.append(buffer)
                created.append(number)
                plain.append(True)
            else:
                plain.append(place < len(passed_on) and passed_on[place])
            nodes.append(number)
        self._nodes[x] = tuple(nodes)
        self._plain[x] = tuple(plain)
        self.defined[x] = created

    def _passed_on(self, x: Instruction) -> Sequence[bool]:
        """Per node of the result, whether what is forwarded stays plainly named."""
        if x.opcode == "bitcast":
            return self._plain[x.operands[0]]
        if x.opcode == "get-tuple-element":
            source = x.operands[0]
            part = shape_nodes(source.shape).element(x.tuple_index)
            return self._plain[source][part]
        if x.opcode == "tuple":
            return [True, *(p for o in x.operands for p in self._plain[o])]
        return ()

    def share(self, computation: Computation, carried: Iterable[Carried]) -> None:
        """Note which results are written over arguments."""
        root = computation.root
        for output, parameter_number, index in carried:
            parameter = computation.parameters[parameter_number]
            here = node_number(root.shape, output)
            there = node_number(parameter.shape, index)
            if here < 0 or there < 0:
                continue
            creator = self.buffers[self._nodes[root][here]].creator
            if creator.opcode != "parameter":
                self.buffers[self._nodes[parameter][there]].writers.append(creator)

    def nodes(self, x: Instruction) -> tuple[int, ...]:
        """Numbers of the buffers at every node of a result, in pre-order."""
        return self._nodes[x]


def _is_on_host(shape: Shape, host: int | None) -> bool:
    return host is not None and shape.is_array and shape.memory_space == host


def total_bytes(shape: Shape, size_of: Callable[[Shape], int]) -> int:
    """Bytes of a shape and everything in it, tables of pointers included."""
    return sum(size_of(node) for node in shape_nodes(shape).shapes)


def replace_in(numbers: list[int], old: int, new: int) -> None:
    """Put `new` in the place of `old`, if it is there."""
    numbers[:] = [new if n == old else n for n in numbers]


def distinct(uses: Iterable[Use]) -> int:
    """Number of distinct readers."""
    return len({use.user for use in uses})
