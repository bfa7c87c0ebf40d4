"""Memory spaces into fusions: bodies repeat what their callers were given.

The pass decides nothing: it copies the memory space and the split configuration of a
fusion's operands and results to all positions of the same values inside, through
nested fusions and in-place updates. Where an operand and the result disagree about
one value, the result wins. Source: `xla/hlo/transforms/memory_space_propagation.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from msa.analysis.call_graph import CallGraph
from msa.analysis.dataflow import DataflowAnalysis
from msa.analysis.manager import AnalysisManager
from msa.errors import HloError, did_you_mean
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.layout import Layout
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex
from msa.passes.arguments import module_of


@dataclass(frozen=True, slots=True)
class PropagateMemorySpaces:
    """Give fusion bodies the memory spaces of their call sites."""

    name: ClassVar[str] = "memory-space-propagation"

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`."""
        return _Propagation(module, analyses.call_graph).run()


def propagate_memory_spaces(module: Module, computation: str = "") -> Module:
    """A copy of the module whose fusion bodies carry consistent memory spaces.

    Args:
        module: not changed.
        computation: name of one computation; the spaces of its own parameters and
            results are spread through it and the fusions inside, whatever its
            callers say. Empty for the whole module.

    Raises:
        HloError: there is no such computation.

    >>> import msa
    >>> module = msa.parse('''
    ... body {
    ...   p = f32[8]{0} parameter(0)
    ...   ROOT n = f32[8]{0} negate(p)
    ... }
    ... ENTRY e {
    ...   x = f32[8]{0:S(1)} parameter(0)
    ...   ROOT f = f32[8]{0} fusion(x), kind=kLoop, calls=body
    ... }''')
    >>> str(propagate_memory_spaces(module).computation("body").parameters[0].shape)
    'f32[8]{0:S(1)}'
    """
    module = module_of(module, "propagate_memory_spaces")
    names = [c.name for c in module.computations]
    if computation and computation not in names:
        raise HloError(
            f"there is no computation {computation!r}",
            where="propagate_memory_spaces",
            hint=did_you_mean(str(computation), names, "see module.computations"),
        )
    result = module.clone()
    propagation = _Propagation(result, CallGraph.run(result))
    if computation:
        propagation.run_on(result.computation(computation))
    else:
        propagation.run()
    return result


def check_memory_spaces(module: Module, *, inside_fusions: bool = False) -> list[str]:
    """Values whose positions are in different memory spaces, as text.

    Bitcasts may change the space; everything else that forwards a value may not. With
    `inside_fusions`, parameters and results of fusion bodies must agree with what
    their fusion reads and returns.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> check_memory_spaces(module)
    []
    """
    module = module_of(module, "check_memory_spaces")
    dataflow = _dataflow(module, CallGraph.run(module))
    problems = []
    for value in dataflow.values:
        spaces: dict[int, str] = {}
        for position in value.positions:
            shape = position.instruction.shape.subshape(position.index)
            if shape.is_array:
                spaces.setdefault(shape.memory_space, str(position))
        if len(spaces) > 1:
            places = ", ".join(f"{p} in {s}" for s, p in sorted(spaces.items()))
            problems.append(f"{value} is in several memory spaces: {places}")
    if inside_fusions:
        problems += _boundary_problems(module)
    return problems


def _boundary_problems(module: Module) -> Iterator[str]:
    """Fusions whose bodies say other spaces than their operands and result."""
    for computation in module.computations:
        for x in computation.instructions:
            if x.opcode != "fusion":
                continue
            body = x.fused_computation
            pairs = [(x, body.root), *zip(x.operands, body.parameters, strict=True)]
            for outside, inner in pairs:
                for index, leaf in outside.shape.leaves():
                    if not leaf.is_array:
                        continue
                    other = inner.shape.subshape(index).memory_space
                    if other != leaf.memory_space:
                        yield (
                            f"{outside.name} is in memory space {leaf.memory_space} "
                            f"at {x.name}, and {inner.name} inside is in {other}"
                        )


def _dataflow(module: Module, graph: CallGraph) -> DataflowAnalysis:
    return DataflowAnalysis.run(
        module, ssa_form=False, bitcast_defines_value=True, call_graph=graph
    )


class _Propagation:
    def __init__(self, module: Module, graph: CallGraph) -> None:
        self.module = module
        self.dataflow = _dataflow(module, graph)
        self.changed = False
        self.fusion_of: dict[Computation, Instruction] = {}
        for computation in module.computations:
            for instruction in computation.instructions:
                if instruction.opcode == "fusion":
                    self.fusion_of[instruction.fused_computation] = instruction

    def run(self) -> bool:
        for computation in self.module.computations:
            if computation in self.fusion_of:
                continue
            for fusion in computation.instructions:
                if fusion.opcode == "fusion":
                    self._fusion(fusion)
        return self.changed

    def run_on(self, computation: Computation) -> bool:
        """Spread what one computation's parameters and results say."""
        for x in (*computation.parameters, computation.root):
            for index, leaf in x.shape.leaves():
                if leaf.is_array:
                    self._propagate(index, x, leaf)
        return self.changed

    def _fusion(self, fusion: Instruction) -> None:
        body = fusion.fused_computation
        for number, operand in enumerate(fusion.operands):
            for index, leaf in operand.shape.leaves():
                if leaf.is_array:
                    self._propagate(index, body.parameters[number], leaf)
        for index, leaf in fusion.shape.leaves():
            if leaf.is_array:
                self._propagate(index, body.root, leaf)

    def _propagate(self, index: ShapeIndex, start: Instruction, source: Shape) -> None:
        visited: set[int] = set()
        work = [(start, index)]
        while work:
            instruction, at = work.pop()
            value = self.dataflow.unique_value_at(instruction, at)
            if value.id in visited:
                continue
            visited.add(value.id)
            for position in value.positions:
                self._color(position.instruction, position.index, source)
                work.extend(self._neighbours(position.instruction, position.index))
            for use in value.uses:
                if use.instruction.opcode == "fusion":
                    body = use.instruction.fused_computation
                    work.append(
                        (body.parameters[use.operand_number], use.operand_index)
                    )

    def _neighbours(
        self, instruction: Instruction, index: ShapeIndex
    ) -> Iterator[tuple[Instruction, ShapeIndex]]:
        """Where the same storage is found beyond the value's own positions."""
        if instruction.opcode == "dynamic-update-slice":
            yield instruction.operands[0], index
        if instruction.opcode == "fusion":
            yield instruction.fused_computation.root, index
        caller = self.fusion_of.get(instruction.computation)
        if caller is None or caller.computation not in self.fusion_of:
            return
        if instruction.is_root:
            yield caller, index
        if instruction.opcode == "parameter":
            yield caller.operands[instruction.parameter_number], index

    def _color(
        self, instruction: Instruction, index: ShapeIndex, source: Shape
    ) -> None:
        shape = instruction.shape.subshape(index)
        if not shape.is_array:
            return
        old = shape.as_array.layout or Layout.row_major(shape.rank)
        given = source.as_array.layout or Layout()
        new = replace(
            old,
            memory_space=given.memory_space,
            split_configs=given.split_configs[:1],
        )
        if new != old:
            instruction.shape = instruction.shape.with_subshape(
                index, shape.with_layout(new)
            )
            self.changed = True
