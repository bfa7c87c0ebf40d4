"""Schedulers: an order of instructions that keeps few bytes live.

One computation is ordered at a time (`list_order`, `dfs_order`, `bfs_order`,
`post_order`, `exact_order`); `schedule` does a whole module.
"""

from __future__ import annotations

from msa.analysis.schedulers.depth_first import (
    bfs_order,
    dfs_order,
    post_order,
    trivial_order,
)
from msa.analysis.schedulers.exact import ExactResult, exact_order
from msa.analysis.schedulers.list_scheduler import list_order
from msa.analysis.schedulers.live_bytes import StepBytes, live_bytes, sequence_peak
from msa.analysis.schedulers.local_values import LocalValues
from msa.analysis.schedulers.module_scheduler import (
    ComputationSchedule,
    find_schedule,
    schedule,
)
from msa.analysis.schedulers.update import update_schedule

__all__ = [
    "ComputationSchedule",
    "ExactResult",
    "LocalValues",
    "StepBytes",
    "bfs_order",
    "dfs_order",
    "exact_order",
    "find_schedule",
    "list_order",
    "live_bytes",
    "post_order",
    "schedule",
    "sequence_peak",
    "trivial_order",
    "update_schedule",
]
