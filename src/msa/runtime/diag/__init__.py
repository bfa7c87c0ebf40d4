"""Diagnostics of memory: who takes it, when, what leaks, why it ran out.

Every report is a value with `to_text` and `to_dict`; equal inputs give equal text.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.runtime.diag.audits import AuditReport as AuditReport
    from msa.runtime.diag.audits import audit as audit
    from msa.runtime.diag.audits import audit_lifetimes as audit_lifetimes
    from msa.runtime.diag.collective import explain_lookup as explain_lookup
    from msa.runtime.diag.collective import explain_refusal as explain_refusal
    from msa.runtime.diag.collective import explain_timeouts as explain_timeouts
    from msa.runtime.diag.comparison import compare as compare
    from msa.runtime.diag.fragmentation import (
        FragmentationReport as FragmentationReport,
    )
    from msa.runtime.diag.fragmentation import (
        packing_fragmentation as packing_fragmentation,
    )
    from msa.runtime.diag.fragmentation import pool_fragmentation as pool_fragmentation
    from msa.runtime.diag.leaks import Leak as Leak
    from msa.runtime.diag.leaks import LeakReport as LeakReport
    from msa.runtime.diag.leaks import LeakWatch as LeakWatch
    from msa.runtime.diag.leaks import buffer_leaks as buffer_leaks
    from msa.runtime.diag.leaks import leak_report as leak_report
    from msa.runtime.diag.leaks import pool_leaks as pool_leaks
    from msa.runtime.diag.leaks import value_pool_leaks as value_pool_leaks
    from msa.runtime.diag.leaks import world_leaks as world_leaks
    from msa.runtime.diag.lifetimes import LifetimeDiagnosis as LifetimeDiagnosis
    from msa.runtime.diag.lifetimes import diagnose as diagnose
    from msa.runtime.diag.peak import PeakReport as PeakReport
    from msa.runtime.diag.peak import peak_report as peak_report
    from msa.runtime.diag.peak import top_buffers as top_buffers
    from msa.runtime.diag.redzones import RedzoneAllocator as RedzoneAllocator
    from msa.runtime.diag.remedies import assignment_shortfall as assignment_shortfall
    from msa.runtime.diag.remedies import pool_shortfall as pool_shortfall
    from msa.runtime.diag.sizes import human_bytes as human_bytes
    from msa.runtime.diag.timeline import heap_trace as heap_trace
    from msa.runtime.diag.timeline import usage_timeline as usage_timeline
    from msa.runtime.diag.totals import statistics as statistics
    from msa.runtime.diag.usage import usage_report as usage_report

_HOMES = {
    "AuditReport": "audits",
    "FragmentationReport": "fragmentation",
    "Leak": "leaks",
    "LeakReport": "leaks",
    "LeakWatch": "leaks",
    "LifetimeDiagnosis": "lifetimes",
    "PeakReport": "peak",
    "RedzoneAllocator": "redzones",
    "assignment_shortfall": "remedies",
    "audit": "audits",
    "audit_lifetimes": "audits",
    "buffer_leaks": "leaks",
    "compare": "comparison",
    "diagnose": "lifetimes",
    "explain_lookup": "collective",
    "explain_refusal": "collective",
    "explain_timeouts": "collective",
    "heap_trace": "timeline",
    "human_bytes": "sizes",
    "leak_report": "leaks",
    "packing_fragmentation": "fragmentation",
    "peak_report": "peak",
    "pool_fragmentation": "fragmentation",
    "pool_leaks": "leaks",
    "pool_shortfall": "remedies",
    "statistics": "totals",
    "top_buffers": "peak",
    "usage_report": "usage",
    "usage_timeline": "timeline",
    "value_pool_leaks": "leaks",
    "world_leaks": "leaks",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'msa.runtime.diag' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"msa.runtime.diag.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
