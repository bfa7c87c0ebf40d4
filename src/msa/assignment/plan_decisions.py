"""The decision log of a plan, in the user's terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msa.assignment.algorithm import AllocationResult
from msa.assignment.outcomes import Outcome, Served
from msa.assignment.problem import Problem

REASONS: Final = {
    Outcome.OUT_OF_MEMORY: "no room: everything that fits is taken at that time",
    Outcome.PREVIOUS_NOT_IN_ALTERNATE: "it was in slow memory just before",
    Outcome.LIVE_RANGE_TOO_LONG: "too long until the use to keep the room for it",
    Outcome.LIVE_RANGE_TOO_SHORT: "too little time before the use to hide a copy",
    Outcome.OUT_OF_ASYNC_COPIES: "too many copies at once",
    Outcome.VIOLATES_ASYNC_COPY_RESOURCE: "no copy bandwidth left in that time",
    Outcome.REQUIRES_UNCOMMIT: "a value that shares its storage could not be placed",
    Outcome.ALL_SLICES_HAVE_THE_SAME_START_TIME: "slicing would not help",
    Outcome.CONFLICTING_PREFERRED_OFFSETS: "its partners lie at different addresses",
    Outcome.SYNC_DATA_MOVE_REPLACEMENT: "the copy that it replaces must stay",
}
"""What each failure means, for people."""


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """What was decided for one use of a value, or for a value as a whole.

    Attributes:
        value: `name{index}` of the value's definition.
        use: `name:operand{index}` of the use; empty for the whole value.
        bytes: size of the value.
        start, end: steps from the previous use (or definition) to this use, inclusive.
        served: how the use gets its value, in words.
        reasons: why not from fast memory, in words; empty if it is.
        attempt: number of the attempt, from 0; earlier ones were taken back.
        fast: whether the use reads from fast memory.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> [(d.value, d.fast) for d in plan.decisions if d.use][:1]
    [('n{}', True)]
    """

    value: str
    use: str
    bytes: int
    start: int
    end: int
    served: str
    reasons: tuple[str, ...]
    attempt: int
    fast: bool


def plan_decisions(
    problem: Problem, result: AllocationResult
) -> tuple[PlanDecision, ...]:
    """The log of one run, in order. Linear."""
    return (*_of_buffers(problem, result), *_of_uses(problem, result))


def _of_buffers(problem: Problem, result: AllocationResult) -> Iterator[PlanDecision]:
    for whole in result.buffer_decisions:
        value = problem.values[whole.value]
        yield PlanDecision(
            problem.describe(value.position),
            "",
            value.size,
            *value.live,
            "not considered",
            (whole.skipped.value,),
            0,
            False,
        )


def _of_uses(problem: Problem, result: AllocationResult) -> Iterator[PlanDecision]:
    for decision in result.decisions:
        value = problem.values[decision.value]
        reasons = [text for flag, text in REASONS.items() if flag & decision.failures]
        if decision.required_default:
            reasons.append("it must be in slow memory there")
        fast = decision.served in (Served.NO_COPY, Served.PREFETCH)
        yield PlanDecision(
            problem.describe(value.position),
            problem.describe_use(decision.use),
            value.size,
            decision.start,
            decision.end,
            decision.served.value,
            tuple(reasons),
            decision.attempt,
            fast,
        )
