"""When scratch is needed: for one step, or as long as what it belongs to runs.

A step's scratch is needed at that step, with two exceptions. An asynchronous
computation runs at some time between its start and its done, so its scratch is needed
from one to the other; its steps run one after the other and so share one room. Scratch
of a loop must keep clear of everything that the loop carries, so room for it is kept
while the loop runs; steps inside may use the same room for their own scratch, as the
loop itself does nothing while they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msa.assignment.problem import Problem

Piece = tuple[int, int, int]
"""First step, last step, bytes."""


class ScratchRoom(NamedTuple):
    """Room that scratch of several steps shares at one address.

    Attributes:
        pieces: disjoint in time, ascending; what is held.
        stays: step with scratch → inclusive steps in which it is needed.
        at_bottom: whether it lies at address 0.
    """

    pieces: list[Piece]
    stays: dict[int, tuple[int, int]]
    at_bottom: bool


def scratch_rooms(problem: Problem, sizes: Mapping[int, int]) -> list[ScratchRoom]:
    """Rooms of loops (outermost ones with scratch), then of asynchronous operations.

    Args:
        problem: names the steps.
        sizes: step → bytes of scratch.

    Steps with scratch in no room need it at their own step, at address 0. Linear in
    the number of steps and, per loop with scratch, in its steps.
    """
    dones = _dones(problem)
    asynchronous: dict[int, ScratchRoom] = {}
    loops: list[tuple[int, int]] = []
    plain: list[int] = []
    for step, size in sorted(sizes.items()):
        found = _asynchronous_span(problem, step, dones)
        if found is not None:
            region, start, end = found
            room = asynchronous.setdefault(region, ScratchRoom([], {}, False))
            size = max(size, room.pieces[0][2] if room.pieces else 0)
            room.pieces[:] = [(start, end, size)]
            room.stays[step] = (start, end)
            continue
        plain.append(step)
        if problem.opcodes[step] == "while":
            called = [problem.regions[n].start for n in problem.called.get(step, ())]
            loops.append((min(called, default=step), step))
    rooms = [
        _loop_room(loops, plain, sizes, loop)
        for loop in loops
        if not any(a <= loop[0] and loop[1] < b for a, b in loops)
    ]
    return [*rooms, *asynchronous.values()]


def _loop_room(
    loops: list[tuple[int, int]],
    plain: list[int],
    sizes: Mapping[int, int],
    outermost: tuple[int, int],
) -> ScratchRoom:
    first, last = outermost
    within = [x for x in loops if first <= x[0] and x[1] <= last]
    steps = [step for step in plain if first <= step <= last]
    needs = [0] * (last + 1 - first)
    for start, end in within:
        for step in range(start, end + 1):
            needs[step - first] = max(needs[step - first], sizes[end])
    for step in steps:
        needs[step - first] = max(needs[step - first], sizes[step])
    pieces: list[Piece] = []
    for step, size in enumerate(needs, first):
        if pieces and pieces[-1][2] == size:
            pieces[-1] = (pieces[-1][0], step, size)
        else:
            pieces.append((step, step, size))
    stays = {step: (step, step) for step in steps}
    stays.update({end: (start, end) for start, end in within})
    return ScratchRoom(pieces, stays, True)


def _dones(problem: Problem) -> dict[int, int]:
    """Start of an asynchronous chain → its done, where both are in one region."""
    following = {
        problem.operands[step][0]: step
        for step, opcode in enumerate(problem.opcodes)
        if opcode in ("async-update", "async-done") and problem.operands[step]
    }
    dones = {}
    for step, opcode in enumerate(problem.opcodes):
        if opcode != "async-start":
            continue
        last = step
        while last in following:
            last = following[last]
        if problem.opcodes[last] == "async-done":
            dones[step] = last
    return dones


def _asynchronous_span(
    problem: Problem, step: int, dones: Mapping[int, int]
) -> tuple[int, int, int] | None:
    """Innermost asynchronous region around a step, and when that may run.

    A computation in another asynchronous one may run whenever that may. A chain that
    ends out of reach lasts as long as the region it starts in.
    """
    innermost: int | None = None
    start = end = step
    number = problem.region_of[step]
    while problem.regions[number].caller >= 0:
        region = problem.regions[number]
        outer = problem.region_of[region.caller]
        if region.kind == "async":
            innermost = number if innermost is None else innermost
            start = min(start, region.start)
            end = max(end, dones.get(region.caller, problem.regions[outer].end - 1))
        number = outer
    return None if innermost is None else (innermost, start, end)
