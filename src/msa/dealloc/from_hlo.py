"""Scheduled HLO as buffer IR: its allocations become explicit.

Every array of a program gets an `alloc` at its defining instruction, unless it must
share storage with an operand: then the operand's buffer is written in place. Loops
and branches become structured operations, calls are inlined, everything else becomes
an opaque operation with declared reads and writes. Placing deallocations in the
result and checking it on all paths is an independent look at liveness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msa.analysis.alias import AliasAnalysis
from msa.dealloc.errors import BufferIRError
from msa.dealloc.interpreter import HeapObject, Interpreter
from msa.dealloc.ir import (
    I1,
    MAX_NESTING,
    Block,
    BufferType,
    Function,
    Operation,
    Value,
)
from msa.errors import ScheduleError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex

Leaves = dict[ShapeIndex, Value]
Place = tuple[int, int, int]
"""(memory space, offset, bytes)."""


@dataclass(slots=True)
class LoweredProgram:
    """A function made from a module.

    Attributes:
        function: the entry computation with everything that it runs.
        origins: name of an allocated value → the HLO node that it holds first.
    """

    function: Function
    origins: dict[str, tuple[Instruction, ShapeIndex]] = field(default_factory=dict)


def lower_module(module: Module, alias: AliasAnalysis | None = None) -> LoweredProgram:
    """The entry computation of a scheduled module as buffer IR. Linear.

    Raises:
        ScheduleError: the module has no schedule.
        BufferIRError: computations nest too deeply.
    """
    if module.schedule is None:
        raise ScheduleError(
            f"module {module.name!r} has no schedule",
            hint="msa.schedule(module) makes one",
        )
    return _Lowering(module, alias or AliasAnalysis.run(module)).run()


class _Lowering:
    def __init__(self, module: Module, alias: AliasAnalysis) -> None:
        self.module = module
        self.alias = alias
        self.program = LoweredProgram(Function("main"))
        self.values: dict[Instruction, Leaves] = {}
        self.count = 0

    def run(self) -> LoweredProgram:
        function = self.program.function
        entry = function.region.add_block("entry")
        for parameter in self.module.entry.parameters:
            leaves: Leaves = {}
            for index, shape in _arrays(parameter.shape):
                leaves[index] = entry.add_argument(self._name(), _type(shape))
            self.values[parameter] = leaves
        result = self._computation(self.module.entry, entry, 0)
        returned = list(result.values())
        function.result_types = tuple(v.type for v in returned)
        entry.append(Operation("return", returned))
        return self.program

    def _name(self) -> str:
        self.count += 1
        return f"b{self.count}"

    # -- computations ------------------------------------------------------------------

    def _computation(
        self, computation: Computation, block: Block, depth: int
    ) -> Leaves:
        """Append a computation's instructions; the leaves of its root."""
        if depth > MAX_NESTING:
            raise BufferIRError(f"computations nest deeper than {MAX_NESTING}")
        schedule = self.module.schedule
        assert schedule is not None
        for instruction in schedule.sequence(computation):
            if instruction.opcode == "parameter":
                continue
            handler = _HANDLERS.get(instruction.opcode, _Lowering._opaque)
            handler(self, instruction, block, depth)
        return self.values[computation.root]

    def _bind(self, computation: Computation, number: int, leaves: Leaves) -> None:
        self.values[computation.parameters[number]] = leaves

    # -- instructions ------------------------------------------------------------------

    def _tuple(self, x: Instruction, block: Block, depth: int) -> None:
        leaves: Leaves = {}
        for number, operand in enumerate(x.operands):
            for index, value in self.values[operand].items():
                leaves[(number, *index)] = value
        self.values[x] = leaves

    def _element(self, x: Instruction, block: Block, depth: int) -> None:
        number = x.tuple_index
        self.values[x] = {
            index[1:]: value
            for index, value in self.values[x.operands[0]].items()
            if index and index[0] == number
        }

    def _same(self, x: Instruction, block: Block, depth: int) -> None:
        self.values[x] = self.values[x.operands[0]]

    def _bitcast(self, x: Instruction, block: Block, depth: int) -> None:
        source = self.values[x.operands[0]].get(())
        if source is None:
            self.values[x] = {}
            return
        view = Operation("view", [source], [source.type], names=[self._name()])
        block.append(view)
        self.values[x] = {(): view.results[0]}

    def _call(self, x: Instruction, block: Block, depth: int) -> None:
        callee = x.called_computations[0]
        for number, operand in enumerate(x.operands):
            self._bind(callee, number, self.values[operand])
        self.values[x] = self._computation(callee, block, depth + 1)

    def _while(self, x: Instruction, block: Block, depth: int) -> None:
        body, condition = x.called_computations
        inits = self.values[x.operands[0]]
        indices = list(inits)
        loop = Operation(
            "while",
            list(inits.values()),
            [v.type for v in inits.values()],
            names=[self._name() for _ in indices],
        )
        block.append(loop)
        before, after = (loop.add_region().add_block("entry") for _ in range(2))
        carried = self._arguments(before, inits)
        self._bind(condition, 0, carried)
        self._computation(condition, before, depth + 1)
        flag = Operation("constant", (), [I1], names=[self._name()])
        flag.attributes["value"] = 1
        before.append(flag)
        before.append(Operation("condition", [flag.results[0], *carried.values()]))
        inner = self._arguments(after, inits)
        self._bind(body, 0, inner)
        result = self._computation(body, after, depth + 1)
        after.append(Operation("yield", [result[i] for i in indices]))
        self.values[x] = dict(zip(indices, loop.results, strict=True))

    def _arguments(self, block: Block, like: Leaves) -> Leaves:
        return {
            index: block.add_argument(self._name(), value.type)
            for index, value in like.items()
        }

    def _conditional(self, x: Instruction, block: Block, depth: int) -> None:
        """Branches as a chain of ifs, the last branch in the last else."""
        indices = [index for index, _ in _arrays(x.shape)]
        types = [_type(x.shape.subshape(i)) for i in indices]
        branches = x.called_computations
        outer: Operation | None = None
        here, level = block, depth
        for number, branch in enumerate(
            branches[:-1] if len(branches) > 1 else branches
        ):
            flag = Operation("constant", (), [I1], names=[self._name()])
            flag.attributes["value"] = 1
            here.append(flag)
            names = [self._name() for _ in indices]
            test = Operation("if", [flag.results[0]], types, names=names)
            here.append(test)
            if outer is None:
                self.values[x] = dict(zip(indices, test.results, strict=True))
            else:
                here.append(Operation("yield", list(test.results)))
            outer = test
            level += 1
            self._branch(test, branch, x.operands[number + 1], indices, level)
            here = test.add_region().add_block("entry")
            if number == len(branches) - 2 or len(branches) == 1:
                last = len(branches) - 1
                self._fill(here, branches[last], x.operands[last + 1], indices, level)

    def _branch(
        self,
        test: Operation,
        branch: Computation,
        operand: Instruction,
        indices: Sequence[ShapeIndex],
        depth: int,
    ) -> None:
        block = test.add_region().add_block("entry")
        self._fill(block, branch, operand, indices, depth)

    def _fill(
        self,
        block: Block,
        branch: Computation,
        operand: Instruction,
        indices: Sequence[ShapeIndex],
        depth: int,
    ) -> None:
        self._bind(branch, 0, self.values[operand])
        result = self._computation(branch, block, depth + 1)
        block.append(Operation("yield", [result[i] for i in indices]))

    def _copy_done(self, x: Instruction, block: Block, depth: int) -> None:
        """The source of an asynchronous copy is needed until it is done."""
        leaves = self.values[x.operands[0]]
        moved = [v for i, v in leaves.items() if i[:1] in ((0,), (1,))]
        self._use(x, block, moved, [])
        self.values[x] = {
            index[1:]: value for index, value in leaves.items() if index[:1] == (0,)
        }

    def _copy_start(self, x: Instruction, block: Block, depth: int) -> None:
        source = self.values[x.operands[0]]
        made = self._allocate(x, (0,), block)
        self._use(x, block, list(source.values()), [made])
        leaves: Leaves = {(0,): made}
        leaves.update({(1, *index): value for index, value in source.items()})
        self.values[x] = leaves

    def _opaque(self, x: Instruction, block: Block, depth: int) -> None:
        """Reads all operands; writes its results, in place where it must."""
        reads: dict[Value, None] = {}
        by_buffer: dict[int, Value] = {}
        for operand in dict.fromkeys(x.operands):
            for index, value in self.values[operand].items():
                reads[value] = None
                for buffer in self.alias.buffers_at(operand, index):
                    by_buffer.setdefault(buffer.id, value)
        leaves: Leaves = {}
        for index, _ in _arrays(x.shape):
            shared = next(
                (
                    by_buffer[buffer.id]
                    for buffer in self.alias.buffers_at(x, index)
                    if buffer.id in by_buffer
                ),
                None,
            )
            leaves[index] = (
                self._allocate(x, index, block) if shared is None else shared
            )
        self._use(x, block, list(reads), list(dict.fromkeys(leaves.values())))
        self.values[x] = leaves

    def _allocate(self, x: Instruction, index: ShapeIndex, block: Block) -> Value:
        shape = x.shape.subshape(index)
        alloc = Operation("alloc", (), [_type(shape)], names=[self._name()])
        block.append(alloc)
        self.program.origins[alloc.results[0].name] = (x, index)
        return alloc.results[0]

    def _use(
        self, x: Instruction, block: Block, reads: list[Value], writes: list[Value]
    ) -> None:
        if reads or writes:
            block.append(
                Operation(
                    "use",
                    [*reads, *writes],
                    attributes={"tag": x.name},
                    reads=range(len(reads)),
                    writes=range(len(reads), len(reads) + len(writes)),
                )
            )


_Handler = Callable[[_Lowering, Instruction, Block, int], None]
_HANDLERS: Mapping[str, _Handler] = {
    "tuple": _Lowering._tuple,
    "get-tuple-element": _Lowering._element,
    "bitcast": _Lowering._bitcast,
    "opt-barrier": _Lowering._same,
    "domain": _Lowering._same,
    "add-dependency": _Lowering._same,
    "call": _Lowering._call,
    "while": _Lowering._while,
    "conditional": _Lowering._conditional,
    "copy-start": _Lowering._copy_start,
    "copy-done": _Lowering._copy_done,
}


def _arrays(shape: Shape) -> Iterable[tuple[ShapeIndex, Shape]]:
    return ((index, leaf) for index, leaf in shape.leaves() if leaf.is_array)


def _type(shape: Shape) -> BufferType:
    """Buffers count bytes, so that a bitcast does not change the type."""
    return BufferType((shape.byte_size(),), "u8")


class PlacedInterpreter(Interpreter):
    """Also checks that no two live buffers share bytes of a memory space.

    `places` maps a value's name to where it lies; values without a place are free.
    """

    def __init__(
        self, function: Function, script: Sequence[int], places: Mapping[str, Place]
    ) -> None:
        super().__init__(function, script)
        self.places = places
        self.overlaps: list[tuple[str, str]] = []

    def _new(self, value: Value, *, stack: bool = False) -> HeapObject:
        place = self.places.get(value.name)
        if place is not None:
            space, offset, size = place
            for other in self.live:
                found = self.places.get(other.name)
                if (
                    found is not None
                    and found[0] == space
                    and found[1] < offset + size
                    and offset < found[1] + found[2]
                ):
                    self.overlaps.append((other.name, value.name))
        return super()._new(value, stack=stack)
