"""The cost analysis: a property map per instruction.

Source: `xla/service/hlo_cost_analysis.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from msa.analysis.costs.fusion import fusion_costs, read_bytes
from msa.analysis.costs.options import CostOptions
from msa.analysis.costs.properties import (
    OUT,
    Properties,
    count,
    operand_key,
    output_key,
    single,
    utilization_key,
)
from msa.analysis.costs.rules import ELEMENTWISE, RULES, TRANSCENDENTAL
from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.layout import Layout
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex

_CALLING: Final = frozenset({"call", "async-start", "while", "conditional", "fusion"})
_NO_TIME: Final = frozenset({"call", "while", "conditional"})
_INT64_MAX: Final = 2**63 - 1


class InstructionCosts:
    """Operations and bytes of every instruction of a module.

    All figures are single-precision numbers. A loop counts one iteration; unknown
    custom calls count -1.

    Attributes:
        module: the module.
        options: the settings.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[10,5] parameter(0)
    ...   b = f32[5,30] parameter(1)
    ...   ROOT d = f32[10,30] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''')
    >>> costs = InstructionCosts.run(module)
    >>> root = module.entry.root
    >>> costs.flops(root), costs.bytes_accessed(root), costs.operand_bytes(root, 1)
    (3000.0, 2000.0, 600.0)
    """

    __slots__ = (
        "_parts",
        "_properties",
        "_read",
        "_sizes",
        "_totals",
        "module",
        "options",
    )

    def __init__(self, module: Module, options: CostOptions) -> None:
        self.module = module
        self.options = options
        self._properties: dict[Instruction, Properties] = {}
        self._totals: dict[Computation, Properties] = {}
        # Of computations whose totals nobody has asked for yet, in order.
        self._parts: dict[Computation, list[Properties]] = {}
        self._read: dict[Instruction, int] = {}
        self._sizes: dict[Shape, int] = {}

    @classmethod
    def run(
        cls, module: Module, *, options: CostOptions | None = None
    ) -> InstructionCosts:
        """Analyse all computations, callees first; linear.

        Raises:
            HloError: the module is malformed (a cycle, a missing callee).
        """
        costs = cls(module, options or CostOptions())
        for computation in module.computation_post_order():
            costs._analyse(computation)
        return costs

    # -- reading -------------------------------------------------------------

    def properties(self, instruction: Instruction) -> Properties:
        """All properties of an instruction.

        Raises:
            HloError: it was added after the analysis.
        """
        try:
            return self._properties[instruction]
        except KeyError:
            raise HloError(
                f"{instruction.name} has not been analysed",
                hint="run the cost analysis again after a pass",
            ) from None

    def totals(self, computation: Computation) -> Properties:
        """Sums of all properties over a computation; added up when first asked for."""
        known = self._totals.get(computation)
        if known is not None:
            return known
        parts = self._parts.pop(computation, None)
        if parts is None:
            raise HloError(f"{computation.name} has not been analysed")
        totals = self._totals[computation] = Properties()
        for part in parts:
            totals.add(part)
        return totals

    def flops(self, instruction: Instruction) -> float:
        """Floating-point operations."""
        return self.properties(instruction).flops

    def transcendentals(self, instruction: Instruction) -> float:
        """Transcendental operations."""
        return self.properties(instruction).transcendentals

    def bytes_accessed(self, instruction: Instruction) -> float:
        """Bytes read and written."""
        return self.properties(instruction).bytes_accessed

    def operand_bytes(
        self, instruction: Instruction, number: int, index: ShapeIndex = ()
    ) -> float:
        """Bytes read of a node of an operand."""
        return self.properties(instruction).keyed.get(operand_key(number, index), 0.0)

    def output_bytes(self, instruction: Instruction, index: ShapeIndex = ()) -> float:
        """Bytes written to a node of the result."""
        return self.properties(instruction).keyed.get(output_key(index), 0.0)

    def moved_elements(
        self, instruction: Instruction
    ) -> Iterator[tuple[int, Shape, float]]:
        """Arrays in tuples that are read or written: operand or -1, shape, bytes.

        Linear in what is moved, not in the width of the tuples.
        """
        operands = instruction.operands
        for (kind, number, index), size in self.properties(instruction).keyed.items():
            if kind == "out":
                shape = instruction.shape
            elif kind == "operand" and number < len(operands):
                shape = operands[number].shape
            else:
                continue
            if size > 0.0 and shape.is_tuple and index and shape.has_index(index):
                leaf = shape.subshape(index)
                if leaf.is_array:
                    yield number, leaf, size

    def optimal_seconds(self, instruction: Instruction) -> float:
        """Time of the slowest resource by `CostOptions.per_second_rates`."""
        return self.properties(instruction).optimal_seconds

    def operand_utilization(
        self, instruction: Instruction, number: int, index: ShapeIndex = ()
    ) -> float:
        """How often an operand is read, relative to its size."""
        return self.properties(instruction)[utilization_key(number, index)]

    def bytes_read(
        self, instruction: Instruction, memory_space: int | None = None
    ) -> int:
        """Bytes read of operands in a memory space (None: in all)."""
        return sum(
            as_integer(self.operand_bytes(instruction, i, index))
            for i, operand in enumerate(instruction.operands)
            for index, leaf in operand.shape.leaves()
            if _in_space(leaf, memory_space)
        )

    def bytes_written(
        self, instruction: Instruction, memory_space: int | None = None
    ) -> int:
        """Bytes written to results in a memory space (None: in all)."""
        return sum(
            as_integer(self.output_bytes(instruction, index))
            for index, leaf in instruction.shape.leaves()
            if _in_space(leaf, memory_space)
        )

    # -- after edits ---------------------------------------------------------

    def remove_instruction(self, instruction: Instruction) -> None:
        """Take an instruction's share out of its computation's totals."""
        old = self._properties.pop(instruction, None)
        if old is not None:
            self.totals(instruction.computation).subtract(old)

    def revisit_instruction(self, instruction: Instruction) -> None:
        """Recompute one instruction after it was edited."""
        self.remove_instruction(instruction)
        self._sizes.clear()
        p = self._visit(instruction)
        self._properties[instruction] = p
        self.totals(instruction.computation).add(p)

    # -- computing -----------------------------------------------------------

    def size(self, shape: Shape) -> int:
        """Bytes of a shape; 0 if it has no layout."""
        known = self._sizes.get(shape)
        if known is None:
            known = self.options.shape_size(shape) if _has_layout(shape) else 0
            self._sizes[shape] = known
        return known

    def read_bytes(self, x: Instruction) -> int:
        """Bytes that a fusion reads of a fused parameter."""
        known = self._read.get(x)
        if known is None:
            known = self._read[x] = read_bytes(self, x)
        return known

    def default(self, x: Instruction) -> Properties:
        """All operands read, the whole result written."""
        p = Properties()
        keyed = p.keyed
        size = self.size
        shape = x.shape
        if shape.is_tuple:
            out = sum(size(leaf) for _, leaf in shape.leaves())
        else:
            out = size(shape)
        keyed[OUT] = count(out)
        total = out
        for i, operand in enumerate(x.operands):
            part = size(operand.shape)
            total += part
            keyed[operand_key(i)] = count(part)
            keyed[utilization_key(i)] = 1.0
        p.bytes_accessed = count(total)
        return p

    def _analyse(self, computation: Computation) -> None:
        for parameter in computation.parameters:
            self.read_bytes(parameter)
        parts = []
        for x in computation.accept_order():
            p = self._visit(x)
            self._properties[x] = p
            parts.append(p)
        self._parts[computation] = parts

    def _visit(self, x: Instruction) -> Properties:
        opcode = x.opcode
        if opcode in ELEMENTWISE:
            p = self.default(x)
            elements = count(x.shape.element_count)
            if opcode in TRANSCENDENTAL:
                p.transcendentals = elements
            else:
                p.flops = elements
            timed = True
        elif opcode in _CALLING and x.called_computations:
            p = self._call(x)
            timed = opcode not in _NO_TIME
        else:
            p = self.default(x)
            rule = RULES.get(opcode)
            timed = True if rule is None else rule(self, x, p)
        if self.options.measured is not None:
            self.options.measured(x, p)
        if timed and self.options.per_second_rates:
            p.optimal_seconds = self._seconds(p)
        return p

    def _call(self, x: Instruction) -> Properties:
        opcode = x.opcode
        if opcode == "fusion":
            return fusion_costs(self, x)
        called = x.called_computations
        p = self.totals(called[0]).copy()
        for callee in called[1:] if opcode != "call" else ():
            if opcode == "while":
                p.add(self.totals(callee))
            else:
                p.take_larger(self.totals(callee))
        return p

    def _seconds(self, p: Properties) -> float:
        rates = self.options.per_second_rates
        latencies = self.options.min_latencies_seconds
        slowest = 0.0
        for name, value in p.items():
            rate = rates.get(name, 0.0)
            if rate and name != "optimal_seconds":
                slowest = max(slowest, value / rate, latencies.get(name, 0.0))
        return single(slowest)


def _has_layout(shape: Shape) -> bool:
    if shape.is_tuple:
        return all(
            leaf.as_array.layout is not None
            for _, leaf in shape.leaves()
            if leaf.is_array
        )
    return not shape.is_array or shape.as_array.layout is not None


def _in_space(leaf: Shape, memory_space: int | None) -> bool:
    if memory_space is None:
        return True
    layout: Layout | None = leaf.as_array.layout
    return layout is not None and layout.memory_space == memory_space


def as_integer(x: float) -> int:
    """A property as an integer: truncated, saturated, 0 for NaN."""
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return _INT64_MAX if x > 0 else -_INT64_MAX - 1
    return max(-_INT64_MAX - 1, min(_INT64_MAX, int(x)))
