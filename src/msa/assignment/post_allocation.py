"""What a compiler may still change once everything is placed.

A hook of the options is asked about every operation that reads nothing from alternate
memory. It may say that the operation is not needed, as its readers can read something
else; the reads are then served by what served the reads that they replace.

Reference: `MsaAlgorithm::ProcessPostAllocationTransformation` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msa.assignment.allocation import Index, Position, Use
from msa.assignment.conversions import ConversionResult
from msa.assignment.state import State
from msa.errors import OptionsError

#: `(instruction, operand number, index)`.
Read = tuple[Any, int, Index]


@dataclass(frozen=True, slots=True)
class PostAllocationUpdate:
    """What the hook wants changed.

    Attributes:
        removed: instructions that nothing will read; their allocations go.
        reads: read → read that takes its place, each as (instruction, operand number,
            index). Whatever serves the first serves the second instead, which has to
            be of the same shape.

    >>> PostAllocationUpdate().removed
    ()
    """

    removed: tuple[Any, ...] = ()
    reads: Mapping[Read, Read] = field(default_factory=dict)


def transform(state: State) -> None:
    """Ask the hook about every operation, in schedule order, and do what it says.

    Linear but for what the hook changes.

    Raises:
        OptionsError: it names an instruction that is not in the schedule.
    """
    hook = state.options.post_allocation_transformation_fn
    if hook is None:
        return
    keys = state.problem.keys
    steps = {key: step for step, key in enumerate(keys)}
    for step, key in enumerate(keys):
        if _is_asked_about(state, step):
            update = hook(key)
            if update is not None and update.removed:
                _apply(state, update, steps)


def _is_asked_about(state: State, step: int) -> bool:
    if state.alternate_operands.get(step):
        return False
    if state.conversions.results.get(step) is ConversionResult.SUCCESS:
        return False
    return not any(
        _is_written_in_place(state, operand)
        for operand in state.problem.operands[step]
        if operand >= 0 and state.problem.opcodes[operand] != "constant"
    )


def _is_written_in_place(state: State, step: int) -> bool:
    """Whether a reader of the step's result writes into its storage."""
    problem = state.problem
    value = problem.value_at.get(Position(step))
    if value is None:
        return False
    readers = {use.step for use in problem.values[value].uses}
    return any(
        problem.values[other].position.step in readers
        for other in problem.buffers[problem.values[value].buffer]
        if other != value
    )


def _apply(state: State, update: PostAllocationUpdate, steps: dict[Any, int]) -> None:
    removed = set(_steps_of(update.removed, steps))
    reads = {_use(old, steps): _use(new, steps) for old, new in update.reads.items()}
    kept = [a for a in state.allocations if a.position.step not in removed]
    state.allocations[:] = kept
    for allocation in kept:
        moved = [reads[use] for use in allocation.uses if use in reads]
        allocation.uses = [use for use in allocation.uses if use not in reads] + moved


def _steps_of(instructions: Iterable[Any], steps: dict[Any, int]) -> Iterable[int]:
    for instruction in instructions:
        if instruction not in steps:
            raise OptionsError(
                f"post_allocation_transformation_fn names {instruction!r}, which is "
                f"not in the schedule"
            )
        yield steps[instruction]


def _use(read: Read, steps: dict[Any, int]) -> Use:
    instruction, operand, index = read
    (step,) = _steps_of((instruction,), steps)
    return Use(step, operand, tuple(index))
