"""Handing the decisions for one iteration to all iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msa.assignment.allocation import Allocation, CopyAllocation, Position, Use
from msa.assignment.loop_optimizer.detect import Loop, find_loops
from msa.assignment.loop_optimizer.optimize import LoopOptimizer
from msa.assignment.loop_optimizer.values import ValueType
from msa.assignment.required import RequiredBy

if TYPE_CHECKING:
    from msa.assignment.state import State

_SUPPORTED = frozenset({ValueType.TEMPORARY, ValueType.PINNED, ValueType.PREFETCH})


@dataclass(frozen=True, slots=True)
class LoopDecision:
    """What the optimizer wants for one use.

    Attributes:
        index: of the use within its iteration.
        size: steps of an iteration.
        allocation: with times that are indices of the iteration.
    """

    index: int
    size: int
    allocation: Allocation

    def preferred_start(self, step: int) -> int | None:
        """When the copy for the use at that step should start; None if no copy."""
        copy = self.allocation
        if not isinstance(copy, CopyAllocation):
            return None
        start = copy.start_after
        if start == self.size - 1 and copy.done_before == 0:
            start = -self.size
        elif start + 1 >= copy.done_before:
            start -= self.size
        return step - self.index + start


def optimize_loops(state: State) -> dict[Use, LoopDecision]:
    """Decisions for the uses of all loops that are found and long enough."""
    options = state.options.memory_bound_loop_optimizer_options
    decisions: dict[Use, LoopDecision] = {}
    if not options.enabled or state.costs is None:
        return decisions
    for loop in find_loops(state.problem):
        if loop.iterations < max(options.min_num_iterations, 3):
            continue
        optimizer = LoopOptimizer(
            state.problem,
            state.costs,
            loop,
            state.capacity,
            state.alignment,
            options,
            dict(state.problem.scratch_bytes),
        )
        optimizer.optimize()
        _publish(state, loop, optimizer, decisions)
    return decisions


def _publish(
    state: State,
    loop: Loop,
    optimizer: LoopOptimizer,
    decisions: dict[Use, LoopDecision],
) -> None:
    first = loop.start + loop.size
    for value in optimizer.values:
        if value.kind not in _SUPPORTED:
            continue
        for allocation in value.allocations:
            for use in allocation.uses:
                index = use.step - first
                decision = LoopDecision(index, loop.size, allocation)
                for step in range(loop.start + index, loop.end + 1, loop.size):
                    decisions[Use(step, use.operand, use.index)] = decision
                if not allocation.is_alternate or allocation.is_copy_like:
                    _keep_parameter_in_default(state, loop, use)


def _keep_parameter_in_default(state: State, loop: Loop, use: Use) -> None:
    """What a loop hands into its body and is read in default memory stays there."""
    problem = state.problem
    number = problem.region_of[loop.start]
    if problem.regions[number].kind != "body":
        return
    operand = problem.operands[use.step][use.operand]
    value = problem.value_at.get(Position(operand, use.index))
    for position in () if value is None else problem.values[value].positions:
        if (
            problem.opcodes[position.step] == "parameter"
            and problem.region_of[position.step] == number
        ):
            assert value is not None
            state.required.require_default(
                value,
                position.step,
                RequiredBy.LOOP_PARAMETER,
                # XLA loses the requirement when the next proposal begins.
                pending=state.options.faithful,
            )
