"""What fast memory is worth to each value, before anything is placed."""

from __future__ import annotations

from dataclasses import dataclass

from msa.analysis.call_graph import CallGraph
from msa.analysis.manager import AnalysisManager
from msa.analysis.memory_boundedness import CostModel
from msa.analysis.values import Use, Value
from msa.errors import OptionsError
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.opcode import CONTROL_FLOW_OPCODES
from msa.passes.arguments import module_of, one_of
from msa.passes.runs import MOST_RUNS
from msa.target import Target


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A value as a candidate for fast memory.

    Attributes:
        value: defining position, as text.
        space: memory space in its layout.
        annotated: whether that is not the default.
        bytes: of the value.
        first_use, last_use: steps of the flattened schedule at which it is read; both
            -1 if nothing reads it.
        bytes_accessed: written and read over all trips of the loops around; of custom
            calls that do not say, all of the value.
        gain: seconds saved per byte that it occupies, if all of that were in fast
            memory and nothing but memory took time.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) ROOT n = f32[256] negate(p) }'''))
    >>> (row,) = suggest(module, msa.Target.preset("tpu_v5e"))
    >>> row.value, row.bytes, row.bytes_accessed, row.annotated
    ('p{}', 1024, 1024.0, False)
    """

    value: str
    space: int
    annotated: bool
    bytes: int
    first_use: int
    last_use: int
    bytes_accessed: float
    gain: float


def suggest(
    module: Module, target: Target, *, analyses: AnalysisManager | None = None
) -> tuple[Suggestion, ...]:
    """Values of a scheduled module, most worth placing first; nothing is changed.

    Values whose layouts name a memory come first, then by bytes accessed times what
    fast memory saves on each, for every byte of the value. Values without bytes or
    without readers are left out, and so are those inside fusions. Near linear.

    Args:
        module: scheduled.
        target: whose bandwidths count.
        analyses: of the module, if at hand.

    Raises:
        ScheduleError: the module has no schedule.
        OptionsError: the analyses are of another module.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e {
    ...   x = f32[64] parameter(0)
    ...   y = f32[64] negate(x)
    ...   ROOT z = f32[64] multiply(y, y)
    ... }''')
    >>> [(s.value, s.last_use) for s in suggest(module, msa.Target.preset("tpu_v5e"))]
    [('y{}', 2), ('x{}', 1)]
    """
    module = module_of(module, "suggest")
    target = one_of(target, Target, "suggest")
    if analyses is None:
        analyses = AnalysisManager(module)
    analyses = one_of(analyses, AnalysisManager, "suggest")
    if analyses.module is not module:
        raise OptionsError(
            "the analyses are of another module", hint="AnalysisManager(module)"
        )
    return _Ranking(target, analyses).rows()


class _Ranking:
    def __init__(self, target: Target, analyses: AnalysisManager) -> None:
        self.time = analyses.schedule.time
        self.values = analyses.dataflow.values
        graph: CallGraph = analyses.call_graph
        self.steps = {
            c
            for c in analyses.module.computations
            if graph.node(c).context in ("control-flow", "both")
        }
        self.model = CostModel.run(
            analyses.module,
            target,
            costs=analyses.costs,
            alias=analyses.alias,
            trip_counts=analyses.trip_counts,
        )
        slow = 1 / target.default_memory_bandwidth
        self.read_gain = slow - 1 / target.alternate_read_bandwidth
        self.write_gain = slow - 1 / target.alternate_write_bandwidth

    def rows(self) -> tuple[Suggestion, ...]:
        found = []
        for value in self.values:
            x = value.instruction
            if x.computation not in self.steps or not value.shape.is_array:
                continue
            if value.uses and value.byte_size():
                found.append(self._row(value))
        found.sort(key=lambda s: (not s.annotated, -s.gain))
        return tuple(found)

    def _row(self, value: Value) -> Suggestion:
        model, x = self.model, value.instruction
        size = value.byte_size()
        written = 0.0
        if x.opcode not in ("parameter", "constant"):
            written = model.output_bytes(x, value.index)
            written = (size if written < 0 else written) * self._trips(x)
        read, steps = 0.0, []
        for use in value.uses:
            user = use.instruction
            read += self._read_bytes(use, size) * self._trips(user)
            steps.append(int(self.time[user.id]))
        return Suggestion(
            str(value.position),
            value.shape.memory_space,
            value.shape.memory_space != 0,
            size,
            min(steps),
            max(steps),
            read + written,
            (read * self.read_gain + written * self.write_gain) / size,
        )

    def _read_bytes(self, use: Use, size: int) -> float:
        """Read by one use; all of the value where nothing is known."""
        user = use.instruction
        if user.opcode in CONTROL_FLOW_OPCODES:  # what it runs reads the rest
            return (
                size if user.opcode == "conditional" and not use.operand_number else 0
            )
        read = self.model.operand_bytes(user, use.operand_number, use.operand_index)
        return size if read < 0 else read

    def _trips(self, x: Instruction) -> float:
        """Runs of an instruction, finite however deep the loops are."""
        return min(self.model.nest_trip_count(x), MOST_RUNS)
