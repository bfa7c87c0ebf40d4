"""What the place of a buffer is worth: seconds won by fast memory, or given away.

Each buffer is judged alone, with all others left where they are: the modelled time of
the instructions that read or write it, with its accesses moved to the other memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from msa.analysis.manager import AnalysisManager
from msa.analysis.memory_boundedness import EXCLUDED
from msa.analysis.simulation import Simulation
from msa.analysis.values import HloBuffer, Value
from msa.hlo.instruction import Instruction

_WITHOUT_TRAFFIC: Final = EXCLUDED | {"call", "conditional", "while"}


@dataclass(frozen=True, slots=True)
class Effect:
    """Seconds that fast memory saves, or would save, for the values of one buffer.

    Attributes:
        buffer: the storage.
        value: its first value that is judged.
        seconds: of one run of the program, all trips of loops counted.
        reads, writes: accesses per run of the instructions concerned.
    """

    buffer: HloBuffer
    value: Value
    seconds: float
    reads: int
    writes: int


def is_fast(value: Value, space: int = 1) -> bool:
    """Whether a value is an array in memory `space`."""
    shape = value.shape
    return shape.is_array and shape.memory_space == space


class Effects:
    """Effects of all buffers of a simulated module. Linear in positions and uses."""

    __slots__ = ("_analyses", "_simulation", "_steps", "_target", "losses", "wins")

    def __init__(self, simulation: Simulation, analyses: AnalysisManager) -> None:
        self._analyses = analyses
        self._simulation = simulation
        self._target = simulation.target
        self._steps = simulation.steps
        #: Effects of what is in fast memory, by buffer id.
        self.wins: dict[int, Effect] = {}
        #: Effects of what is not, by buffer id; only those above zero.
        self.losses: dict[int, Effect] = {}
        for buffer in analyses.alias.buffers:
            fast = [v for v in buffer.values if is_fast(v)]
            slow = [v for v in buffer.values if is_fast(v, 0)]
            if fast:
                self.wins[buffer.id] = self._effect(buffer, fast, to_fast=False)
            if slow:
                effect = self._effect(buffer, slow, to_fast=True)
                if effect.seconds > 0.0:
                    self.losses[buffer.id] = effect

    def _effect(
        self, buffer: HloBuffer, values: Iterable[Value], *, to_fast: bool
    ) -> Effect:
        """The difference that moving these values to the other memory makes."""
        read: dict[Instruction, float] = {}
        written: dict[Instruction, float] = {}
        costs = self._analyses.costs
        first: Value | None = None
        for value in values:
            first = first or value
            maker = value.instruction
            if self._counts(maker):
                size = max(0.0, costs.output_bytes(maker, value.index))
                written[maker] = written.get(maker, 0.0) + size
            for user, number, index in value.uses:
                if self._counts(user):
                    size = max(0.0, costs.operand_bytes(user, number, index))
                    read[user] = read.get(user, 0.0) + size
        assert first is not None
        seconds = 0.0
        for x in {**read, **written}:
            seconds += self._difference(
                x, read.get(x, 0.0), written.get(x, 0.0), to_fast
            )
        return Effect(buffer, first, seconds, len(read), len(written))

    def _counts(self, instruction: Instruction) -> bool:
        return (
            instruction.opcode not in _WITHOUT_TRAFFIC
            and self._analyses.schedule.time_of(instruction) >= 0
        )

    def _difference(
        self, instruction: Instruction, read: float, written: float, to_fast: bool
    ) -> float:
        """Seconds by which an instruction is faster with these bytes in fast memory."""
        target = self._target
        step = self._steps[self._analyses.schedule.time_of(instruction)]
        slow = (read + written) / target.default_memory_bandwidth
        fast = (
            read / target.alternate_read_bandwidth
            + written / target.alternate_write_bandwidth
        )
        moved = step.memory - (slow - fast) if to_fast else step.memory + (slow - fast)
        now, then = max(step.compute, step.memory), max(step.compute, max(0.0, moved))
        return ((now - then) if to_fast else (then - now)) * step.trip_count
