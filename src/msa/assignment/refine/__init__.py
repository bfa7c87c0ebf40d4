"""Better timing of what was decided: copies earlier or later, losses dropped."""

from msa.assignment.refine.allowed import may_refine, may_retime, search_hindrance
from msa.assignment.refine.losses import first_half
from msa.assignment.refine.refine import refine

__all__ = ["first_half", "may_refine", "may_retime", "refine", "search_hindrance"]
