"""Memory space assignment for tensor programs.

Give it a scheduled HLO module and a machine; it decides which buffer lives in fast
memory, when, and at which offset, inserts the copies, and proves the result by
running it.

    import msa
    module = msa.load("gpt2.hlo")
    plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    print(plan.summary())

Everything public is importable from here; submodules are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from msa.errors import (
    CapacityError,
    ExecutionError,
    FileFormatError,
    HloError,
    HloParseError,
    HloVerifyError,
    InternalError,
    MsaError,
    OptionsError,
    PlanError,
    RuntimeMemoryError,
    SanitizerError,
    ScheduleError,
    TargetError,
    UnitError,
    UnsupportedError,
)
from msa.version import VERSION

if TYPE_CHECKING:
    from msa.analysis import analyze as analyze
    from msa.analysis import schedule as schedule
    from msa.analysis import simulate as simulate
    from msa.assignment import Assignment as Assignment
    from msa.assignment import Options as Options
    from msa.assignment import Reason as Reason
    from msa.assignment import assign as assign
    from msa.heap import HeapPlan as HeapPlan
    from msa.heap import fits as fits
    from msa.heap import pack as pack
    from msa.hlo import Module as Module
    from msa.hlo import load as load
    from msa.hlo import parse as parse
    from msa.integrations.jax import from_compiled as from_compiled
    from msa.integrations.jax import from_jax as from_jax
    from msa.integrations.jax import from_lowered as from_lowered
    from msa.report import sweep as sweep
    from msa.runtime import execute as execute
    from msa.target import Target as Target

__version__ = VERSION

_LAZY = {
    "Module": "msa.hlo",
    "parse": "msa.hlo",
    "load": "msa.hlo",
    "Target": "msa.target",
    "analyze": "msa.analysis",
    "schedule": "msa.analysis",
    "simulate": "msa.analysis",
    "assign": "msa.assignment",
    "Assignment": "msa.assignment",
    "Options": "msa.assignment",
    "Reason": "msa.assignment",
    "pack": "msa.heap",
    "fits": "msa.heap",
    "HeapPlan": "msa.heap",
    "execute": "msa.runtime",
    "sweep": "msa.report",
    "from_compiled": "msa.integrations.jax",
    "from_jax": "msa.integrations.jax",
    "from_lowered": "msa.integrations.jax",
}
_SUBPACKAGES = frozenset(
    {
        "analysis",
        "assignment",
        "cli",
        "dealloc",
        "errors",
        "heap",
        "hlo",
        "integrations",
        "passes",
        "pipeline",
        "report",
        "runtime",
        "target",
        "testing",
        "units",
    }
)

__all__ = [
    "Assignment",
    "CapacityError",
    "ExecutionError",
    "FileFormatError",
    "HeapPlan",
    "HloError",
    "HloParseError",
    "HloVerifyError",
    "InternalError",
    "Module",
    "MsaError",
    "Options",
    "OptionsError",
    "PlanError",
    "Reason",
    "RuntimeMemoryError",
    "SanitizerError",
    "ScheduleError",
    "Target",
    "TargetError",
    "UnitError",
    "UnsupportedError",
    "analyze",
    "assign",
    "execute",
    "fits",
    "from_compiled",
    "from_jax",
    "from_lowered",
    "load",
    "pack",
    "parse",
    "schedule",
    "simulate",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    if name in _SUBPACKAGES:
        return importlib.import_module(f"msa.{name}")
    raise AttributeError(f"module 'msa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_SUBPACKAGES})
