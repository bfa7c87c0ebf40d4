"""When copies start and end, as lists of instructions per step.

Reference: `MemorySpaceAssignment::ScheduleAsynchronousCopies` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msa.assignment.lowering.state import LoweringState
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction


@dataclass(slots=True)
class CopySchedule:
    """Instructions to put around the steps of the input's flattened schedule.

    Attributes:
        before: step → ends of copies that go right before it.
        after: step → starts of copies that go right after it; -1 is the beginning.
    """

    before: dict[int, list[Instruction]] = field(default_factory=dict)
    after: dict[int, list[Instruction]] = field(default_factory=dict)


def schedule_copies(state: LoweringState) -> CopySchedule:
    """Evictions first, then prefetches, each in order of (end, start).

    A start that falls inside a called computation moves to the first later step of
    the copy's own computation. O(n log n) in the number of copies, plus the lengths
    of the callees that starts are moved across.
    """
    schedule = CopySchedule()
    for to_alternate in (False, True):
        steps = [t for t in state.transfers if t.to_alternate is to_alternate]
        steps.sort(key=lambda t: (t.done_before, t.start_after))
        for transfer in steps:
            if transfer.start is not None:
                after = _in_computation(
                    state.steps, transfer.start_after, transfer.start.computation
                )
                schedule.after.setdefault(after, []).append(transfer.start)
            schedule.before.setdefault(transfer.done_before, []).append(transfer.done)
    return schedule


def _in_computation(
    steps: list[Instruction], after: int, computation: Computation
) -> int:
    while after < len(steps) and steps[max(0, after)].computation is not computation:
        after += 1
    return after
