"""Estimated seconds: of instructions, of copies, and what fast memory is worth.

Seconds and bytes are single precision, rounded after every operation, bandwidths
are double, as in XLA's `cost_analysis.cc`: comparisons of such figures decide
placements, and plans are compared with XLA's to the byte.
"""

from __future__ import annotations

from ctypes import c_float
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from msa.analysis.memory_boundedness import assumed_runs
from msa.assignment.options import Options
from msa.assignment.problem import Problem, Value

Floats = NDArray[np.float32]


def single(x: float) -> float:
    """`x` rounded to single precision."""
    return c_float(x).value


def _seconds(size: Floats, bandwidth: float) -> Floats:
    """Bytes over bytes per second, rounded once."""
    return (size.astype(np.float64) / bandwidth).astype(np.float32)


class CostModel:
    """Seconds that the steps of a problem take, and benefits of placements.

    Attributes:
        compute: per step, seconds of arithmetic.
        memory: per step, seconds of memory traffic with everything in default memory.
        elapsed: per step, the larger of the two, pipeline overhead included.
        while_levels: per step, how many loops enclose it; one more entry (0) at the end.
        nest_levels: per step, how many regions enclose it; one more entry at the end.
        multipliers: per number of loops, how often the step is assumed to run.
    """

    __slots__ = (
        "_alternate_read",
        "_alternate_write",
        "_boundedness",
        "_compute_of",
        "_copy_rate",
        "_default",
        "_first_use",
        "_position_benefit",
        "_scale",
        "_summed",
        "_total_of",
        "_use_benefit",
        "_window",
        "compute",
        "elapsed",
        "memory",
        "multipliers",
        "nest_levels",
        "problem",
        "total_bytes",
        "while_levels",
    )

    def __init__(self, problem: Problem, options: Options) -> None:
        machine = problem.machine
        self.problem = problem
        self._default = machine.default_bandwidth
        self._alternate_read = machine.alternate_read_bandwidth
        self._alternate_write = machine.alternate_write_bandwidth
        scaling = options.async_copy_bandwidth_scaling_factor or machine.copy_scaling
        self._copy_rate = scaling * self._default
        self._scale = (
            options.alternate_memory_benefit_scaling_factor_for_large_buffers
            != "NO_SCALE"
        )
        self._window = np.float32(options.pipeline_overhead_window_size_mib * 2**20)
        self.compute: Floats = np.asarray(problem.compute_seconds, np.float32)
        self.total_bytes: Floats = np.asarray(problem.total_bytes, np.float32)
        self.memory: Floats = _seconds(self.total_bytes, self._default)
        self.elapsed: Floats = np.maximum(
            self.compute, self.memory + self._overhead(self.total_bytes)
        )
        # Single figures are read often: as plain numbers, not of arrays.
        self._compute_of: list[float] = self.compute.tolist()
        self._total_of: list[float] = self.total_bytes.tolist()
        region_of = np.asarray(problem.region_of, np.int64)
        self.while_levels = self._per_step(problem.while_levels, region_of)
        self.nest_levels = self._per_step(problem.nest_levels, region_of)
        deepest = max(problem.while_levels, default=0)
        self.multipliers = [
            assumed_runs(options.while_execution_count, level)
            for level in range(deepest + 1)
        ]
        self._boundedness: dict[int, float] = {}
        self._summed: dict[tuple[int, float], float] = {}
        self._rate_accesses()

    @staticmethod
    def _per_step(levels: list[int], region_of: NDArray[np.int64]) -> list[int]:
        per_step: list[int] = np.asarray(levels, np.int64)[region_of].tolist()
        return [*per_step, 0]

    def _overhead(self, default_bytes: Floats) -> Floats:
        """Seconds before the pipeline is full, when so many bytes are in default."""
        if not self._window:
            return np.zeros_like(self.compute)
        filled = np.minimum(self._window, default_bytes)
        share = np.divide(
            filled,
            self.total_bytes,
            out=np.zeros_like(filled),
            where=self.total_bytes > 0,
        )
        return share * self.compute

    # -- copies and single instructions --------------------------------------

    def copy_seconds(self, size: int) -> float:
        """Seconds that an asynchronous copy of `size` bytes takes."""
        return single(single(size) / self._copy_rate)

    def elapsed_reading(self, step: int, read: float) -> float:
        """Seconds of a step when `read` bytes of its operands are in fast memory."""
        total = self._total_of[step]
        slow = single(total - read)
        seconds = single(
            single(read / self._alternate_read) + single(slow / self._default)
        )
        compute = self._compute_of[step]
        if self._window and total > 0:
            filled = min(float(self._window), slow)
            seconds = single(seconds + single(single(filled / total) * compute))
        return max(compute, seconds)

    def saved_by_reading(self, step: int, read: float) -> float:
        """Seconds that a step saves when `read` bytes of it are in fast memory."""
        return float(self.elapsed[step]) - self.elapsed_reading(step, read)

    def elapsed_with(self, step: int, read: float, written: float) -> float:
        """Seconds of a step with so many bytes of it in fast memory."""
        slow = (self._total_of[step] - read - written) / self._default
        fast = read / self._alternate_read + written / self._alternate_write
        return max(self._compute_of[step], slow + fast)

    def idle_seconds(self, step: int, read: float, written: float) -> float:
        """Seconds that a step leaves the default memory alone.

        `read` and `written` bytes of it are in fast memory.
        """
        slow = (self._total_of[step] - read - written) / self._default
        return max(self.elapsed_with(step, read, written) - slow, 0.0)

    # -- benefits --------------------------------------------------------------

    def _rate_accesses(self) -> None:
        """Benefits of all definitions and uses at once."""
        values = self.problem.values
        define = np.fromiter((v.positions[0].step for v in values), np.int64)
        written = np.fromiter(
            (v.position_bytes[0] if v.position_bytes else 0.0 for v in values),
            np.float32,
        )
        self._position_benefit = self._benefits(
            define,
            _seconds(written, self._alternate_write)
            + _seconds(self.total_bytes[define] - written, self._default),
        ).tolist()
        steps = np.fromiter((u.step for v in values for u in v.uses), np.int64)
        read = np.fromiter(
            (
                x
                for v in values
                for x in (v.use_bytes if v.use_bytes else (0.0,) * len(v.uses))
            ),
            np.float32,
        )
        self._use_benefit = self._benefits(
            steps,
            _seconds(read, self._alternate_read)
            + _seconds(self.total_bytes[steps] - read, self._default),
        ).tolist()
        self._first_use = [0]
        for value in values:
            self._first_use.append(self._first_use[-1] + len(value.uses))

    def _benefits(self, steps: NDArray[np.int64], alternate: Floats) -> Floats:
        """Seconds saved, or (negative) how far the step is from being memory bound."""
        memory, compute = self.memory[steps], self.compute[steps]
        levels = np.asarray(self.while_levels, np.int64)[steps]
        often = np.asarray(self.multipliers, np.float32)[levels]
        benefit: Floats = np.where(
            memory > compute, (memory - alternate) * often, memory - compute
        ).astype(np.float32)
        return benefit

    def benefit(self, value: Value, size: int) -> float:
        """Seconds saved by placing the whole buffer in fast memory."""
        boundedness = self.memory_boundedness(value, size)
        return boundedness * sqrt(size) if self._scale else boundedness

    def memory_boundedness(self, value: Value, size: int) -> float:
        """What placing the value's buffer in fast memory is worth.

        Seconds saved by the definition and all uses of the buffer's values, summed
        over memory-bound ones, divided by the square root of the size; negative if
        nothing is memory bound. Cached by value.
        """
        known = self._boundedness.get(value.id)
        if known is not None:
            return known
        # Values of one buffer mostly start from one of few figures.
        key = (value.buffer, self._position_benefit[value.id])
        known = self._summed.get(key)
        total = self._summed[key] = self._sum(*key) if known is None else known
        if self._scale and size:
            total = single(total / sqrt(size))
        self._boundedness[value.id] = total
        return total

    def _sum(self, buffer: int, total: float) -> float:
        """What uses of a buffer are worth, added to what a definition is."""
        problem, opcodes = self.problem, self.problem.opcodes
        for member in problem.buffers[buffer]:
            first = self._first_use[member]
            for number, use in enumerate(problem.values[member].uses):
                if opcodes[use.step] in ("while", "conditional"):
                    continue
                benefit = self._use_benefit[first + number]
                if total > 0 and benefit > 0:
                    total = single(total + benefit)
                elif benefit > total:
                    total = benefit
        return total
