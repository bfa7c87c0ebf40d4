"""Costs of fusions: intermediate results stay out of memory.

Source: `xla/service/hlo_cost_analysis.cc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.analysis.costs.properties import (
    OUT,
    Properties,
    count,
    operand_key,
    output_key,
    single,
    utilization_key,
)
from msa.analysis.costs.rules import gather_rule, scatter_rule
from msa.hlo.instruction import Instruction
from msa.hlo.shape import ShapeIndex

if TYPE_CHECKING:
    from msa.analysis.costs.costs import InstructionCosts


def fusion_costs(costs: InstructionCosts, fusion: Instruction) -> Properties:
    """Operations of the fused computation, and what crosses the fusion's border.

    Everything that the fused instructions state per operand is summed up too and
    then replaced for the operands and outputs that the fusion has.
    """
    body = fusion.fused_computation
    if fusion.attributes.get("kind") == "kCustom":
        for opcode, rule in (("gather", gather_rule), ("scatter", scatter_rule)):
            for inner in body.instructions:
                if inner.opcode == opcode:
                    p = costs.default(fusion)
                    rule(costs, inner, p)
                    return p
    p = costs.totals(body).copy()
    p.optimal_seconds = 0.0
    p.bytes_accessed = 0.0
    _write_outputs(costs, fusion, p)
    for inner in body.instructions:
        if inner.opcode == "constant" and inner.shape.element_count > 1:
            _access(p, costs.size(inner.shape))
    for i, parameter in enumerate(body.parameters):
        if parameter.shape.is_tuple:
            size = _read_tuple(costs, parameter, p, i)
        else:
            size = costs.read_bytes(parameter)
        _access(p, size)
        p.keyed[operand_key(i)] = count(size)
        p.keyed[utilization_key(i)] = 1.0
    return p


def _access(p: Properties, size: int) -> None:
    p.bytes_accessed = single(p.bytes_accessed + size)


def _write_outputs(costs: InstructionCosts, fusion: Instruction, p: Properties) -> None:
    root = fusion.fused_computation.root
    written: dict[ShapeIndex, float] = {}
    for index, shape in fusion.shape.nodes():
        if not shape.is_array:
            continue
        source = root
        if len(index) == 1 and root.opcode == "tuple":
            source = root.operands[index[0]]
        size = costs.size(shape)
        if source.opcode == "dynamic-update-slice":
            size = costs.size(source.operands[1].shape)
            costs.properties(source).keyed[utilization_key(0)] = 0.0
        _access(p, size)
        written[index] = p.keyed[output_key(index)] = count(size)
    if fusion.shape.is_tuple:
        _sum_tuples(fusion, written, p)


def _sum_tuples(
    fusion: Instruction, written: dict[ShapeIndex, float], p: Properties
) -> None:
    """A tuple node counts what its elements count."""
    nodes = [index for index, shape in fusion.shape.nodes() if shape.is_tuple]
    sums = dict.fromkeys(nodes, 0.0)
    for index, size in written.items():
        sums[index[:-1]] = single(sums[index[:-1]] + size)
    for index in reversed(nodes):
        if index:
            sums[index[:-1]] = single(sums[index[:-1]] + sums[index])
    for index, size in sums.items():
        p.keyed[output_key(index)] = size
    p.keyed.setdefault(OUT, 0.0)


def _read_tuple(
    costs: InstructionCosts, parameter: Instruction, p: Properties, number: int
) -> int:
    total = 0
    # Elements by number, so that wide tuples are walked once.
    readers: dict[Instruction, dict[int, Instruction]] = {}
    for index, _ in parameter.shape.leaves():
        source = parameter
        for element in index:
            if source not in readers:
                found: dict[int, Instruction] = {}
                for user in source._users:
                    if user.opcode == "get-tuple-element":
                        found.setdefault(user.tuple_index, user)
                readers[source] = found
            source = readers[source].get(element, source)
        size = costs.read_bytes(source)
        p.keyed[operand_key(number, index)] = count(size)
        total += size
    return total


_SLICING = frozenset({"slice", "dynamic-slice", "dynamic-update-slice"})


def read_bytes(costs: InstructionCosts, x: Instruction) -> int:
    """Bytes that a fusion reads of a fused parameter (or an element of one).

    Slices read what they keep, updated operands nothing, all others everything,
    once. Computed callees first, so nested fusions are known already.
    """
    total = 0
    seen = False
    whole = costs.size(x.shape)
    for user in x._users:
        opcode = user.opcode
        if opcode in _SLICING:
            part = _sliced(costs, x, user)
            if part is not None:
                total += part
                continue
        elif opcode in ("broadcast", "reshape"):
            total += whole
            continue
        elif opcode == "fusion":
            total += _read_through(costs, x, user)
            continue
        if not seen:
            seen = True
            total += whole
    return total


def _sliced(costs: InstructionCosts, x: Instruction, user: Instruction) -> int | None:
    """Bytes that a slicing user reads, None if it reads everything."""
    if user.opcode == "slice":
        return costs.size(user.shape)
    if user.operands[0] is not x:
        return None
    return costs.size(user.shape) if user.opcode == "dynamic-slice" else 0


def _read_through(costs: InstructionCosts, x: Instruction, nested: Instruction) -> int:
    """Bytes read by a nested fusion, which may only hand the operand to slices."""
    total = 0
    body = nested.fused_computation
    for slot in nested.operand_indices(x):
        parameter = body.parameters[slot]
        root = body.root
        is_simple = not root.operands or root.operands[0] is parameter
        seen_whole = seen_nested = False
        for user in nested._users:
            if is_simple and user.opcode in _SLICING:
                part = _sliced(costs, nested, user)
                if part is not None:
                    total += part
                elif not seen_whole:
                    seen_whole = True
                    total += costs.size(nested.shape)
            elif not seen_nested:
                seen_nested = True
                total += costs.read_bytes(parameter)
    return total
