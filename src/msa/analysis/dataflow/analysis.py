"""The dataflow analysis and its results.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.h`.
"""

from __future__ import annotations

from collections.abc import Iterable

from msa.analysis.call_graph import CallGraph
from msa.analysis.dataflow.initial import define_values
from msa.analysis.dataflow.propagation import propagate
from msa.analysis.dataflow.state import FlowState, Ids, NodeSets
from msa.analysis.dataflow.uses import build_values
from msa.analysis.shape_nodes import node_number
from msa.analysis.values import Position, Value
from msa.errors import HloError
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex


class DataflowAnalysis:
    """Which values are at each node of each instruction's result.

    Attributes:
        module: the module analysed.
        call_graph: its call graph.
        ssa_form: whether merges are values of their own (phis).
        values: in order of their ids.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   p = f32[4] parameter(0)
    ...   t = (f32[4]) tuple(p)
    ...   g = f32[4] get-tuple-element(t), index=0
    ...   ROOT n = f32[4] negate(g)
    ... }''')
    >>> flow = DataflowAnalysis.run(module)
    >>> [str(p) for p in flow.values[0].positions], [str(u) for u in flow.values[0].uses]
    (['p{}', 't{0}', 'g{}'], ['n:0{}'])
    """

    __slots__ = ("_by_id", "_sets", "call_graph", "module", "ssa_form", "values")

    def __init__(
        self,
        module: Module,
        call_graph: CallGraph,
        sets: list[NodeSets],
        values: dict[int, Value],
        ssa_form: bool,
    ) -> None:
        self.module = module
        self.call_graph = call_graph
        self.ssa_form = ssa_form
        self.values: tuple[Value, ...] = tuple(values.values())
        self._by_id = values
        self._sets = sets

    @classmethod
    def run(
        cls,
        module: Module,
        *,
        ssa_form: bool = True,
        bitcast_defines_value: bool = False,
        propagate_through_calls: bool = True,
        execution_threads: Iterable[str] = (),
        call_graph: CallGraph | None = None,
    ) -> DataflowAnalysis:
        """Analyse a module.

        Args:
            module: the module.
            ssa_form: merge points of control flow define phi values; otherwise
                several values may be at one node.
            bitcast_defines_value: a bitcast makes a value of its own.
            propagate_through_calls: values flow into and out of called computations.
            execution_threads: analyse computations on these threads only; empty
                means all.
            call_graph: the module's, if at hand.

        Raises:
            HloError: a computation is called in contexts that exclude each other.

        Linear in instructions, nodes and uses, times the depth of nested loops.
        """
        graph = call_graph or CallGraph.run(module)
        state = FlowState(
            module,
            graph,
            ssa_form=ssa_form,
            propagate_through_calls=propagate_through_calls,
            bitcast_defines_value=bitcast_defines_value,
            execution_threads=frozenset(execution_threads),
        )
        orders = {
            c: c.post_order()
            for c in module.computation_post_order()
            if c not in state.excluded
        }
        define_values(state, orders)
        propagate(state, orders)
        if ssa_form:
            _drop_needless_phis(state)
        values = build_values(state, _live_values(state))
        return cls(module, graph, state.sets, values, ssa_form)

    def value(self, number: int) -> Value:
        """The value of that id.

        Raises:
            HloError: no value has this id.
        """
        try:
            return self._by_id[number]
        except KeyError:
            raise HloError(f"there is no value {number}") from None

    def values_at(
        self, instruction: Instruction, index: ShapeIndex = ()
    ) -> tuple[Value, ...]:
        """Values that may be at a node, by id; empty where nothing flows.

        Raises:
            HloError: the result has no such node.
        """
        by_id = self._by_id
        return tuple([by_id[v] for v in self.ids_at(instruction, index)])

    def ids_at(self, instruction: Instruction, index: ShapeIndex = ()) -> Ids:
        """Ids of the values that may be at a node."""
        place = node_number(instruction.shape, index)
        if place < 0:
            raise HloError(
                f"{instruction.name} has no element {index}", where=instruction.name
            )
        sets = self._sets[instruction.id]
        return sets[place] if place < len(sets) else ()

    def node_ids(self, instruction: Instruction) -> NodeSets:
        """Ids of the values at every node, in pre-order."""
        return self._sets[instruction.id]

    def unique_value_at(
        self, instruction: Instruction, index: ShapeIndex = ()
    ) -> Value:
        """The one value at a node.

        Raises:
            HloError: there is none or several.
        """
        values = self.values_at(instruction, index)
        if len(values) != 1:
            place = Position(instruction, index)
            raise HloError(f"{len(values)} values are at {place}, not one")
        return values[0]

    def defines(self, instruction: Instruction, index: ShapeIndex = ()) -> bool:
        """Whether the instruction defines the value at a node of its result."""
        ids = self.ids_at(instruction, index)
        if len(ids) != 1:
            return False
        position = self._by_id[ids[0]].positions[0]
        return position[0] is instruction and position[1] == index

    def defined_value(self, instruction: Instruction, index: ShapeIndex = ()) -> Value:
        """The value that an instruction defines at a node.

        Raises:
            HloError: it defines none there.
        """
        if not self.defines(instruction, index):
            raise HloError(f"no value is defined at {Position(instruction, index)}")
        return self._by_id[self.ids_at(instruction, index)[0]]

    def flattened_values(self, instruction: Instruction) -> tuple[Value, ...]:
        """Every value at any node of a result, each once, by id."""
        ids = {v for node in self._sets[instruction.id] for v in node}
        return tuple(self._by_id[v] for v in sorted(ids))

    def is_ambiguous(self, instruction: Instruction) -> bool:
        """Whether several values may be at some node."""
        return any(len(ids) > 1 for ids in self._sets[instruction.id])

    def to_text(self) -> str:
        """Every value with positions and uses, for debugging."""
        lines = [f"DataflowAnalysis of {self.module.name}:"]
        for value in self.values:
            lines.append(f"  {value}{', live out' if value.live_out else ''}")
            lines.append(f"    positions: {', '.join(map(str, value.positions))}")
            lines.append(f"    uses: {', '.join(map(str, value.uses))}")
        return "\n".join(lines) + "\n"


def _drop_needless_phis(state: FlowState) -> None:
    """Rewrite all sets after pruning."""
    if not any(state.is_phi):
        return
    state.phis.prune()
    resolve = state.phis.resolve
    is_phi = state.is_phi
    for place, sets in enumerate(state.sets):
        if any(is_phi[v] for ids in sets for v in ids):
            state.sets[place] = tuple(
                ids
                if not any(is_phi[v] for v in ids)
                else tuple(sorted({resolve(v) for v in ids}))
                for ids in sets
            )


def _live_values(state: FlowState) -> list[bool]:
    """Which values exist in the end: all but merges that were replaced."""
    live = [not phi for phi in state.is_phi]
    for number, (instruction, place) in enumerate(state.definitions):
        if state.is_phi[number]:
            live[number] = number in state.sets[instruction.id][place]
    return live
