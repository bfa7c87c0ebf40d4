"""The pass after the algorithm: the same decisions, better timed, losses dropped."""

from __future__ import annotations

import dataclasses
from typing import Final

from msa.assignment.algorithm import AllocationResult
from msa.assignment.allocation import AllocationSequence, Use
from msa.assignment.estimate import Estimator, Flow
from msa.assignment.options import Options
from msa.assignment.outcomes import Decision, Outcome, Served
from msa.assignment.problem import Problem
from msa.assignment.refine.allowed import may_refine, may_retime
from msa.assignment.refine.draft import duplicate
from msa.assignment.refine.losses import drop_losses
from msa.assignment.refine.retime import Retimer

_SIMULATIONS: Final = 40


def refine(
    problem: Problem, result: AllocationResult, options: Options, before: float
) -> AllocationResult:
    """A result that takes no longer than the given one, nor than nothing placed.

    Copies that stall start earlier, or end later, where their chunks are free;
    prefetches that cost more than they bring are dropped. Each change is judged by
    the simulated time of the whole program. What the options ask for stays: the
    result is returned as it is if it was asked for as XLA makes it, or for limits on
    copies that a change could break.

    Args:
        problem: the problem.
        result: what the algorithm decided; not changed.
        options: as given to the algorithm.
        before: seconds with nothing placed.

    A bounded number of simulations, each linear in steps and allocations.
    """
    if not may_refine(problem, options):
        return result
    estimator = Estimator(problem)
    draft = duplicate(result.allocations)
    flow = Flow.of(estimator, draft)
    if may_retime(options):
        retimer = Retimer(problem, draft, flow)
        retimer.improve(_SIMULATIONS)
        run = retimer.run
    else:
        run = flow.run()
    draft = drop_losses(problem, draft, flow, run, before)
    return dataclasses.replace(
        result,
        allocations=draft,
        decisions=_with_losses(result.decisions, result.allocations, draft),
    )


def _with_losses(
    decisions: tuple[Decision, ...],
    before: AllocationSequence,
    after: AllocationSequence,
) -> tuple[Decision, ...]:
    """The log, told that some uses read slow memory after all: their copies cost more.

    Linear.
    """
    lost = _fast_uses(before) - _fast_uses(after)
    if not lost:
        return decisions
    return tuple(
        decision._replace(
            served=Served.DEFAULT,
            failures=Outcome.VIOLATES_ASYNC_COPY_RESOURCE,
        )
        if (decision.value, decision.use) in lost
        else decision
        for decision in decisions
    )


def _fast_uses(allocations: AllocationSequence) -> set[tuple[int, Use]]:
    return {(a.value, use) for a in allocations.in_alternate() for use in a.uses}
