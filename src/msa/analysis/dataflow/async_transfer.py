"""How values flow through chains of asynchronous operations.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

from typing import Final

from msa.analysis.async_chains import LOOP_CROSSING_SOURCES, bound_operands
from msa.analysis.dataflow.state import FlowState, Ids, NodeSets
from msa.analysis.shape_nodes import node_number, shape_nodes
from msa.hlo.instruction import Instruction

_SLICES: Final = frozenset({"dynamic-slice", "dynamic-update-slice"})


def _wrapped_root(state: FlowState, x: Instruction) -> Instruction | None:
    """Root of the wrapped computation, unless its thread is not analysed."""
    if not x.called_computations or state.wraps_excluded(x):
        return None
    return x.called_computations[0].root


def crosses_loop(x: Instruction) -> bool:
    """Whether the start of a chain is on the other side of a loop."""
    if x.operands[0].opcode not in LOOP_CROSSING_SOURCES or not x.called_computations:
        return False
    return x.called_computations[0].root.opcode in _SLICES


def _at(
    state: FlowState, source: Instruction | None, index: tuple[int, ...]
) -> Ids | None:
    """Values at a node of an instruction, None when there is no such node."""
    if source is None:
        return None
    place = node_number(source.shape, index)
    sets = state.sets[source.id]
    return sets[place] if 0 <= place < len(sets) else None


def _operand_values(
    state: FlowState, operands: tuple[Instruction, ...], index: tuple[int, ...]
) -> Ids | None:
    """Values at node `{0, i, …}`: those of the i-th operand."""
    if len(index) < 2 or index[1] >= len(operands):
        return None
    return _at(state, operands[index[1]], index[2:])


def flow_async_start(state: FlowState, x: Instruction) -> NodeSets:
    """Operands are held in element 0; the result appears in element 1."""
    nodes = shape_nodes(x.shape)
    new = list(state.sets[x.id])
    root = _wrapped_root(state, x)
    updates = root is not None and root.opcode == "dynamic-update-slice"
    for place, index in enumerate(nodes.indices):
        if nodes.shapes[place].is_tuple:
            continue
        found: Ids | None = None
        if index[:1] == (0,):
            found = _operand_values(state, x.operands, index)
        elif index[:1] == (1,):
            if updates:
                found = _at(state, x.operands[0], ()) if len(index) == 1 else None
            else:
                found = _at(state, root, index[1:])
        if found is not None:
            new[place] = found
    return tuple(new)


def flow_async_update(state: FlowState, x: Instruction) -> NodeSets:
    """Holds all operands bound so far; contexts come from the operation before."""
    nodes = shape_nodes(x.shape)
    new = list(state.sets[x.id])
    before = x.operands[0]
    crossing = crosses_loop(x)
    operands = () if crossing else bound_operands(x)
    root = before if crossing else _wrapped_root(state, x)
    for place, index in enumerate(nodes.indices):
        if nodes.shapes[place].is_tuple:
            continue
        found: Ids | None = None
        if index[:1] == (0,):
            found = _operand_values(state, operands, index)
        elif index[:1] == (1,) and not crossing and root is not None:
            found = _at(state, root, index[1:])
        else:
            found = _at(state, before, index)
        if found is not None:
            new[place] = found
    return tuple(new)


def flow_async_done(state: FlowState, x: Instruction) -> NodeSets:
    """The result of the wrapped computation."""
    nodes = shape_nodes(x.shape)
    new = list(state.sets[x.id])
    before = x.operands[0]
    root = None if crosses_loop(x) else _wrapped_root(state, x)
    for place, index in enumerate(nodes.indices):
        if nodes.shapes[place].is_tuple:
            continue
        if root is not None:
            found = _at(state, root, index)
        else:
            found = _at(state, before, (1, *index))
        if found is not None:
            new[place] = found
    return tuple(new)
