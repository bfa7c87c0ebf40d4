"""Values that loops carry: when a loop may read fast memory, and what it brings in.

A loop-invariant value that is in alternate memory when the loop starts, and has a copy
in default memory, gets that copy handed into the body: if the body has to give the
room up, no eviction is needed there.
"""

from __future__ import annotations

from bisect import bisect_right

from msa.assignment.allocation import (
    AliasedOffset,
    MemorySpace,
    MirroredAllocation,
    ParentAllocation,
    Position,
)
from msa.assignment.allocation_values import AllocationValue, SegmentUse
from msa.assignment.problem import Problem, Region
from msa.assignment.segments.chunks import live_allocation
from msa.assignment.state import State


def body_of(problem: Problem, step: int) -> tuple[int, Region]:
    """Number and region of a loop's body."""
    for number in problem.called[step]:
        if problem.regions[number].kind == "body":
            return number, problem.regions[number]
    raise KeyError(step)


class RegionUses:
    """Steps at which values are really read (not only renamed), ascending."""

    __slots__ = ("_problem", "_steps")

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._steps: dict[int, list[int]] = {}

    def steps(self, value: int) -> list[int]:
        """Steps of the value's uses that are not trivial."""
        known = self._steps.get(value)
        if known is None:
            trivial = self._problem.is_trivial
            known = sorted(
                {
                    use.step
                    for use in self._problem.values[value].uses
                    if not trivial(use.step)
                }
            )
            self._steps[value] = known
        return known

    def first_after(self, value: int, step: int, otherwise: int) -> int:
        """The first such step after `step`, at most `otherwise`."""
        steps = self.steps(value)
        place = bisect_right(steps, step)
        return min(steps[place], otherwise) if place < len(steps) else otherwise


def loop_requires_default(state: State, use: SegmentUse) -> bool:
    """Whether the loop's result at the same place must be in default memory."""
    step, _, index = use.use
    if state.problem.opcodes[step] != "while":
        return False
    value = state.problem.value_at.get(Position(step, index))
    return value is not None and state.required.is_default(value, step)


def loop_benefits(state: State, region_uses: RegionUses, use: SegmentUse) -> bool:
    """Whether the body reads the value early enough to keep it in fast memory."""
    step, _, index = use.use
    problem = state.problem
    if problem.opcodes[step] != "while":
        return True
    body = body_of(problem, step)[1]
    parameter = body.parameters[0]
    value = problem.value_at.get(Position(parameter, index))
    if value is None:
        return False
    first = region_uses.first_after(value, parameter, body.root)
    if first == body.root:
        return False
    return state.picker.can_allocate_no_copy(
        problem.values[value].size, parameter, first
    )


def hand_default_copy_into_loop(
    state: State,
    target: AllocationValue,
    use: SegmentUse,
    end: int,
    values: list[AllocationValue],
    preferred: dict[int, AliasedOffset],
) -> None:
    """After a loop has been served from alternate memory.

    Prefers the same address for everything in the body, and gives body and result an
    allocation in default memory if the value is not changed by the loop.
    """
    step, _, index = use.use
    problem = state.problem
    if problem.opcodes[step] != "while":
        return
    live = live_allocation(target.sequence, end)
    if live is None or live.space is MemorySpace.DEFAULT:
        return
    number, body = body_of(problem, step)
    result = Position(step, index)
    if (
        state.options.enable_while_redundant_eviction_elimination
        and problem.value_at.get(result) == target.value.id
    ):
        original = next(
            (
                a
                for a in reversed(target.sequence)
                if a.space is MemorySpace.DEFAULT and a.position == target.position
            ),
            None,
        )
        if original is not None:
            inside = Position(body.parameters[0], index)
            for item in values:
                if item.position == inside:
                    item.sequence.append(
                        ParentAllocation(
                            value=item.value.id,
                            position=inside,
                            space=MemorySpace.DEFAULT,
                            chunk=None,
                            start=inside.step,
                            end=inside.step,
                            original=original,
                            loop=step,
                        )
                    )
                elif item.position == result:
                    item.sequence.append(
                        MirroredAllocation(
                            value=item.value.id,
                            position=original.position,
                            space=MemorySpace.DEFAULT,
                            chunk=None,
                            start=step,
                            end=step,
                            original=original,
                        )
                    )
    assert live.aliased_offset is not None
    preferred[number] = live.aliased_offset
