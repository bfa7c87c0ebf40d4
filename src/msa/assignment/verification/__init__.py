"""Independent verification of planned modules."""

from msa.assignment.verification.verify import verify_plan

__all__ = ["verify_plan"]
