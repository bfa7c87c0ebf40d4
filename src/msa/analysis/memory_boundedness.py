"""Seconds of instructions on a machine, and what fast memory is worth to a value.

Seconds are rounded to single precision after every operation (bandwidths are not),
as in XLA: they are compared to decide placements.

Source: `xla/service/memory_space_assignment/cost_analysis.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from msa.analysis.alias import AliasAnalysis
from msa.analysis.call_graph import CallGraph
from msa.analysis.costs import InstructionCosts
from msa.analysis.costs.costs import as_integer
from msa.analysis.costs.properties import single
from msa.analysis.trip_counts import TripCounts
from msa.analysis.values import HloBuffer, Position, Use, Value
from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex
from msa.target import Target

EXCLUDED: Final = frozenset(
    {
        "all-gather-done",
        "all-gather-start",
        "all-reduce-done",
        "all-reduce-start",
        "async-done",
        "async-start",
        "collective-permute-done",
        "collective-permute-start",
        "copy-done",
        "copy-start",
    }
)
"""Opcodes that take no time of their own: they run beside the program."""

_MANY: Final = 64
"""From so many terms on, sums are vectorised."""

OperandNodes = Iterable[tuple[int, ShapeIndex]]
"""`(operand number, index)` of operands in alternate memory."""


_MOST_RUNS: Final = 2.0**100
"""Assumed at most: products with seconds and bytes stay far from infinity."""


def assumed_runs(count: int, level: int) -> float:
    """Runs of an instruction within so many loops of `count` trips each.

    >>> assumed_runs(5, 2), assumed_runs(5, 1000) == 2.0**100
    (25.0, True)
    """
    if level * math.log(max(count, 1)) > math.log(_MOST_RUNS):
        return _MOST_RUNS
    return single(float(count) ** level)


class CostModel:
    """Seconds of instructions with chosen operands and results in alternate memory.

    Attributes:
        module, target, costs, alias, call_graph, trip_counts: what it is built on.
        while_execution_count: assumed trips of a loop, per level of nesting.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[1024,1024] parameter(0)
    ...   ROOT b = f32[1024,1024] negate(a)
    ... }''')
    >>> model = CostModel.run(module, msa.Target.preset("tpu_v5e"))
    >>> root = module.entry.root
    >>> model.elapsed(root) > model.elapsed_alt(root, [(0, ())], []) > model.compute(root)
    True
    """

    __slots__ = (
        "_alternate_read",
        "_alternate_write",
        "_basic",
        "_boundedness",
        "_compute",
        "_copy_bandwidth",
        "_default",
        "_flops_rate",
        "_levels",
        "_scale",
        "_transcendentals_rate",
        "_trips",
        "_uses",
        "_while_levels",
        "_window",
        "alias",
        "call_graph",
        "costs",
        "module",
        "target",
        "trip_counts",
        "while_execution_count",
    )

    def __init__(
        self,
        target: Target,
        costs: InstructionCosts,
        alias: AliasAnalysis,
        trip_counts: TripCounts,
        *,
        while_execution_count: int = 5,
        benefit_scaling: str = "SQRT",
        pipeline_overhead_window_mib: float = 0.0,
        async_copy_scaling: float | None = None,
    ) -> None:
        self.module = alias.module
        self.target = target
        self.costs = costs
        self.alias = alias
        self.call_graph: CallGraph = alias.dataflow.call_graph
        self.trip_counts = trip_counts
        self.while_execution_count = while_execution_count
        self._flops_rate = single(target.flops_per_second)
        self._transcendentals_rate = single(target.transcendentals_per_second)
        self._default = target.default_memory_bandwidth
        self._alternate_read = target.alternate_read_bandwidth
        self._alternate_write = target.alternate_write_bandwidth
        scaling = async_copy_scaling or target.async_copy_bandwidth_scaling_factor
        self._copy_bandwidth = single(scaling) * self._default
        self._scale = benefit_scaling != "NO_SCALE"
        self._window = single(pipeline_overhead_window_mib * 2**20)
        self._boundedness: dict[Position, float] = {}
        self._compute: dict[Instruction, float] = {}
        self._basic: dict[Instruction, tuple[float, float, float, float]] = {}
        self._uses: dict[int, tuple[list[float], float]] = {}
        self._trips: dict[Computation, float] = {}
        self._levels: dict[Computation, int] = {}
        self._while_levels: dict[Computation, int] = {}

    @classmethod
    def run(
        cls,
        module: Module,
        target: Target,
        *,
        while_execution_count: int = 5,
        benefit_scaling: str = "SQRT",
        pipeline_overhead_window_mib: float = 0.0,
        async_copy_scaling: float | None = None,
        costs: InstructionCosts | None = None,
        alias: AliasAnalysis | None = None,
        trip_counts: TripCounts | None = None,
    ) -> CostModel:
        """Build the model, with the analyses that are not given.

        Args:
            module: the module.
            target: the machine.
            while_execution_count: trips of a loop whose count is not known.
            benefit_scaling: `NO_SCALE` keeps benefits as they are, anything else
                divides them by the square root of the size.
            pipeline_overhead_window_mib: bytes (MiB) of default memory traffic that
                cannot overlap with arithmetic.
            async_copy_scaling: bandwidth of copies as a share of default memory's;
                the target's own if None.
            costs, alias, trip_counts: analyses of the module, if at hand.
        """
        return cls(
            target,
            costs or InstructionCosts.run(module),
            alias or AliasAnalysis.run(module),
            trip_counts or TripCounts.run(module),
            while_execution_count=while_execution_count,
            benefit_scaling=benefit_scaling,
            pipeline_overhead_window_mib=pipeline_overhead_window_mib,
            async_copy_scaling=async_copy_scaling,
        )

    # -- bytes ---------------------------------------------------------------

    def total_bytes(self, instruction: Instruction) -> float:
        """Bytes read and written; negative for unknown custom calls."""
        return single(as_integer(self.costs.bytes_accessed(instruction)))

    def operand_bytes(
        self, instruction: Instruction, number: int, index: ShapeIndex = ()
    ) -> float:
        """Bytes read of an operand's node."""
        return single(as_integer(self.costs.operand_bytes(instruction, number, index)))

    def output_bytes(self, instruction: Instruction, index: ShapeIndex = ()) -> float:
        """Bytes written to a node of the result."""
        return single(as_integer(self.costs.output_bytes(instruction, index)))

    # -- seconds -------------------------------------------------------------

    def compute(self, instruction: Instruction) -> float:
        """Seconds of arithmetic."""
        known = self._compute.get(instruction)
        if known is None:
            known = self._compute[instruction] = self._arithmetic(instruction)
        return known

    def _arithmetic(self, instruction: Instruction) -> float:
        if instruction.opcode in EXCLUDED:
            return 0.0
        properties = self.costs.properties(instruction)
        flops = single(as_integer(properties.flops))
        transcendentals = single(as_integer(properties.transcendentals))
        return max(
            single(flops / self._flops_rate),
            single(transcendentals / self._transcendentals_rate),
        )

    def memory(
        self,
        instruction: Instruction,
        operands: OperandNodes = (),
        outputs: Iterable[ShapeIndex] = (),
    ) -> float:
        """Seconds of memory traffic, the given nodes in alternate memory."""
        if instruction.opcode in EXCLUDED:
            return 0.0
        read, written = self._alternate_bytes(instruction, operands, outputs)
        return self._memory(self.total_bytes(instruction), read, written)

    def _alternate_bytes(
        self,
        instruction: Instruction,
        operands: OperandNodes,
        outputs: Iterable[ShapeIndex],
    ) -> tuple[float, float]:
        read = written = 0.0
        for number, index in operands:
            read = single(read + self.operand_bytes(instruction, number, index))
        for index in outputs:
            written = single(written + self.output_bytes(instruction, index))
        return read, written

    def _memory(self, total: float, read: float, written: float) -> float:
        fast = single(
            single(read / self._alternate_read)
            + single(written / self._alternate_write)
        )
        slow = single(single(total - read) - written)
        return single(fast + single(slow / self._default))

    def _overhead(
        self, instruction: Instruction, total: float, in_alternate: float
    ) -> float:
        """Seconds before the pipeline of memory traffic and arithmetic is full."""
        if total <= 0 or not self._window:
            return 0.0
        filled = min(self._window, single(total - in_alternate))
        return single(single(filled / total) * self.compute(instruction))

    def elapsed(self, instruction: Instruction) -> float:
        """Seconds with everything in default memory."""
        return self.elapsed_alt(instruction, (), ())

    def elapsed_alt(
        self,
        instruction: Instruction,
        operands: OperandNodes,
        outputs: Iterable[ShapeIndex],
    ) -> float:
        """Seconds with the given operand and result nodes in alternate memory."""
        if instruction.opcode in EXCLUDED:
            return 0.0
        total = self.total_bytes(instruction)
        read, written = self._alternate_bytes(instruction, operands, outputs)
        memory = self._memory(total, read, written)
        overhead = self._overhead(instruction, total, single(read + written))
        return max(self.compute(instruction), single(memory + overhead))

    def async_copy_elapsed(self, size: float) -> float:
        """Seconds that an asynchronous copy of so many bytes takes."""
        return single(single(size) / self._copy_bandwidth)

    def idle_default_bandwidth_time(
        self,
        instruction: Instruction,
        operands: OperandNodes,
        outputs: Iterable[ShapeIndex],
    ) -> float:
        """Seconds of an instruction in which default memory is free for copies."""
        operands, outputs = tuple(operands), tuple(outputs)
        elapsed = self.elapsed_alt(instruction, operands, outputs)
        read, written = self._alternate_bytes(instruction, operands, outputs)
        slow = single(self.total_bytes(instruction) - single(read + written))
        return single(elapsed - single(slow / self._default))

    # -- loops ---------------------------------------------------------------

    def _callers(self, computation: Computation) -> list[Instruction]:
        """Instructions around a computation, innermost first, up to the entry.

        Raises:
            HloError: several places run one of the computations.
        """
        callers = []
        while computation is not self.module.entry:
            caller = self.call_graph.parent_call(computation)
            if caller is None:
                if len(self.call_graph.node(computation).caller_call_sites) > 1:
                    raise HloError(
                        f"{computation.name} is run by several instructions",
                        hint="give each its own copy of the computation",
                    )
                break
            callers.append(caller)
            computation = caller.computation
        return callers

    def nest_level(self, instruction: Instruction, *, while_only: bool = False) -> int:
        """Computations (or loops only) around an instruction, the entry excluded."""
        cache = self._while_levels if while_only else self._levels
        computation = instruction.computation
        level = cache.get(computation)
        if level is None:
            callers = self._callers(computation)
            level = (
                sum(x.opcode == "while" for x in callers)
                if while_only
                else len(callers)
            )
            cache[computation] = level
        return level

    def while_multiplier(self, level: int) -> float:
        """Assumed runs of an instruction within so many loops."""
        return assumed_runs(self.while_execution_count, level)

    def nest_trip_count(self, instruction: Instruction) -> float:
        """Runs of an instruction: the product of the trips of all loops around it."""
        computation = instruction.computation
        trips = self._trips.get(computation)
        if trips is None:
            trips = 1.0
            for caller in self._callers(computation):
                if caller.opcode == "while":
                    known = self.trip_counts.of(caller)
                    count = self.while_execution_count if known is None else known
                    trips = single(trips * count)
            self._trips[computation] = trips
        return trips

    # -- benefits ------------------------------------------------------------

    def benefit(self, instruction: Instruction, alternate_seconds: float) -> float:
        """What `alternate_seconds` of memory traffic save.

        Seconds, times the assumed runs, if the instruction is memory bound; otherwise
        how far (negative seconds) it is from that.
        """
        compute, memory, _, often = self._basics(instruction)
        if memory > compute:
            return single(single(memory - alternate_seconds) * often)
        return single(memory - compute)

    def _basics(self, instruction: Instruction) -> tuple[float, float, float, float]:
        """Seconds of arithmetic and memory, total bytes, assumed runs."""
        known = self._basic.get(instruction)
        if known is None:
            level = self.nest_level(instruction, while_only=True)
            known = self._basic[instruction] = (
                self.compute(instruction),
                self.memory(instruction),
                self.total_bytes(instruction),
                self.while_multiplier(level),
            )
        return known

    def position_benefit(self, position: Position) -> float:
        """What defining the value there in alternate memory saves."""
        instruction, index = position
        return self._access_benefit(
            instruction, 0.0, self.output_bytes(instruction, index)
        )

    def use_benefit(self, use: Use) -> float:
        """What reading the value there from alternate memory saves."""
        instruction, number, index = use
        return self._access_benefit(
            instruction, self.operand_bytes(instruction, number, index), 0.0
        )

    def _access_benefit(
        self, instruction: Instruction, read: float, written: float
    ) -> float:
        if instruction.opcode in EXCLUDED:
            return 0.0
        total = self._basics(instruction)[2]
        return self.benefit(instruction, self._memory(total, read, written))

    def memory_boundedness(self, value: Value, size: int | None = None) -> float:
        """What placing a value's buffer in alternate memory is worth.

        The benefits of the definition and of all uses of the buffer's values are
        summed where they are positive; the result is divided by the square root of
        the size (by default the value's own). Cached by defining position.
        """
        known = self._boundedness.get(value.position)
        if known is not None:
            return known
        total = self.position_benefit(value.position)
        for buffer in self.alias.buffers_at(value.instruction, value.index):
            total = self._add_uses(total, buffer)
        divisor = value.byte_size() if size is None else size
        if self._scale and divisor > 0:
            total = single(total / math.sqrt(divisor))
        self._boundedness[value.position] = total
        return total

    def _add_uses(self, total: float, buffer: HloBuffer) -> float:
        """Add the benefits of a buffer's uses, in order.

        A positive total grows with each positive benefit; any other is replaced by a
        larger benefit. Rounding makes the order matter, so the sum starts from the
        total anew; long sums are vectorised.
        """
        positive, largest = self._uses_of(buffer)
        if not positive:
            return max(total, largest)
        if len(positive) > _MANY:
            # `accumulate` adds and rounds one by one, unlike `sum`.
            terms = np.array([max(total, 0.0), *positive], np.float32)
            return float(np.add.accumulate(terms)[-1])
        total = max(total, 0.0)
        for benefit in positive:
            total = single(total + benefit)
        return total

    def _uses_of(self, buffer: HloBuffer) -> tuple[list[float], float]:
        """Positive benefits of a buffer's uses, in order, and the largest of all."""
        known = self._uses.get(buffer.id)
        if known is None:
            benefits = [
                self.use_benefit(use)
                for member in buffer.values
                for use in member.uses
                if use.instruction.opcode not in ("while", "conditional")
            ]
            known = self._uses[buffer.id] = (
                [x for x in benefits if x > 0],
                max(benefits, default=-math.inf),
            )
        return known
