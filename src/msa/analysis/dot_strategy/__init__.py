"""How a product of matrices is computed on a processor, and what it reads and writes.

`choose_strategy` picks between a library call, tiled loops, matrix–vector kernels and
plain loops; `plan_gemv` tiles a matrix–vector product, `run_gemv` executes the tiling
and counts, `traffic` states the same counts as formulas.

Source: `xla/service/cpu/dot_op_emitter.{h,cc}`.
"""

from __future__ import annotations

from msa.analysis.dot_strategy.execution import GemvRun, run_gemv
from msa.analysis.dot_strategy.gemv import (
    GemvPlan,
    Kernel,
    Traffic,
    plan_gemv,
    recommend_layout,
    reuse,
    traffic,
)
from msa.analysis.dot_strategy.strategy import (
    DotChoice,
    DotConfig,
    Strategy,
    choose_for,
    choose_strategy,
)

__all__ = [
    "DotChoice",
    "DotConfig",
    "GemvPlan",
    "GemvRun",
    "Kernel",
    "Strategy",
    "Traffic",
    "choose_for",
    "choose_strategy",
    "plan_gemv",
    "recommend_layout",
    "reuse",
    "run_gemv",
    "traffic",
]
