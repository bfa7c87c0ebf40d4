"""Alias analysis: which values must share storage.

Values are joined by the program's input/output aliases, by loops and conditionals
(whose parts hand values over in place), and by operations that update an operand.

Source: `xla/hlo/analysis/hlo_alias_analysis.cc`.
"""

from __future__ import annotations

from msa.analysis.dataflow import DataflowAnalysis
from msa.analysis.dataflow.state import Ids
from msa.analysis.in_place import IN_PLACE_OPCODES, InPlacePairs
from msa.analysis.values import HloBuffer, Position, Value
from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex


class AliasAnalysis:
    """Buffers: sets of values that must share storage.

    Attributes:
        module: the module.
        dataflow: the values.
        buffers: by id, in the order in which they were first needed.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   x = f32[8] parameter(0)
    ...   u = f32[2] parameter(1)
    ...   i = s32[] parameter(2)
    ...   ROOT d = f32[8] dynamic-update-slice(x, u, i)
    ... }''')
    >>> for buffer in AliasAnalysis.run(module).buffers:
    ...     print([str(value.position) for value in buffer.values])
    ['x{}', 'd{}']
    ['u{}']
    ['i{}']
    """

    __slots__ = ("_of_value", "buffers", "dataflow", "module", "pairs")

    def __init__(
        self,
        dataflow: DataflowAnalysis,
        pairs: InPlacePairs,
        groups: list[list[Value]],
    ) -> None:
        self.module = dataflow.module
        self.dataflow = dataflow
        self.pairs = pairs
        self.buffers = tuple(
            HloBuffer(number, tuple(values)) for number, values in enumerate(groups)
        )
        self._of_value: dict[int, HloBuffer] = {
            value.id: buffer for buffer in self.buffers for value in buffer.values
        }

    @classmethod
    def run(
        cls,
        module: Module,
        *,
        dataflow: DataflowAnalysis | None = None,
        pairs: InPlacePairs | None = None,
    ) -> AliasAnalysis:
        """Analyse a module; near linear in nodes and values.

        A computation that several loops or conditionals run joins the values of all
        of them; planners want call graphs in which that does not happen.

        Args:
            module: the module.
            dataflow: its dataflow analysis in static single assignment form.
            pairs: operations that work in place (default: the usual ones).

        Raises:
            HloError: an input/output alias names no parameter or output.
        """
        flow = dataflow or DataflowAnalysis.run(module)
        rules = pairs or InPlacePairs()
        related = _Related(flow.values[-1].id + 1 if flow.values else 0)
        _join_program_aliases(flow, related)
        _join_control_flow(flow, related)
        _join_in_place(flow, rules, related)
        return cls(flow, rules, related.groups(flow.values))

    def buffer_of(self, value: Value) -> HloBuffer:
        """The buffer that holds a value.

        Raises:
            HloError: the value is of another analysis.
        """
        buffer = self._of_value.get(value.id)
        if buffer is None:
            raise HloError(f"{value} is not a value of this analysis")
        return buffer

    def buffers_at(
        self, instruction: Instruction, index: ShapeIndex = ()
    ) -> tuple[HloBuffer, ...]:
        """Buffers that may be at a node, each once, by id."""
        ids = self.dataflow.ids_at(instruction, index)
        if len(ids) == 1:
            return (self._of_value[ids[0]],)
        found = {self._of_value[v].id for v in ids}
        return tuple(self.buffers[b] for b in sorted(found))

    def unique_buffer_at(
        self, instruction: Instruction, index: ShapeIndex = ()
    ) -> HloBuffer:
        """The one buffer at a node.

        Raises:
            HloError: there is none or several.
        """
        buffers = self.buffers_at(instruction, index)
        if len(buffers) != 1:
            place = Position(instruction, index)
            raise HloError(f"{len(buffers)} buffers are at {place}, not one")
        return buffers[0]

    def is_ambiguous(self, instruction: Instruction) -> bool:
        """Whether several buffers may be at some node."""
        return any(
            len({self._of_value[v].id for v in ids}) > 1
            for ids in self.dataflow.node_ids(instruction)
        )

    def is_distinct(self, instruction: Instruction) -> bool:
        """Whether no buffer is at two nodes of a result."""
        seen: set[int] = set()
        for ids in self.dataflow.node_ids(instruction):
            here = {self._of_value[v].id for v in ids}
            if here & seen:
                return False
            seen |= here
        return True

    def lives_out(self, buffer: HloBuffer) -> bool:
        """Whether a buffer is part of the program's result."""
        return any(value.live_out for value in buffer.values)

    @property
    def live_out_buffers(self) -> tuple[HloBuffer, ...]:
        """Buffers of the program's result, by id."""
        return tuple(b for b in self.buffers if self.lives_out(b))

    def to_text(self) -> str:
        """Every buffer with its positions, for debugging."""
        lines = [f"AliasAnalysis of {self.module.name}:"]
        for buffer in self.buffers:
            lines.append(f"  {buffer}")
            lines.append(f"    positions: {', '.join(map(str, buffer.positions))}")
        return "\n".join(lines) + "\n"


class _Related:
    """Which values have to share storage with which, and the sets that follow.

    Sets are merged in order of value ids, always into the largest one (the one of
    the smallest value among equals). This decides the numbers of buffers, by which
    planners break ties.
    """

    __slots__ = ("_others",)

    def __init__(self, count: int) -> None:
        self._others: list[list[int] | None] = [None] * count

    def join(self, values: Ids, with_values: Ids) -> None:
        """Each of `values` must share storage with all of `with_values`."""
        if values == with_values:
            return
        for value in values:
            others = self._others[value]
            if others is None:
                others = self._others[value] = []
            others.extend(with_values)

    def groups(self, values: tuple[Value, ...]) -> list[list[Value]]:
        """The sets, in order of the values that they started from."""
        slot = {value.id: number for number, value in enumerate(values)}
        members: list[list[Value]] = [[value] for value in values]
        for value in values:
            others = self._others[value.id]
            if others is None:
                continue
            reached = sorted({value.id, *others})
            slots = dict.fromkeys(slot[v] for v in reached)
            kept = max(slots, key=lambda s: len(members[s]))
            for merged in slots:
                if merged != kept:
                    for member in members[merged]:
                        slot[member.id] = kept
                    members[kept].extend(members[merged])
                    members[merged] = []
        for group in members:
            group.sort(key=_id)
        return [group for group in members if group]


def _id(value: Value) -> int:
    return value.id


def _join_program_aliases(flow: DataflowAnalysis, related: _Related) -> None:
    """Outputs that are stated to live in a parameter's storage."""
    module = flow.module
    parameters = module.entry.parameters
    root = module.entry.root
    for alias in module.aliases:
        number = alias.parameter_number
        if not 0 <= number < len(parameters):
            raise HloError(
                f"an input/output alias names parameter {number}, the entry has "
                f"{len(parameters)}"
            )
        source = flow.ids_at(parameters[number], alias.parameter_index)
        related.join(flow.ids_at(root, alias.output_index), source)


def _join_control_flow(flow: DataflowAnalysis, related: _Related) -> None:
    """Loops and conditionals hand values over without moving them."""
    for node in flow.call_graph.nodes:
        for site in node.call_sites:
            caller = site.instruction
            if caller.opcode == "while":
                body, condition = caller.called_computations
                _join_nodes(flow, related, caller.operands[0], caller)
                _join_nodes(flow, related, body.root, caller)
                for computation in (body, condition):
                    _join_own_parameters(flow, related, caller, computation)
            elif caller.opcode == "conditional":
                for branch in caller.called_computations:
                    _join_nodes(flow, related, branch.root, caller)


def _join_nodes(
    flow: DataflowAnalysis, related: _Related, a: Instruction, b: Instruction
) -> None:
    for here, there in zip(flow.node_ids(a), flow.node_ids(b), strict=False):
        related.join(here, there)


def _join_own_parameters(
    flow: DataflowAnalysis, related: _Related, loop: Instruction, part: Computation
) -> None:
    """Merges at a loop's parameters live where the loop's result does."""
    for parameter in part.parameters[:1]:
        nodes = flow.node_ids(parameter)
        for here, there in zip(flow.node_ids(loop), nodes, strict=False):
            for value in there:
                if flow.value(value).positions[0][0] is parameter:
                    related.join((value,), here)


def _join_in_place(
    flow: DataflowAnalysis, pairs: InPlacePairs, related: _Related
) -> None:
    """Operations whose result overwrites an operand."""
    opcodes = frozenset(IN_PLACE_OPCODES)
    hooked = pairs.has_hook
    for computation in flow.module.computations:
        for instruction in computation.instructions:
            if instruction.opcode not in opcodes and not hooked:
                continue
            for operand, output in pairs(instruction):
                number, index = operand
                if number >= len(instruction.operands):
                    raise HloError(
                        f"{instruction.name} aliases operand {number}, it has "
                        f"{len(instruction.operands)}"
                    )
                source = flow.ids_at(instruction.operands[number], index)
                target = flow.ids_at(instruction, output)
                related.join(target, source)
                related.join(source, target)
