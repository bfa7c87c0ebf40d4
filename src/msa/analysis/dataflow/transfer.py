"""How each opcode forwards the values of its operands.

A rule reads the values at the operands and returns those at the result. Rules never
change values that the instruction defines itself.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msa.analysis.dataflow.async_transfer import (
    flow_async_done,
    flow_async_start,
    flow_async_update,
)
from msa.analysis.dataflow.definitions import is_in_place_permute
from msa.analysis.dataflow.merging import fit, merge, union
from msa.analysis.dataflow.parameters import flow_parameter
from msa.analysis.dataflow.state import FlowState, NodeSets
from msa.analysis.shape_nodes import node_count, node_number, shape_nodes
from msa.hlo.instruction import Instruction

Rule = Callable[[FlowState, Instruction], NodeSets]


def _whole(state: FlowState, x: Instruction) -> NodeSets:
    return fit(state.sets[x.operands[0].id], len(state.sets[x.id]))


def _copy(state: FlowState, x: Instruction) -> NodeSets:
    own = state.sets[x.id]
    if len(own) == 1:
        return own
    return (own[0], *fit(state.sets[x.operands[0].id], len(own))[1:])


def _tuple(state: FlowState, x: Instruction) -> NodeSets:
    own = state.sets[x.id]
    new = [own[0]]
    for operand in x.operands:
        new.extend(state.sets[operand.id])
    return fit(tuple(new), len(own))


def _get_tuple_element(state: FlowState, x: Instruction) -> NodeSets:
    source = x.operands[0]
    return _element(state.sets[source.id], source, x.tuple_index)


def _element(sets: NodeSets, source: Instruction, element: int) -> NodeSets:
    """Values at one element of a tuple-shaped instruction."""
    nodes = shape_nodes(source.shape)
    if not 0 <= element < len(nodes.starts) - 1:
        return ()
    return sets[nodes.starts[element] : nodes.starts[element + 1]]


def _place(state: FlowState, x: Instruction, parts: dict[int, NodeSets]) -> NodeSets:
    """The instruction's own values with whole subtrees put at the given places."""
    new = list(state.sets[x.id])
    for place, part in parts.items():
        if place >= 0:
            new[place : place + len(part)] = part
    return fit(tuple(new), len(state.sets[x.id]))


def _send(state: FlowState, x: Instruction) -> NodeSets:
    place = node_number(x.shape, (0,))
    return _place(state, x, {place: state.sets[x.operands[0].id]})


def _recv_done(state: FlowState, x: Instruction) -> NodeSets:
    source = x.operands[0]
    part = _element(state.sets[source.id], source, 0)
    return _place(state, x, {node_number(x.shape, (0,)): part})


def _copy_start(state: FlowState, x: Instruction) -> NodeSets:
    part = state.sets[x.operands[0].id][:1]
    return _place(state, x, {node_number(x.shape, (1,)): part})


def _copy_done(state: FlowState, x: Instruction) -> NodeSets:
    source = x.operands[0]
    part = _element(state.sets[source.id], source, 0)
    return fit(part, len(state.sets[x.id]))


def _all_gather_start(state: FlowState, x: Instruction) -> NodeSets:
    if len(x.operands) == 1:
        place = node_number(x.shape, (0,))
        return _place(state, x, {place: state.sets[x.operands[0].id]})
    return _place(
        state,
        x,
        {
            node_number(x.shape, (0, i)): state.sets[operand.id]
            for i, operand in enumerate(x.operands)
        },
    )


def _result_of_start(state: FlowState, x: Instruction) -> NodeSets:
    """Element 1 of the start, except tuple nodes that the done defines."""
    source = x.operands[0]
    part = fit(_element(state.sets[source.id], source, 1), node_count(x.shape))
    if not x.shape.is_tuple:
        return part
    own = state.sets[x.id]
    shapes = shape_nodes(x.shape).shapes
    return tuple(
        own[i] if shape.is_tuple else part[i] for i, shape in enumerate(shapes)
    )


def _permute_start(state: FlowState, x: Instruction) -> NodeSets:
    operands = x.operands
    if len(operands) > 1 and not is_in_place_permute(x):
        return _place(
            state,
            x,
            {
                node_number(x.shape, (0, i)): state.sets[operand.id][:1]
                for i, operand in enumerate(operands)
            },
        )
    first = operands[0]
    if not first.shape.is_tuple:
        return _place(state, x, {node_number(x.shape, (0,)): state.sets[first.id]})
    return _place(
        state,
        x,
        {
            node_number(x.shape, (0, i)): _element(state.sets[first.id], first, i)
            for i in range(len(first.shape.children))
        },
    )


def _permute_done(state: FlowState, x: Instruction) -> NodeSets:
    source = x.operands[0]
    part = _element(state.sets[source.id], source, 1)
    if not x.shape.is_tuple:
        return fit(part, 1)
    own = state.sets[x.id]
    return (own[0], *fit(part, len(own))[1:])


def _call(state: FlowState, x: Instruction) -> NodeSets:
    own = state.sets[x.id]
    callee = x.called_computations[0]
    if not state.propagate_through_calls or callee in state.excluded:
        return own
    return fit(state.sets[callee.root.id], len(own))


def _bitcast(state: FlowState, x: Instruction) -> NodeSets:
    """A bitcast forwards its operand, or keeps the value that it was given."""
    return state.sets[x.id] if state.bitcast_defines_value else _whole(state, x)


RULES: Final[dict[str, Rule]] = {
    "add-dependency": _whole,
    "all-gather-done": _result_of_start,
    "all-gather-start": _all_gather_start,
    "all-reduce-done": _whole,
    "async-done": flow_async_done,
    "async-start": flow_async_start,
    "async-update": flow_async_update,
    "bitcast": _bitcast,
    "call": _call,
    "collective-permute-done": _permute_done,
    "collective-permute-start": _permute_start,
    "copy": _copy,
    "copy-done": _copy_done,
    "copy-start": _copy_start,
    "domain": _whole,
    "get-tuple-element": _get_tuple_element,
    "opt-barrier": _whole,
    "recv-done": _recv_done,
    "send": _send,
    "tuple": _tuple,
}
"""Opcodes that forward values one to one."""

FLOWING: Final = frozenset({*RULES, "while", "conditional", "parameter"})
"""Every opcode whose values depend on other instructions'."""


def update_values(state: FlowState, x: Instruction) -> bool:
    """Recompute the values of an instruction; whether they changed."""
    opcode = x.opcode
    rule = RULES.get(opcode)
    if rule is not None:
        new = rule(state, x)
        if new == state.sets[x.id]:
            return False
        state.sets[x.id] = new
        return True
    if opcode == "while":
        body = x.called_computations[0]
        inputs = [state.sets[body.root.id], state.sets[x.operands[0].id]]
        if body in state.excluded:
            inputs = inputs[1:]
    elif opcode == "conditional":
        inputs = [
            state.sets[branch.root.id]
            for branch in x.called_computations
            if branch not in state.excluded
        ]
    elif opcode == "parameter":
        found = flow_parameter(state, x)
        if found is None:
            return False
        inputs, needs_phi = found
        if not needs_phi:
            return _assign_union(state, x, inputs)
    else:
        return False
    if state.ssa_form:
        return merge(state, x, inputs)
    return _assign_union(state, x, inputs)


def _assign_union(state: FlowState, x: Instruction, inputs: list[NodeSets]) -> bool:
    old = state.sets[x.id]
    new = union(inputs, len(old)) if inputs else old
    if new == old:
        return False
    state.sets[x.id] = new
    return True
