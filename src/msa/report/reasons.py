"""Why values are not in fast memory: the decision log in one line a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.assignment.explain import without_uses

if TYPE_CHECKING:
    from msa.assignment import Assignment


def plan_reasons(plan: Assignment) -> dict[str, str]:
    """`name{index}` of a value → what stood in the way, in a few words.

    The last attempt counts; reasons that concern several uses say how many.
    """
    last: dict[tuple[str, str], tuple[str, ...]] = {}
    for decision in plan.decisions:
        key = decision.value, decision.use
        last[key] = () if decision.fast else decision.reasons
    counts: dict[str, dict[str, int]] = {}
    for (value, _), reasons in last.items():
        mine = counts.setdefault(value, {})
        for reason in reasons:
            mine[reason] = mine.get(reason, 0) + 1
    found = {
        value: "; ".join(
            f"{reason} ({n} uses)" if n > 1 else reason for reason, n in mine.items()
        )
        for value, mine in counts.items()
    }
    fast = {a.value for a in plan.allocations if a.is_alternate}
    for other in plan.problem.values:
        name = plan.problem.describe(other.position)
        if other.id not in fast and name not in found:
            found[name] = without_uses(plan.problem, other)
    return found
