"""Memory space assignment: the problem, the algorithm, lowering and verification."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.assignment.algorithm import AllocationResult as AllocationResult
    from msa.assignment.algorithm import MsaAlgorithm as MsaAlgorithm
    from msa.assignment.algorithm import run_greedy as run_greedy
    from msa.assignment.assignment import Assignment as Assignment
    from msa.assignment.bounds import lower_bound_seconds as lower_bound_seconds
    from msa.assignment.build import build_problem as build_problem
    from msa.assignment.existing_prefetches import (
        CustomCallPrefetch as CustomCallPrefetch,
    )
    from msa.assignment.explanation import ExplainedValue as ExplainedValue
    from msa.assignment.explanation import Explanation as Explanation
    from msa.assignment.finding import Competitor as Competitor
    from msa.assignment.finding import Finding as Finding
    from msa.assignment.lowering import lower as lower
    from msa.assignment.options import BufferColoring as BufferColoring
    from msa.assignment.options import CostAnalysisPicker as CostAnalysisPicker
    from msa.assignment.options import InstructionCountPicker as InstructionCountPicker
    from msa.assignment.options import (
        MemoryBoundLoopOptimizerOptions as MemoryBoundLoopOptimizerOptions,
    )
    from msa.assignment.options import Options as Options
    from msa.assignment.options import SlicedPrefetchOptions as SlicedPrefetchOptions
    from msa.assignment.plan_copies import PlanCopy as PlanCopy
    from msa.assignment.plan_decisions import PlanDecision as PlanDecision
    from msa.assignment.plan_estimate import Estimate as Estimate
    from msa.assignment.planning import assign as assign
    from msa.assignment.post_allocation import (
        PostAllocationUpdate as PostAllocationUpdate,
    )
    from msa.assignment.problem import Problem as Problem
    from msa.assignment.reason import Reason as Reason
    from msa.assignment.saved_plan import SavedPlan as SavedPlan
    from msa.assignment.verification import verify_plan as verify_plan

_HOMES = {
    "AllocationResult": "algorithm",
    "Assignment": "assignment",
    "BufferColoring": "options",
    "CostAnalysisPicker": "options",
    "CustomCallPrefetch": "existing_prefetches",
    "Competitor": "finding",
    "Estimate": "plan_estimate",
    "ExplainedValue": "explanation",
    "Explanation": "explanation",
    "Finding": "finding",
    "InstructionCountPicker": "options",
    "MemoryBoundLoopOptimizerOptions": "options",
    "MsaAlgorithm": "algorithm",
    "Options": "options",
    "PlanCopy": "plan_copies",
    "PlanDecision": "plan_decisions",
    "PostAllocationUpdate": "post_allocation",
    "Problem": "problem",
    "Reason": "reason",
    "SavedPlan": "saved_plan",
    "SlicedPrefetchOptions": "options",
    "assign": "planning",
    "build_problem": "build",
    "lower": "lowering",
    "lower_bound_seconds": "bounds",
    "run_greedy": "algorithm",
    "verify_plan": "verification",
}

__all__ = [  # the names above, loaded on first use
    *_HOMES
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'msa.assignment' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"msa.assignment.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
