"""Whether a loop is limited by memory, and what fast memory would make of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from msa.analysis.costs import InstructionCosts
from msa.analysis.trip_counts import TripCounts
from msa.assignment.allocation import CopyAllocation
from msa.assignment.build import build_problem
from msa.assignment.costs import CostModel
from msa.assignment.loop_optimizer.detect import Loop
from msa.assignment.loop_optimizer.optimize import LoopOptimizer
from msa.assignment.options import Options
from msa.errors import UnsupportedError
from msa.hlo.instruction import Instruction
from msa.runtime.perf.running import kernels_below
from msa.runtime.perf.unrolling import unroll
from msa.target import Target
from msa.units import format_bytes, format_seconds


@dataclass(frozen=True, slots=True)
class OptimizedLoop:
    """One settled iteration as the memory-bound loop optimizer places it.

    Attributes:
        before, after: seconds of an iteration.
        prefetch_bytes: copied into fast memory per iteration.
        default_bytes, alternate_bytes: traffic of each memory per iteration, copies
            not counted.
        slack_bytes: what default memory could still move in an iteration.
        lower_bound: seconds: arithmetic, or traffic of either memory as placed.
    """

    before: float
    after: float
    prefetch_bytes: float
    default_bytes: float
    alternate_bytes: float
    slack_bytes: float
    lower_bound: float


@dataclass(frozen=True, slots=True)
class LoopBound:
    """One iteration of a loop with everything in default memory.

    Attributes:
        loop: name of the instruction.
        trips: iterations; None if not known.
        compute, memory: seconds of arithmetic and of traffic, nested loops included.
        seconds: of the iteration, each instruction taking the larger of both.
        bytes: of traffic.
        needed_bandwidth: bytes/s that would make traffic hide behind arithmetic.
        ratio: memory / compute, infinite without arithmetic.
        memory_bound: whether traffic takes longer than arithmetic.
        idle: per instruction of the iteration, `(name, bytes)` that default memory
            could move besides while it runs.
        optimized: None when the body is not a plain list of instructions.
        reason: why `optimized` is None, or an empty string.

    >>> LoopBound("w", 3, 1.0, 2.0, 2.0, 8.0, 8.0, 2.0, True, (), None, "nested").memory_bound
    True
    """

    loop: str
    trips: int | None
    compute: float
    memory: float
    seconds: float
    bytes: float
    needed_bandwidth: float
    ratio: float
    memory_bound: bool
    idle: tuple[tuple[str, float], ...]
    optimized: OptimizedLoop | None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None where a figure is infinite."""
        data = asdict(self)
        for name in ("needed_bandwidth", "ratio"):
            data[name] = None if data[name] == inf else data[name]
        return data

    def to_text(self) -> str:
        """For a terminal."""
        trips = "?" if self.trips is None else str(self.trips)
        kind = "memory" if self.memory_bound else "compute"
        lines = [
            (
                f"{self.loop} × {trips}: {format_seconds(self.seconds)} an iteration, "
                f"bound by {kind}: compute {format_seconds(self.compute)}, memory "
                f"{format_seconds(self.memory)} for {format_bytes(self.bytes)}"
            )
        ]
        if self.optimized is None:
            return "\n".join([*lines, f"  not optimized: {self.reason}"])
        o = self.optimized
        lines.append(
            f"  with fast memory {format_seconds(o.after)} (bound "
            f"{format_seconds(o.lower_bound)}), prefetching "
            f"{format_bytes(o.prefetch_bytes)}, {format_bytes(o.slack_bytes)} to spare"
        )
        return "\n".join(lines)


def loop_bound(
    loop: Instruction,
    target: Target,
    *,
    costs: InstructionCosts | None = None,
    options: Options | None = None,
) -> LoopBound:
    """Judge a `while` by one iteration.

    The body, repeated, is handed to the optimizer for memory-bound loops, which
    decides what of an iteration lives in fast memory.

    Raises:
        UnsupportedError: the instruction is not a while loop.

    Linear in the size of the body, plus the optimizer.

    >>> import msa
    >>> module = msa.parse('''
    ... body {
    ...   p = (s32[], f32[1024,1024]) parameter(0)
    ...   i = s32[] get-tuple-element(p), index=0
    ...   x = f32[1024,1024] get-tuple-element(p), index=1
    ...   one = s32[] constant(1)
    ...   next = s32[] add(i, one)
    ...   y = f32[1024,1024] negate(x)
    ...   z = f32[1024,1024] abs(y)
    ...   ROOT t = (s32[], f32[1024,1024]) tuple(next, z)
    ... }
    ... cond {
    ...   p = (s32[], f32[1024,1024]) parameter(0)
    ...   i = s32[] get-tuple-element(p), index=0
    ...   n = s32[] constant(10)
    ...   ROOT lt = pred[] compare(i, n), direction=LT
    ... }
    ... ENTRY main {
    ...   zero = s32[] constant(0)
    ...   x = f32[1024,1024] parameter(0)
    ...   t = (s32[], f32[1024,1024]) tuple(zero, x)
    ...   ROOT w = (s32[], f32[1024,1024]) while(t), condition=cond, body=body
    ... }''')
    >>> bound = loop_bound(module.entry.root, msa.Target.preset("tpu_v5e"))
    >>> bound.memory_bound, bound.trips, bound.optimized.after < bound.optimized.before
    (True, 10, True)
    """
    if loop.opcode != "while":
        raise UnsupportedError(
            f"{loop.name} is {loop.opcode}, not while", subject=loop.opcode
        )
    module = loop.computation.module
    known = costs or InstructionCosts.run(module)
    trip_counts = TripCounts.run(module)
    compute = memory = seconds = traffic = 0.0
    idle: list[tuple[str, float]] = []
    bandwidth = target.default_memory_bandwidth
    for x, runs in kernels_below(loop, trip_counts):
        arithmetic, moved = _figures(x, known, target)
        one = max(arithmetic, moved / bandwidth)
        compute += arithmetic * runs
        memory += moved / bandwidth * runs
        traffic += moved * runs
        seconds += one * runs
        idle.append((x.name, max(0.0, one - moved / bandwidth) * bandwidth))
    optimized, reason = _optimize(loop, target, options or Options())
    return LoopBound(
        loop.name,
        trip_counts.of(loop),
        compute,
        memory,
        seconds,
        traffic,
        traffic / compute if compute else inf,
        memory / compute if compute else inf,
        memory > compute,
        tuple(idle),
        optimized,
        reason,
    )


def _figures(
    x: Instruction, costs: InstructionCosts, target: Target
) -> tuple[float, float]:
    """Seconds of arithmetic, bytes of traffic."""
    properties = costs.properties(x)
    arithmetic = max(
        0.0,
        properties.flops / target.flops_per_second,
        properties.transcendentals / target.transcendentals_per_second,
    )
    return arithmetic, max(0.0, properties.bytes_accessed)


def _optimize(
    loop: Instruction, target: Target, options: Options
) -> tuple[OptimizedLoop | None, str]:
    unrolled, reason = unroll(loop)
    if unrolled is None:
        return None, reason
    problem = build_problem(unrolled.module, target, options)
    costs = CostModel(problem, options)
    place = Loop(unrolled.first, unrolled.first + 4 * unrolled.size - 1, unrolled.size)
    optimizer = LoopOptimizer(
        problem,
        costs,
        place,
        target.alternate_memory_bytes,
        target.alignment_bytes,
        options.memory_bound_loop_optimizer_options,
    )
    before = optimizer.execution_seconds()
    optimizer.optimize()
    after = optimizer.execution_seconds()
    start = unrolled.first + unrolled.size
    steps = range(unrolled.size)
    fast = [optimizer.fast_bytes(i) for i in steps]
    alternate = sum(read + written for read, written in fast)
    total = sum(float(costs.total_bytes[start + i]) for i in steps)
    prefetched = float(
        sum(
            value.size
            for value in optimizer.values
            for a in value.allocations
            if isinstance(a, CopyAllocation)
        )
    )
    bandwidth = target.default_memory_bandwidth
    slack = sum(optimizer.idle_seconds({})) * bandwidth - prefetched
    compute = sum(float(costs.compute[start + i]) for i in steps)
    fast_seconds = sum(
        read / target.alternate_read_bandwidth
        + written / target.alternate_write_bandwidth
        for read, written in fast
    )
    default = max(0.0, total - alternate)
    bound = max(compute, (default + prefetched) / bandwidth, fast_seconds)
    return (
        OptimizedLoop(
            before, after, prefetched, default, alternate, max(0.0, slack), bound
        ),
        "",
    )
