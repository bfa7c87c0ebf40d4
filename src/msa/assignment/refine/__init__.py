"""Better timing of what was decided: copies earlier or later, losses dropped."""

from msa.assignment.refine.losses import first_half
from msa.assignment.refine.refine import may_refine, may_retime, refine

__all__ = ["first_half", "may_refine", "may_retime", "refine"]
