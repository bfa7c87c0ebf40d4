"""What reaches a parameter from the instructions that run its computation.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

from msa.analysis.async_chains import bound_operands, chain_done
from msa.analysis.dataflow.state import FlowState, NodeSets
from msa.hlo.instruction import Instruction


def flow_parameter(
    state: FlowState, x: Instruction
) -> tuple[list[NodeSets], bool] | None:
    """Values that reach a parameter, and whether several paths merge there.

    None for parameters that define their values themselves.
    """
    node = state.call_graph.node(x.computation)
    if not node.caller_call_sites or node.context == "embedded":
        return None
    inputs: list[NodeSets] = []
    needs_phi = False
    number = x.parameter_number
    for site in node.caller_call_sites:
        caller = site.instruction
        opcode = caller.opcode
        if opcode == "call":
            if not state.propagate_through_calls:
                return None
            if number < len(caller.operands):
                inputs.append(state.sets[caller.operands[number].id])
        elif opcode == "while":
            inputs.append(state.sets[caller.operands[0].id])
            root = caller.called_computations[0].root
            if root is not x:
                inputs.append(state.sets[root.id])
            needs_phi = True
        elif opcode == "conditional":
            branch = caller.called_computations.index(x.computation)
            inputs.append(state.sets[caller.operands[branch + 1].id])
            needs_phi = True
        elif opcode == "async-start":
            operands = caller.operands
            done = chain_done(caller)
            if done is not None:
                operands = bound_operands(done)
            if number < len(operands):
                inputs.append(state.sets[operands[number].id])
    return inputs, needs_phi
