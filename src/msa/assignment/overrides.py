"""Overrides of the preferred prefetch start.

Reference: `GetOverriddenPreferredPrefetchTime` in
`xla/service/memory_space_assignment/memory_space_assignment_utils.cc`.
"""

from __future__ import annotations

from msa.assignment.filters import HloPositionMatcher, PreferredPrefetchOverride
from msa.assignment.problem import Problem
from msa.assignment.request import AllocationRequest
from msa.errors import OptionsError


class PreferredPrefetchOverrides:
    """Overrides with their anchor steps looked up once.

    Raises:
        OptionsError: an anchor instruction is not in the schedule.
    """

    __slots__ = ("_overrides", "_problem")

    def __init__(
        self, problem: Problem, overrides: tuple[PreferredPrefetchOverride, ...]
    ) -> None:
        self._problem = problem
        self._overrides = [(o, _anchor(problem, o)) for o in overrides]

    def __bool__(self) -> bool:
        return bool(self._overrides)

    def preferred(self, request: AllocationRequest) -> int | None:
        """The start that the first fitting override asks for.

        An override fits if its filter matches and its start is possible.
        """
        earliest = request.earliest_prefetch
        if earliest is None:
            earliest = request.start
        latest = request.latest_prefetch
        problem, use = self._problem, request.use.use
        for override, anchor in self._overrides:
            if not override.hlo_operand_filter.matches(
                request.source.size,
                problem.names[use.step],
                problem.text_of(use.step),
                use.operand,
                use.index,
            ):
                continue
            start = anchor
            if override.prefetch_eagerness is not None and earliest <= latest:
                start = int(
                    earliest + (latest - earliest) * override.prefetch_eagerness
                )
            if start is not None and earliest <= start <= latest:
                return start
        return None


def _anchor(problem: Problem, override: PreferredPrefetchOverride) -> int | None:
    """The start that an instruction fixes; None if the rule is another one."""
    if override.after_instruction is not None:
        return _find(problem, override.after_instruction)
    if override.before_instruction is not None:
        return _find(problem, override.before_instruction) - 1
    return None


def _find(problem: Problem, matcher: HloPositionMatcher) -> int:
    for step, name in enumerate(problem.names):
        if matcher.matches_instruction(name, problem.text_of(step)):
            return step
    raise OptionsError(
        f"no scheduled instruction matches {matcher!r} of a preferred prefetch override"
    )
