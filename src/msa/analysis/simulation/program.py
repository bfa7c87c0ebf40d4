"""From a module as it stands to the events that the simulated machine runs.

Which accesses are fast is read from the layouts' memory spaces; copies are
`copy-start` / `copy-done` pairs and asynchronous slices between the two memories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from msa.analysis.costs import InstructionCosts
from msa.analysis.flatten import FlattenedSchedule
from msa.analysis.memory_boundedness import EXCLUDED
from msa.analysis.simulation.engine import (
    DONE,
    ENTER,
    LEAVE,
    RUN,
    START,
    Event,
)
from msa.analysis.simulation.machine import TO_ALTERNATE, TO_DEFAULT
from msa.analysis.trip_counts import TripCounts
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import RUNNING_OPCODES
from msa.hlo.shape import Shape
from msa.target import Target

_MOVES: Final = frozenset({"copy", "slice", "dynamic-slice", "fusion"})
"""Operations that a copy engine performs when they are asynchronous."""


class StepCost(NamedTuple):
    """One step with its accesses where the layouts put them, seconds and bytes."""

    compute: float
    memory: float
    seconds: float
    idle: float


class Program:
    """Events of a module, and the cost of each step.

    Attributes:
        events: what happens, in order.
        costs: per step of the flattened schedule.
        trips: per step, how often it runs.
    """

    __slots__ = ("costs", "events", "trips")

    def __init__(
        self,
        schedule: FlattenedSchedule,
        costs: InstructionCosts,
        trip_counts: TripCounts,
        target: Target,
        *,
        alternate_memory_space: int,
        while_execution_count: int,
    ) -> None:
        self.events: list[Event] = []
        self.costs: list[StepCost] = []
        self.trips: list[float] = []
        maker = _Maker(
            schedule,
            costs,
            trip_counts,
            target,
            alternate_memory_space,
            while_execution_count,
        )
        maker.fill(self)


@dataclass(slots=True)
class _Maker:
    schedule: FlattenedSchedule
    costs: InstructionCosts
    trip_counts: TripCounts
    target: Target
    space: int
    while_execution_count: int

    def fill(self, program: Program) -> None:
        loops = self._loops()
        enters: dict[int, list[Instruction]] = {}
        for loop, begin in loops.items():
            enters.setdefault(begin, []).append(loop)
        nested: list[float] = [1.0]
        waiting = self.schedule.async_context
        for step, instruction in enumerate(self.schedule.instructions):
            # Loops that begin at one step: the outer one is the later instruction.
            for loop in reversed(enters.get(step, ())):
                trips = self._trips(loop)
                program.events.append(Event(ENTER, step, amount=trips))
                nested.append(nested[-1] * trips)
            event, cost = self._step(step, instruction)
            if instruction.computation in waiting:
                event = None
            if event is not None:
                program.events.append(event)
            program.costs.append(cost)
            if instruction in loops:
                program.events.append(Event(LEAVE, step))
                nested.pop()
            program.trips.append(nested[-1])

    def _loops(self) -> dict[Instruction, int]:
        """Loops whose parts lie right before them, with their first step."""
        spans = self.schedule.spans
        found: dict[Instruction, int] = {}
        for step, instruction in enumerate(self.schedule.instructions):
            if instruction.opcode == "while":
                body, condition = instruction.called_computations
                first, last = spans.get(condition), spans.get(body)
                if first and last and first[1] == last[0] and last[1] == step:
                    found[instruction] = first[0]
        return found

    def _trips(self, loop: Instruction) -> float:
        known = self.trip_counts.of(loop)
        return float(self.while_execution_count if known is None else known)

    def _step(
        self, step: int, instruction: Instruction
    ) -> tuple[Event | None, StepCost]:
        opcode = instruction.opcode
        if opcode in ("copy-start", "async-start"):
            return self._start(step, instruction), _FREE
        if opcode in ("copy-done", "async-done"):
            return self._done(step, instruction), _FREE
        if opcode in EXCLUDED or opcode == "while":
            return None, _FREE
        cost = self._cost(instruction)
        return Event(RUN, step, cost.seconds, cost.idle), cost

    # -- copies --------------------------------------------------------------

    def _start(self, step: int, instruction: Instruction) -> Event | None:
        moved = moved_shapes(instruction)
        if moved is None:
            return None
        source, result = moved
        direction = self._direction(source, result)
        if direction < 0:
            return None
        moved_bytes = float(result.byte_size())
        return Event(
            START, step, amount=moved_bytes, copy=instruction.id, direction=direction
        )

    def _done(self, step: int, instruction: Instruction) -> Event | None:
        start = instruction.operands[0]
        while start.opcode == "async-update":
            start = start.operands[0]
        moved = moved_shapes(start)
        if moved is None:
            return None
        direction = self._direction(*moved)
        if direction < 0:
            return None
        return Event(DONE, step, copy=start.id, direction=direction)

    def _direction(self, source: Shape, result: Shape) -> int:
        spaces = source.memory_space, result.memory_space
        if spaces == (0, self.space):
            return TO_ALTERNATE
        return TO_DEFAULT if spaces == (self.space, 0) else -1

    # -- instructions --------------------------------------------------------

    def _cost(self, instruction: Instruction) -> StepCost:
        target = self.target
        properties = self.costs.properties(instruction)
        compute = max(
            0.0,
            properties.flops / target.flops_per_second,
            properties.transcendentals / target.transcendentals_per_second,
        )
        total = max(0.0, properties.bytes_accessed)
        read, written = self._fast_bytes(instruction)
        slow = max(0.0, total - read - written) / target.default_memory_bandwidth
        memory = (
            read / target.alternate_read_bandwidth
            + written / target.alternate_write_bandwidth
            + slow
        )
        seconds = max(compute, memory)
        return StepCost(compute, memory, seconds, seconds - slow)

    def _fast_bytes(self, instruction: Instruction) -> tuple[float, float]:
        if instruction.opcode in RUNNING_OPCODES:
            return 0.0, 0.0
        space, costs = self.space, self.costs
        read = written = 0.0
        tuples = False
        for number, operand in enumerate(instruction.operands):
            shape = operand.shape
            if shape.is_tuple:
                tuples = True
            elif shape.memory_space == space:
                read += max(0.0, costs.operand_bytes(instruction, number, ()))
        shape = instruction.shape
        if shape.is_tuple:
            tuples = True
        elif shape.memory_space == space:
            written = max(0.0, costs.output_bytes(instruction, ()))
        if tuples:
            # A tuple may be much wider than what is read of it.
            for number, leaf, amount in costs.moved_elements(instruction):
                if leaf.memory_space == space:
                    if number < 0:
                        written += amount
                    else:
                        read += amount
        return read, written


def moved_shapes(start: Instruction) -> tuple[Shape, Shape] | None:
    """Source and result of an asynchronous copy or slice; None for anything else."""
    shape = start.shape
    if start.opcode == "copy-start":
        if not start.operands or len(shape.children) < 2:
            return None
        return start.operands[0].shape, shape.children[0]
    if start.opcode != "async-start" or not start.called_computations:
        return None
    root = start.called_computations[0].root
    if root.opcode not in _MOVES or not start.operands or len(shape.children) < 2:
        return None
    result = shape.children[1]
    return (start.operands[0].shape, result) if result.is_array else None


_FREE: Final = StepCost(0.0, 0.0, 0.0, 0.0)
