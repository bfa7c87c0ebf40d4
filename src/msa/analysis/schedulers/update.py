"""Bringing a schedule up to date after instructions were added or removed.

Source: `xla/hlo/ir/hlo_schedule.cc` (HloSchedule::Update).
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from msa.errors import ScheduleError
from msa.hlo.schedule import Schedule

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module


def update_schedule(module: Module) -> Schedule:
    """A schedule of the module as it is now, close to the one it has.

    Instructions that are still there keep their order; a new one runs right after
    the last instruction that it waits for. Where a control edge contradicts the old
    order, both of its ends are placed anew. Linear in instructions and edges.

    The module is not changed: assign the result to `module.schedule`.

    Raises:
        ScheduleError: the module has no schedule, or its edges form a cycle.
    """
    old = module.schedule
    if old is None:
        raise ScheduleError(
            "there is no schedule to update", hint="msa.schedule(module) makes one"
        )
    embedded = module.embedded_computations()
    sequences: dict[Computation, tuple[Instruction, ...]] = {}
    for computation in module.computations:
        if computation not in embedded:
            before = old.sequence(computation) if computation in old else ()
            sequences[computation] = tuple(_update(computation, before))
    schedule = Schedule(sequences)
    if schedule.check(module):
        # An old instruction came to need something that ran after it.
        for computation, sequence in sequences.items():
            schedule.set_sequence(computation, _stable_order(computation, sequence))
        problems = schedule.check(module)
        if problems:
            raise ScheduleError("; ".join(problems[:5]), where=module.name)
    return schedule


def _update(
    computation: Computation, before: tuple[Instruction, ...]
) -> list[Instruction]:
    present = set(computation.instructions)
    kept = _consistent([x for x in before if x in present])
    old = set(kept)
    waiting: dict[Instruction, int] = {}
    followers: dict[Instruction, list[Instruction]] = {}
    queue: deque[Instruction] = deque()
    for x in computation.instructions:
        if x in old:
            continue
        needs = dict.fromkeys((*x.operands, *_predecessors(x)))
        if not needs:
            queue.append(x)
            continue
        waiting[x] = len(needs)
        for need in needs:
            followers.setdefault(need, []).append(x)
    result: list[Instruction] = []

    def drain() -> None:
        while queue:
            x = queue.popleft()
            result.append(x)
            for follower in followers.get(x, ()):
                waiting[follower] -= 1
                if not waiting[follower]:
                    queue.append(follower)

    drain()
    for x in kept:
        queue.append(x)
        drain()
    return result


def _predecessors(x: Instruction) -> tuple[Instruction, ...]:
    """Control predecessors; an edge from an instruction to itself means nothing."""
    return tuple(p for p in x.control_predecessors if p is not x)


def _consistent(sequence: list[Instruction]) -> list[Instruction]:
    """The sequence without the ends of control edges that it contradicts."""
    place = {x: i for i, x in enumerate(sequence)}
    moved: set[Instruction] = set()
    for i, x in enumerate(sequence):
        for predecessor in _predecessors(x):
            if place.get(predecessor, -1) > i:
                moved.update((x, predecessor))
    return [x for x in sequence if x not in moved]


def _stable_order(
    computation: Computation, wanted: tuple[Instruction, ...]
) -> list[Instruction]:
    """The topological order that always runs the earliest wanted instruction.

    What a cycle blocks is left out. O(n log n).
    """
    place = {x: i for i, x in enumerate(wanted)}
    known = [x for x in computation.instructions if x not in place]
    for x in known:
        place[x] = len(place)
    waiting = {
        x: len(dict.fromkeys((*x.operands, *_predecessors(x))))
        for x in computation.instructions
    }
    heap = [(place[x], x) for x in computation.instructions if not waiting[x]]
    heapify(heap)
    result: list[Instruction] = []
    while heap:
        x = heappop(heap)[1]
        result.append(x)
        for follower in dict.fromkeys((*x._users, *x.control_successors)):
            if follower is not x:
                waiting[follower] -= 1
                if not waiting[follower]:
                    heappush(heap, (place[follower], follower))
    return result
