"""How often loops run."""

from __future__ import annotations

from msa.hlo.instruction import Instruction
from msa.hlo.module import Module


class TripCounts:
    """Trips of loops."""

    __slots__ = ("_counts", "module")

    def __init__(self, module: Module, counts: dict[Instruction, int]) -> None:
        self.module = module
        self._counts = counts

    @classmethod
    def run(cls, module: Module, *, use_backend_config: bool = True) -> TripCounts:
        """Count."""
        return cls(module, {})

    def of(self, loop: Instruction) -> int | None:
        """Trips of a loop, None if not known."""
        return self._counts.get(loop)
