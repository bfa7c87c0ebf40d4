"""Computations compiled to register code."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.runtime.evaluator.channels import meets_channel
from msa.runtime.evaluator.collectives import COLLECTIVES


class Action(IntEnum):
    """What the interpreter does at a step."""

    COMPUTE = 0
    CALL = 1
    WHILE = 2
    CONDITIONAL = 3
    COLLECTIVE = 4
    ASYNC_START = 5
    ASYNC_UPDATE = 6
    ASYNC_DONE = 7


_ACTIONS = {
    "call": Action.CALL,
    "while": Action.WHILE,
    "conditional": Action.CONDITIONAL,
    "async-start": Action.ASYNC_START,
    "async-update": Action.ASYNC_UPDATE,
    "async-done": Action.ASYNC_DONE,
    **dict.fromkeys(COLLECTIVES, Action.COLLECTIVE),
}


class Step:
    """One instruction: where it reads and writes, and which registers die after it."""

    __slots__ = ("action", "dead", "instruction", "number", "operands", "slot")

    def __init__(
        self,
        instruction: Instruction,
        action: Action,
        operands: tuple[int, ...],
        slot: int,
        number: int,
    ) -> None:
        self.instruction = instruction
        self.action = action
        self.operands = operands
        self.slot = slot
        self.number = number
        self.dead: tuple[int, ...] = ()


class Code:
    """The steps of one computation in execution order.

    Args:
        computation: what to compile.
        inline_fusions: enter fusions like calls.
        results: what to compute instead of the root; the value is then a tuple.

    Attributes:
        steps: all instructions but parameters (with `results`, those needed).
        parameters: registers of the parameters, by number.
        roots: registers of the results.
        packed: whether the value is a tuple of `roots`, not a single register.
        size: number of registers.
        unused: parameter registers that nothing reads.
    """

    __slots__ = (
        "computation",
        "packed",
        "parameters",
        "roots",
        "size",
        "steps",
        "unused",
    )

    def __init__(
        self,
        computation: Computation,
        *,
        inline_fusions: bool,
        results: Sequence[Instruction] | None = None,
    ) -> None:
        order = execution_order(computation)
        if results is not None:
            needed = _needed(results)
            order = [x for x in order if x in needed or x.opcode == "parameter"]
        slots = {instruction: i for i, instruction in enumerate(order)}
        self.computation = computation
        self.size = len(order)
        self.packed = results is not None
        wanted = [computation.root] if results is None else results
        self.roots = tuple(slots[x] for x in wanted)
        self.parameters = tuple(slots[p] for p in computation.parameters)
        steps = []
        for number, instruction in enumerate(order):
            if instruction.opcode == "parameter":
                continue
            action = _ACTIONS.get(instruction.opcode, Action.COMPUTE)
            if meets_channel(instruction):
                action = Action.COLLECTIVE
            if inline_fusions and instruction.opcode == "fusion":
                action = Action.CALL
            operands = tuple(slots[x] for x in instruction.operands)
            steps.append(
                Step(instruction, action, operands, slots[instruction], number)
            )
        self.steps = tuple(steps)
        self.unused = self._mark_deaths()

    def _mark_deaths(self) -> tuple[int, ...]:
        seen = set(self.roots)
        for step in reversed(self.steps):
            dead = []
            for register in (*step.operands, step.slot):
                if register not in seen:
                    seen.add(register)
                    dead.append(register)
            step.dead = tuple(dead)
        return tuple(p for p in self.parameters if p not in seen)


def _needed(results: Sequence[Instruction]) -> set[Instruction]:
    """Everything that the results depend on, themselves included."""
    needed = set(results)
    stack = list(needed)
    while stack:
        for operand in stack.pop().operands:
            if operand not in needed:
                needed.add(operand)
                stack.append(operand)
    return needed


def execution_order(computation: Computation) -> Sequence[Instruction]:
    """The schedule's order, or any topological one when there is no schedule."""
    module = computation.module
    schedule = None if module is None else module.schedule
    if schedule is not None and computation in schedule:
        return schedule.sequence(computation)
    return computation.post_order()
