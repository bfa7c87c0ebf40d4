"""Better timing of what was decided: copies earlier or later, losses dropped."""

from msa.assignment.refine.refine import refine

__all__ = ["refine"]
