"""Checks of the schedule; the textual order of a good computation is one."""

from __future__ import annotations

from collections.abc import Collection

from msa.hlo.computation import Computation
from msa.hlo.module import Module
from msa.hlo.verifier.report import Report


def check_schedule(
    report: Report, module: Module, disordered: Collection[Computation]
) -> None:
    """Check the schedule of a module, if it has one."""
    schedule = module.schedule
    if schedule is None:
        return
    members = set(module.computations)
    for computation in schedule:
        if computation not in members:
            report.module(f"schedules {computation.name}, not in the module")
    missing = [c for c in module.computations if c not in schedule]
    if (
        not disordered
        and all(
            list(schedule.sequence(c)) == c.instructions
            for c in module.computations
            if c in schedule
        )
        and module.embedded_computations().issuperset(missing)
    ):
        return
    for problem in schedule.check(module):
        report.module(f"schedule: {problem}")
