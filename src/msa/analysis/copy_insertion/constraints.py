"""Which values must share storage, and where a copy would part them.

Source: `xla/hlo/analysis/hlo_alias_analysis.cc`,
`xla/service/copy_insertion.cc` (the places at which copies may be added).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from msa.analysis.dataflow import DataflowAnalysis
    from msa.analysis.in_place import InPlacePairs
    from msa.analysis.values import Value
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.shape import ShapeIndex

ROOT = -1
"""Operand number of a slot that stands for the result of a computation."""


class Slot(NamedTuple):
    """A place where a value is read and a copy may be put in between.

    Attributes:
        instruction: the reader, or the root of a computation.
        operand: operand number, or `ROOT` for the root's own result.
        part: which part of it.
    """

    instruction: Instruction
    operand: int
    part: ShapeIndex

    @property
    def source(self) -> Instruction:
        """The instruction whose result is read."""
        if self.operand == ROOT:
            return self.instruction
        return self.instruction.operands[self.operand]


class Constraint(NamedTuple):
    """Two values that must share storage unless a copy is put into the slot.

    Attributes:
        old, new: the value read at the slot and the one that takes its storage.
        slot: where a copy parts them; None where nothing may.
        kind: `alias`, `loop`, `branch` or `in place`.
        depth: loops around the slot.
    """

    old: Value
    new: Value
    slot: Slot | None
    kind: str
    depth: int


def find_constraints(
    dataflow: DataflowAnalysis, pairs: InPlacePairs, reachable: set[Computation]
) -> list[Constraint]:
    """All constraints of a module: those without a slot first, then inner loops'.

    Copies outside of loops run once, so the edges inside are settled first and the
    edges that lead into a loop give way. Linear in nodes.
    """
    depths = loop_depths(dataflow, reachable)
    found: list[Constraint] = []
    for computation in dataflow.module.computations:
        if computation not in reachable:
            continue
        depth = depths[computation]
        for x in computation.instructions:
            if x.opcode == "while":
                found.extend(_loop(dataflow, x, depth))
            elif x.opcode == "conditional":
                found.extend(_branches(dataflow, x, depth))
            else:
                found.extend(_in_place(dataflow, pairs, x, depth))
    found.extend(_program(dataflow))
    found.sort(key=lambda c: (c.slot is not None, -c.depth, c.kind != "alias"))
    return found


def loop_depths(
    dataflow: DataflowAnalysis, reachable: set[Computation]
) -> dict[Computation, int]:
    """Loops around each computation."""
    depths = dict.fromkeys(reachable, 0)
    for computation in reversed(dataflow.module.computation_post_order()):
        if computation not in reachable:
            continue
        for x in computation.instructions:
            for callee in x.called_computations:
                if callee in depths:
                    deeper = depths[computation] + (x.opcode == "while")
                    depths[callee] = max(depths[callee], deeper)
    return depths


def _pairs(
    dataflow: DataflowAnalysis, old: Instruction, new: Instruction
) -> Iterator[tuple[ShapeIndex, Value, Value]]:
    """Values at the same node of two results, where they differ."""
    for index, shape in new.shape.nodes():
        if shape.is_token:
            continue
        for a in dataflow.values_at(old, index):
            for b in dataflow.values_at(new, index):
                if a is not b:
                    yield index, a, b


def _loop(
    dataflow: DataflowAnalysis, loop: Instruction, depth: int
) -> Iterator[Constraint]:
    body, condition = loop.called_computations
    for computation in (condition, body):
        for parameter in computation.parameters:
            for _, a, b in _pairs(dataflow, parameter, loop):
                yield Constraint(a, b, None, "loop", depth)
    for index, a, b in _pairs(dataflow, body.root, loop):
        slot = Slot(body.root, ROOT, index)
        yield Constraint(a, b, slot, "loop", depth + 1)
    for index, a, b in _pairs(dataflow, loop.operands[0], loop):
        yield Constraint(a, b, Slot(loop, 0, index), "loop", depth)


def _branches(
    dataflow: DataflowAnalysis, conditional: Instruction, depth: int
) -> Iterator[Constraint]:
    for branch in conditional.called_computations:
        for index, a, b in _pairs(dataflow, branch.root, conditional):
            yield Constraint(a, b, Slot(branch.root, ROOT, index), "branch", depth)


def _in_place(
    dataflow: DataflowAnalysis, pairs: InPlacePairs, x: Instruction, depth: int
) -> Iterator[Constraint]:
    for (operand, index), output in pairs(x):
        for a in dataflow.values_at(x.operands[operand], index):
            for b in dataflow.values_at(x, output):
                if a is not b:
                    slot = Slot(x, operand, index)
                    yield Constraint(a, b, slot, "in place", depth)


def _program(dataflow: DataflowAnalysis) -> Iterator[Constraint]:
    module = dataflow.module
    root = module.entry.root
    for alias in module.aliases:
        parameter = module.entry.parameters[alias.parameter_number]
        for a in dataflow.values_at(root, alias.output_index):
            for b in dataflow.values_at(parameter, alias.parameter_index):
                if a is not b:
                    slot = Slot(root, ROOT, alias.output_index)
                    yield Constraint(a, b, slot, "alias", 0)
