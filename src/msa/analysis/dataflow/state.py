"""What the dataflow analysis knows while it runs."""

from __future__ import annotations

from msa.analysis.call_graph import CallGraph
from msa.analysis.dataflow.phi_graph import PhiGraph
from msa.analysis.shape_nodes import node_count
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module

Ids = tuple[int, ...]
"""Ids of the values at one node, ascending."""

NodeSets = tuple[Ids, ...]
"""The values at each node of a result, in pre-order."""

EMPTY: Ids = ()


class FlowState:
    """Values found so far and the values at each node of each instruction.

    Attributes:
        sets: by instruction id, the values at each node of its result.
        definitions: by value id, the defining instruction and node.
        is_phi: by value id.
        phis: inputs of merges.
        excluded: computations on threads that are not analysed.
    """

    __slots__ = (
        "bitcast_defines_value",
        "call_graph",
        "definitions",
        "excluded",
        "is_phi",
        "module",
        "phis",
        "propagate_through_calls",
        "sets",
        "ssa_form",
    )

    def __init__(
        self,
        module: Module,
        call_graph: CallGraph,
        *,
        ssa_form: bool,
        propagate_through_calls: bool,
        bitcast_defines_value: bool = False,
        execution_threads: frozenset[str],
    ) -> None:
        self.module = module
        self.call_graph = call_graph
        self.ssa_form = ssa_form
        self.propagate_through_calls = propagate_through_calls
        self.bitcast_defines_value = bitcast_defines_value
        self.excluded: set[Computation] = {
            c
            for c in module.computations
            if execution_threads and c.execution_thread not in execution_threads
        }
        self.sets: list[NodeSets] = [()] * module.id_limit
        self.definitions: list[tuple[Instruction, int]] = []
        self.is_phi: list[bool] = []
        self.phis = PhiGraph()

    def new_value(self, instruction: Instruction, place: int, phi: bool = False) -> int:
        """Number a value defined at a node."""
        self.definitions.append((instruction, place))
        self.is_phi.append(phi)
        return len(self.is_phi) - 1

    def empty_sets(self, instruction: Instruction) -> NodeSets:
        """A result about which nothing is known yet."""
        return (EMPTY,) * node_count(instruction.shape)

    def wraps_excluded(self, instruction: Instruction) -> bool:
        """Whether an asynchronous operation runs on a thread that is not analysed."""
        called = instruction.called_computations
        return bool(called) and called[0] in self.excluded
