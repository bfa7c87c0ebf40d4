"""The new schedule: the old order with copies put in.

Reference: `MemorySpaceAssignment::FixSchedule` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from msa.assignment.lowering.copy_schedule import CopySchedule
from msa.assignment.lowering.state import LoweringState
from msa.errors import InternalError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction

_ON_DEMAND = frozenset({"bitcast", "tuple"})


def set_schedule(
    state: LoweringState, removed: set[Instruction], copies: CopySchedule
) -> None:
    """Give every computation of the clone its new sequence. Linear.

    Bitcasts and tuples go right before their first reader; ends of copies before a
    step go before starts after it, so that freed space can be used again.
    """
    inserter = _Inserter()
    known = set(state.steps)
    for step in range(-2, len(state.steps)):
        if step >= 0:
            instruction = state.steps[step]
            if instruction not in removed and not _waits_for_reader(instruction):
                inserter.insert(instruction)
                for element in _overwritten_elements(instruction, known):
                    inserter.insert(element)
        for done in copies.before.get(step + 1, ()):
            if done not in removed:  # a join of slices that nothing reads
                inserter.insert(done)
        for start in copies.after.get(step, ()):
            if start not in removed:  # a window that nothing reads
                inserter.insert(start)
    module = state.module
    schedule = module.schedule
    assert schedule is not None
    flattened = {instruction.computation for instruction in state.steps}
    for computation in list(schedule):
        if computation not in flattened:
            continue
        inserter.insert(computation.root)
        for instruction in computation.instructions:
            if instruction not in inserter.inserted:
                inserter.insert(instruction)
        sequence = inserter.sequences[computation]
        if len(sequence) != len(computation.instructions):
            raise InternalError(
                f"{computation.name}: {len(sequence)} instructions scheduled of "
                f"{len(computation.instructions)}"
            )
        schedule.set_sequence(computation, sequence)
        computation.instructions = list(sequence)


def _overwritten_elements(
    state: Instruction, known: set[Instruction]
) -> list[Instruction]:
    """Elements that lowering reads of a loop's state, which the loop writes over."""
    if not any(user.opcode == "while" for user in state.users):
        return []
    return [
        user
        for user in state.users
        if user.opcode == "get-tuple-element" and user not in known
    ]


def _waits_for_reader(instruction: Instruction) -> bool:
    return (
        instruction.opcode in _ON_DEMAND
        and not instruction.control_predecessors
        and not instruction.control_successors
    )


class _Inserter:
    """Appends instructions to sequences, whatever they need first."""

    __slots__ = ("inserted", "sequences")

    def __init__(self) -> None:
        self.inserted: set[Instruction] = set()
        self.sequences: dict[Computation, list[Instruction]] = {}

    def insert(self, instruction: Instruction) -> None:
        inserted = self.inserted
        if instruction in inserted:
            return
        sequence = self.sequences.setdefault(instruction.computation, [])
        stack = [(instruction, iter(_needs(instruction)))]
        waiting = {instruction}
        while stack:
            top, needs = stack[-1]
            for need in needs:
                if need in waiting:
                    raise InternalError(
                        f"{need.name} and {top.name} wait for each other"
                    )
                if need not in inserted:
                    stack.append((need, iter(_needs(need))))
                    waiting.add(need)
                    break
            else:
                stack.pop()
                waiting.discard(top)
                inserted.add(top)
                sequence.append(top)


def _needs(instruction: Instruction) -> tuple[Instruction, ...]:
    if instruction.control_predecessors:
        return (*instruction.operands, *instruction.control_predecessors)
    return instruction.operands
