"""First values: every node that an instruction defines gets one.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

from msa.analysis.dataflow.definitions import Places, defined_places
from msa.analysis.dataflow.state import EMPTY, FlowState, NodeSets
from msa.analysis.shape_nodes import node_count
from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction

_SETTINGS = frozenset({"parameter", "bitcast", "call"})


def define_values(
    state: FlowState,
    orders: dict[Computation, list[Instruction]],
) -> None:
    """Number new values: computations callees first, instructions in post order.

    Raises:
        HloError: a computation is run both as part of the program and per element.
    """
    for computation, order in orders.items():
        takes = _parameters_define(state, computation)
        for instruction in order:
            opcode = instruction.opcode
            places: Places | None
            if opcode == "parameter":
                places = None if takes else ()
            elif opcode == "bitcast":
                places = None if state.bitcast_defines_value else ()
            elif opcode == "call":
                places = () if state.propagate_through_calls else None
            else:
                places = defined_places(
                    instruction, thread_excluded=state.wraps_excluded(instruction)
                )
            state.sets[instruction.id] = _numbered(state, instruction, places)


def _numbered(
    state: FlowState, instruction: Instruction, places: Places | None
) -> NodeSets:
    count = node_count(instruction.shape)
    if places is None:
        if count == 1:
            return ((state.new_value(instruction, 0),),)
        places = tuple(range(count))
    elif not places:
        return (EMPTY,) * count
    sets = [EMPTY] * count
    for place in places:
        sets[place] = (state.new_value(instruction, place),)
    return tuple(sets)


def _parameters_define(state: FlowState, computation: Computation) -> bool:
    """Whether a computation's parameters are values of their own."""
    node = state.call_graph.node(computation)
    if node.context == "both":
        raise HloError(
            f"computation {computation.name} is called in both a parallel (eg, kMap) "
            "and sequential (eg, kCall) context",
            hint="give each its own copy of the computation",
        )
    sites = node.caller_call_sites
    if not sites or node.context == "embedded":
        return True
    if state.propagate_through_calls:
        return False
    calls = [site.instruction.opcode == "call" for site in sites]
    if any(calls) and not all(calls):
        raise HloError(
            f"computation {computation.name} is called by a call and by other control "
            "flow, so calls cannot be left out of the analysis",
            hint="give each its own copy of the computation",
        )
    return all(calls)
