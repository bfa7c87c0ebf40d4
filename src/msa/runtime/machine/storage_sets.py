"""Which positions of a module share storage: one set per buffer of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msa.analysis.async_chains import bound_operands
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex
from msa.runtime.machine.faults import misplaced
from msa.runtime.machine.in_place import Pair, in_place_pairs

Location = tuple[Instruction, ShapeIndex]
PairsOf = Callable[[Instruction], list[Pair]]

_SAME: Final = frozenset(
    {"bitcast", "opt-barrier", "domain", "add-dependency", "all-reduce-done"}
)


def leaf_indices(instruction: Instruction) -> tuple[ShapeIndex, ...]:
    """Indices of the arrays in an instruction's shape."""
    shape = instruction.shape
    if not shape.is_tuple:
        return ((),) if shape.is_array else ()
    return tuple(index for index, leaf in shape.leaves() if leaf.is_array)


class StorageSets:
    """A union-find over the array positions of a module.

    Loops, branches, tuples, in-place operations and input/output aliases tie
    positions together; calls too, when a computation has a single call site.

    Args:
        module: a scheduled module.
        pairs: the in-place rule (replaced to inject faults).

    Near-linear in the number of positions.
    """

    __slots__ = ("_numbers", "_pairs", "_parent", "callers", "module")

    def __init__(self, module: Module, pairs: PairsOf = in_place_pairs) -> None:
        self.module = module
        self._pairs = pairs
        self._numbers: dict[Location, int] = {}
        self._parent: list[int] = []
        self.callers: dict[Computation, int] = {}
        embedded = module.embedded_computations()
        computations = [c for c in module.computations if c not in embedded]
        for computation in computations:
            for instruction in computation.instructions:
                self._count_callers(instruction)
                for index in leaf_indices(instruction):
                    self._numbers[instruction, index] = len(self._parent)
                    self._parent.append(len(self._parent))
        for computation in computations:
            for instruction in computation.instructions:
                self._tie(instruction)
        root = module.entry.root
        parameters = module.entry.parameters
        for alias in module.aliases:
            parameter = parameters[alias.parameter_number]
            for index, rest in self._below(root, alias.output_index):
                self._union((root, index), (parameter, (*alias.parameter_index, *rest)))

    def has(self, instruction: Instruction, index: ShapeIndex) -> bool:
        """Whether a position lies in memory (those inside fusions do not)."""
        return (instruction, index) in self._numbers

    def set_of(self, instruction: Instruction, index: ShapeIndex) -> int:
        """Number of the set of a position."""
        return self._find(self._numbers[instruction, index])

    def spaces(self) -> dict[int, int]:
        """Memory space of each set.

        Raises:
            SanitizerError: positions that share storage are in different spaces.
        """
        spaces: dict[int, tuple[int, Location]] = {}
        for (instruction, index), number in self._numbers.items():
            space = instruction.shape.subshape(index).memory_space
            root = self._find(number)
            known, first = spaces.setdefault(root, (space, (instruction, index)))
            if known != space:
                raise misplaced(
                    instruction,
                    f"{position_text(*first)} in space {known} and "
                    f"{position_text(instruction, index)} in space {space} must share "
                    "storage",
                    kind="split storage",
                    space=space,
                    parties=(
                        position_text(*first),
                        position_text(instruction, index),
                    ),
                )
        return {root: space for root, (space, _) in spaces.items()}

    def locations(self) -> Iterable[tuple[Location, int]]:
        """Every position with its set."""
        for location, number in self._numbers.items():
            yield location, self._find(number)

    # -- building -----------------------------------------------------------------

    def _count_callers(self, instruction: Instruction) -> None:
        if instruction.opcode in ("async-update", "async-done"):
            return
        for callee in instruction.called_computations:
            self.callers[callee] = self.callers.get(callee, 0) + 1

    def _find(self, number: int) -> int:
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def _union(self, a: Location, b: Location) -> None:
        if a in self._numbers and b in self._numbers:
            x, y = self._find(self._numbers[a]), self._find(self._numbers[b])
            self._parent[max(x, y)] = min(x, y)

    def _below(
        self, instruction: Instruction, prefix: ShapeIndex
    ) -> Iterable[tuple[ShapeIndex, ShapeIndex]]:
        """Leaf indices under a node, whole and relative to it."""
        count = len(prefix)
        for index in leaf_indices(instruction):
            if index[:count] == prefix:
                yield index, index[count:]

    def _join(
        self,
        a: Instruction,
        a_prefix: ShapeIndex,
        b: Instruction,
        b_prefix: ShapeIndex,
    ) -> None:
        for index, rest in self._below(a, a_prefix):
            self._union((a, index), (b, (*b_prefix, *rest)))

    def _tie(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        operands = instruction.operands
        if opcode == "tuple":
            for i, operand in enumerate(operands):
                self._join(operand, (), instruction, (i,))
        elif opcode == "get-tuple-element":
            self._join(instruction, (), operands[0], (instruction.tuple_index,))
        elif opcode in _SAME or (opcode == "copy" and instruction.shape.is_tuple):
            self._join(instruction, (), operands[0], ())
        elif opcode == "copy-start":
            self._join(operands[0], (), instruction, (1,))
        elif opcode == "copy-done":
            self._join(instruction, (), operands[0], (0,))
        elif opcode == "send":
            self._join(operands[0], (), instruction, (0,))
        elif opcode == "recv-done":
            self._join(instruction, (0,), operands[0], (0,))
        elif opcode in ("all-gather-done", "collective-permute-done"):
            self._join(instruction, (), operands[0], (1,))
        elif opcode in ("all-gather-start", "collective-permute-start"):
            if len(operands) == 1:
                self._join(operands[0], (), instruction, (0,))
            else:
                for i, operand in enumerate(operands):
                    self._join(operand, (), instruction, (0, i))
        elif instruction.called_computations:
            self._tie_calls(instruction)
        for number, index, output in self._pairs(instruction):
            self._join(instruction, output, operands[number], index)

    def _tie_calls(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        callees = instruction.called_computations
        operands = instruction.operands
        single = all(self.callers.get(callee, 0) <= 1 for callee in callees)
        if opcode == "while":
            body, condition = callees
            self._join(instruction, (), operands[0], ())
            if single:
                self._join(instruction, (), body.root, ())
                self._join(instruction, (), body.parameters[0], ())
                self._join(instruction, (), condition.parameters[0], ())
        elif opcode == "conditional" and single:
            for i, branch in enumerate(callees):
                self._join(instruction, (), branch.root, ())
                self._join(operands[1 + i], (), branch.parameters[0], ())
        elif opcode == "call" and single:
            self._join(instruction, (), callees[0].root, ())
            for operand, parameter in zip(operands, callees[0].parameters, strict=True):
                self._join(operand, (), parameter, ())
        elif opcode == "async-start":
            self._join(callees[0].root, (), instruction, (1,))
            self._tie_bound(instruction)
        elif opcode == "async-update":
            self._join(operands[0], (0,), instruction, (0,))
            self._join(callees[0].root, (), instruction, (1,))
            self._tie_bound(instruction)
        elif opcode == "async-done":
            self._join(instruction, (), callees[0].root, ())

    def _tie_bound(self, instruction: Instruction) -> None:
        """Operands bound so far are the state's, and the computation's parameters."""
        parameters = instruction.called_computations[0].parameters
        bound = bound_operands(instruction)
        for i, (operand, parameter) in enumerate(zip(bound, parameters, strict=False)):
            self._join(operand, (), instruction, (0, i))
            self._join(operand, (), parameter, ())


def position_text(instruction: Instruction, index: ShapeIndex) -> str:
    """`name{0,1}`, or `name{}` for the whole."""
    return f"{instruction.name}{{{','.join(map(str, index))}}}"
