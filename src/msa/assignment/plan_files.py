"""A plan as files: JSON with everything, CSV with the copies."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msa.assignment.allocation import Allocation, CopyAllocation
from msa.assignment.plan_copies import PlanCopy
from msa.assignment.saved_plan import SavedPlan
from msa.files import write_text

if TYPE_CHECKING:
    from msa.assignment.assignment import Assignment


def plan_json(plan: Assignment, path: str | Path | None = None) -> str:
    """Everything that was decided, as JSON. Equal plans give equal text.

    Raises:
        FileFormatError: `path` cannot be written.
    """
    return saved_plan(plan).to_json(path)


def saved_plan(plan: Assignment) -> SavedPlan:
    """What a plan's file holds."""
    return SavedPlan(
        plan.module.name,
        plan.target,
        plan.options.strategy,
        plan.estimate,
        plan.alternate_peak_bytes,
        dict(plan.chunks),
        dict(plan.scoped_chunks),
        tuple(plan.copies),
        tuple(_allocation(plan, a) for a in plan.allocations),
        tuple(plan.decisions),
        tuple(x.name for x in plan.analyses.schedule.instructions),
    )


def _allocation(plan: Assignment, allocation: Allocation) -> dict[str, Any]:
    problem = plan.problem
    row: dict[str, Any] = {
        "kind": allocation.kind,
        "space": allocation.space.name.lower(),
        "position": problem.describe(allocation.position)
        if allocation.position.step < problem.end
        else "",
        "start": allocation.start,
        "end": allocation.end,
        "uses": [problem.describe_use(use) for use in allocation.uses],
    }
    if allocation.chunk is not None:
        row["offset"] = allocation.chunk.offset
        row["size"] = allocation.chunk.size
    if isinstance(allocation, CopyAllocation):
        row["start_after"] = allocation.start_after
        row["done_before"] = allocation.done_before
    return row


def plan_csv(plan: Assignment, path: str | Path | None = None) -> str:
    """The copies as CSV, one row each; also written to `path` if given.

    Raises:
        FileFormatError: `path` cannot be written.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> plan_csv(plan).splitlines()[0].split(",")[:3]
    ['kind', 'source', 'value']
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(PlanCopy)]
    writer.writerow(names)
    writer.writerows([getattr(copy, name) for name in names] for copy in plan.copies)
    return write_text(out.getvalue(), path)
