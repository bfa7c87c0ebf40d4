"""Scheduling as a pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msa.analysis.manager import AnalysisManager
from msa.analysis.schedulers import schedule
from msa.errors import OptionsError
from msa.hlo.module import Module
from msa.passes.copies import replace_contents

_ALGORITHMS = ("list", "dfs", "postorder", "best")


@dataclass(frozen=True, slots=True)
class ScheduleModule:
    """A memory-minimising order for every computation of control flow."""

    algorithm: str = "best"
    name: ClassVar[str] = "schedule"

    def __post_init__(self) -> None:
        if self.algorithm not in _ALGORITHMS:
            raise OptionsError(
                f"algorithm is one of {', '.join(_ALGORITHMS)}, not {self.algorithm!r}"
            )

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`."""
        del analyses
        replace_contents(module, schedule(module, self.algorithm))
        return True
