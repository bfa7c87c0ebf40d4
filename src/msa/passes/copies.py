"""Copy insertion as a pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msa.analysis.copy_insertion import insert_copies
from msa.analysis.manager import AnalysisManager
from msa.hlo.module import Module


@dataclass(frozen=True, slots=True)
class InsertCopies:
    """Copies where values that must share storage are live at the same time."""

    name: ClassVar[str] = "copy-insertion"

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """See `Pass.apply`."""
        del analyses
        before = module.instruction_count
        replace_contents(module, insert_copies(module))
        return module.instruction_count != before


def replace_contents(module: Module, other: Module) -> None:
    """Make `module` hold what `other` holds; `other` must not be used afterwards."""
    if other is module:
        return
    for computation in other.computations:
        computation.module = module
    module.computations = other.computations
    module.entry = other.entry
    module.schedule = other.schedule
    module.aliases = other.aliases
    module.buffer_donors = other.buffer_donors
    module.entry_layout = other.entry_layout
    module.attributes = other.attributes
    module._next_id = other._next_id
    module._uniquer = None
