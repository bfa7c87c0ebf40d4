"""Measured costs: profiles, the estimator that reads them, plans made with them."""

from __future__ import annotations

from msa.runtime.profile.estimator import (
    Aggregator,
    ConstantEstimator,
    Estimator,
    ProfileGuidedEstimator,
    longest_first,
)
from msa.runtime.profile.feedback import ProfiledCostModel, Replanned, replan
from msa.runtime.profile.profile import Profile

__all__ = [
    "Aggregator",
    "ConstantEstimator",
    "Estimator",
    "Profile",
    "ProfileGuidedEstimator",
    "ProfiledCostModel",
    "Replanned",
    "longest_first",
    "replan",
]
