"""The figures by which a plan is judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """Modelled times of a plan, seconds.

    Attributes:
        before_seconds: the program with everything in default memory.
        after_seconds: the planned program; what `msa.simulate` says of it.
        lower_bound_seconds: no plan at this capacity takes less.
        copy_stall_seconds: part of `after_seconds` spent waiting for copies.

    >>> Estimate(3.0, 2.0, 1.0, 0.0).speedup
    1.5
    """

    before_seconds: float
    after_seconds: float
    lower_bound_seconds: float
    copy_stall_seconds: float

    @property
    def speedup(self) -> float:
        """How much faster the planned program is (1 for an empty program)."""
        if self.after_seconds <= 0.0:
            return 1.0
        return self.before_seconds / self.after_seconds
