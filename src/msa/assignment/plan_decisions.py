"""The decision log of a plan, in the user's terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msa.assignment.algorithm import AllocationResult
from msa.assignment.finding import Competitor
from msa.assignment.judge import SKIPPED, Judge
from msa.assignment.outcomes import Served
from msa.assignment.problem import Problem
from msa.assignment.reason import Reason


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
        reason: the first of the reasons, for programs.
        competitors: what has the room or the bandwidth that it would need.
        change: what would have to change, in words; may be empty.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> [(d.value, d.fast, d.reason.value) for d in plan.decisions if d.use][:1]
    [('n{}', True, 'fast')]
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
    reason: Reason
    competitors: tuple[Competitor, ...] = ()
    change: str = ""

    @staticmethod
    def from_dict(row: Mapping[str, Any]) -> PlanDecision:
        """A decision from the plain data of `dataclasses.asdict`."""
        return PlanDecision(
            **{
                **row,
                "reasons": tuple(row["reasons"]),
                "reason": Reason(row["reason"]),
                "competitors": tuple(Competitor(**c) for c in row["competitors"]),
            }
        )


def plan_decisions(
    problem: Problem, result: AllocationResult, judge: Judge
) -> tuple[PlanDecision, ...]:
    """The log of one run, in order, with reasons of the finished plan."""
    return (*_of_buffers(problem, result, judge), *_of_uses(problem, result, judge))


def _of_buffers(
    problem: Problem, result: AllocationResult, judge: Judge
) -> Iterator[PlanDecision]:
    for whole in result.buffer_decisions:
        value = problem.values[whole.value]
        reason = SKIPPED[whole.skipped]
        yield PlanDecision(
            problem.describe(value.position),
            "",
            value.size,
            *value.live,
            "not considered",
            (reason.sentence,),
            0,
            bool(value.uses) and all(judge.is_fast(value, u) for u in value.uses),
            reason,
            change=reason.change,
        )


def _of_uses(
    problem: Problem, result: AllocationResult, judge: Judge
) -> Iterator[PlanDecision]:
    last = {(d.value, d.use): d for d in result.decisions}
    for decision in result.decisions:
        value = problem.values[decision.value]
        competitors: tuple[Competitor, ...] = ()
        reasons: tuple[str, ...]
        if last[decision.value, decision.use] is not decision:
            reason, change = Reason.TAKEN_BACK, ""
            fast = decision.served in (Served.NO_COPY, Served.PREFETCH)
            reasons = (reason.sentence,)
        else:
            found = judge.of_use(value, decision.use)
            reason, change = found[0].reason, found[0].change
            fast = reason is Reason.FAST
            competitors = found[0].competitors
            reasons = () if fast else tuple(dict.fromkeys(f.sentence for f in found))
        yield PlanDecision(
            problem.describe(value.position),
            problem.describe_use(decision.use),
            value.size,
            decision.start,
            decision.end,
            _served(decision.served, fast),
            reasons,
            decision.attempt,
            fast,
            reason,
            competitors,
            change,
        )


def _served(served: Served, fast: bool) -> str:
    """How the use was served when it was decided, if the plan still says so."""
    if not fast and served in (Served.NO_COPY, Served.PREFETCH):
        served = Served.DEFAULT
    if fast and served in (Served.DEFAULT, Served.DROPPED):
        served = Served.NO_COPY
    return served.value
