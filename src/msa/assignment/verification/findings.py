"""Violations found so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msa.errors import PlanError

_SHOWN: Final = 100


class Violation(NamedTuple):
    """One broken rule: its name, what is wrong, where, and the figures."""

    rule: str
    text: str
    where: str
    numbers: dict[str, int]


@dataclass(slots=True)
class Findings:
    """Collects violations; `check` raises them."""

    violations: list[Violation] = field(default_factory=list)

    def add(self, rule: str, text: str, where: str = "", **numbers: int) -> None:
        """Note a violation."""
        self.violations.append(Violation(rule, text, where, numbers))

    def check(self) -> None:
        """Raise the first violation, with all as text, if there is any."""
        if not self.violations:
            return
        first = self.violations[0]
        count = len(self.violations)
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise PlanError(
            first.text + more,
            rule=first.rule,
            numbers=first.numbers,
            violations=[
                f"{v.where}: {v.text}" if v.where else v.text
                for v in self.violations[:_SHOWN]
            ],
            rows=self.violations[:_SHOWN],
            where=first.where,
        )
