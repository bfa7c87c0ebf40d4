"""What instructions cost: operations, and bytes read and written."""

from __future__ import annotations

from msa.analysis.costs.costs import InstructionCosts
from msa.analysis.costs.options import CostOptions, CustomCallCost
from msa.analysis.costs.properties import Properties

__all__ = ["CostOptions", "CustomCallCost", "InstructionCosts", "Properties"]
