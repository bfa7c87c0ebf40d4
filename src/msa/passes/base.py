"""What a pass is: a value whose fields are its options."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from msa.analysis.manager import AnalysisManager
from msa.hlo.module import Module


@runtime_checkable
class Pass(Protocol):
    """A change of a module.

    Implementations are frozen dataclasses; `Pipeline` fills their fields from text.

    >>> from msa.passes import Pipeline, pass_names
    >>> "dce" in pass_names() or len(pass_names()) > 3
    True
    """

    name: ClassVar[str]

    def apply(self, module: Module, analyses: AnalysisManager) -> bool:
        """Edit the module in place; whether anything changed.

        The pipeline works on a clone, verifies it before and after, and forgets
        analyses when something changed.
        """
        ...
