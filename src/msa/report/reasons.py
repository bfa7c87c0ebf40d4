"""Why values are not in fast memory: what matters most of each value, when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msa.assignment.explain import reason_of
from msa.assignment.reason import Reason

if TYPE_CHECKING:
    from msa.assignment import Assignment
    from msa.assignment.explanation import SlowUse
    from msa.assignment.finding import Finding


class Why(NamedTuple):
    """Why one value is in slow memory.

    Attributes:
        code: an `msa.Reason`; empty if nobody knows.
        sentence: in words; says of how many uses.
        details: figures, who has the room or bandwidth, what would have to change.
        competitors: names of what has the room or the bandwidth.
    """

    code: str = ""
    sentence: str = ""
    details: tuple[str, ...] = ()
    competitors: tuple[str, ...] = ()


class PlanReasons:
    """`name{index}` of a value → why it, or some of its uses, is in slow memory."""

    __slots__ = ("_plan", "_values")

    def __init__(self, plan: Assignment) -> None:
        self._plan = plan
        describe = plan.problem.describe
        self._values = {describe(v.position): v for v in plan.problem.values}

    def __call__(self, name: str) -> Why:
        """What matters most: where fast memory would save the most time."""
        value = self._values.get(name)
        if value is None:
            return Why()
        reason, slow = reason_of(self._plan, value)
        if reason is Reason.FAST:
            found = self._plan._judge.of_definition(value)
            return Why(found.reason.value, found.sentence, *_figures((found,)))
        return _summary(reason, slow)


def _summary(reason: Reason, slow: tuple[SlowUse, ...]) -> Why:
    if not slow:
        return Why(reason.value, reason.sentence)
    most = max(slow, key=lambda use: use.findings[0].seconds)
    alike = sum(len(use.uses) for use in slow if use.reason is most.reason)
    return Why(
        most.reason.value,
        most.told + (f" ({alike} uses)" if alike > 1 else ""),
        *_figures(most.findings),
    )


def _figures(
    findings: tuple[Finding, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Details and names of competitors, each once."""
    return (
        tuple(dict.fromkeys(line for f in findings for line in f.lines())),
        tuple(dict.fromkeys(c.name for f in findings for c in f.competitors)),
    )
