"""Faces of a plan: pages, traces, pictures, diffs, sweeps.

One capture (`capture_plan`, plain data with a versioned schema), many reporters. The
methods of `Assignment` call the `plan_…` functions.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.report.capture import PlanCapture as PlanCapture
    from msa.report.capture import capture_module as capture_module
    from msa.report.capture import capture_plan as capture_plan
    from msa.report.capture_io import capture_from_json as capture_from_json
    from msa.report.capture_io import capture_to_json as capture_to_json
    from msa.report.difference import PlanDiff as PlanDiff
    from msa.report.difference import compare as compare
    from msa.report.dot import neighbourhood as neighbourhood
    from msa.report.explanation_page import explanation_html as explanation_html
    from msa.report.faces import plan_ascii as plan_ascii
    from msa.report.faces import plan_csv as plan_csv
    from msa.report.faces import plan_diff as plan_diff
    from msa.report.faces import plan_figure as plan_figure
    from msa.report.faces import plan_html as plan_html
    from msa.report.faces import plan_notebook as plan_notebook
    from msa.report.faces import plan_perfetto as plan_perfetto
    from msa.report.sweeping import SweepResult as SweepResult
    from msa.report.sweeping import SweepRow as SweepRow
    from msa.report.sweeping import sweep as sweep

_HOMES = {
    "PlanCapture": "capture",
    "PlanDiff": "difference",
    "SweepResult": "sweeping",
    "SweepRow": "sweeping",
    "capture_from_json": "capture_io",
    "capture_module": "capture",
    "capture_plan": "capture",
    "capture_to_json": "capture_io",
    "compare": "difference",
    "explanation_html": "explanation_page",
    "neighbourhood": "dot",
    "plan_ascii": "faces",
    "plan_csv": "faces",
    "plan_diff": "faces",
    "plan_figure": "faces",
    "plan_html": "faces",
    "plan_notebook": "faces",
    "plan_perfetto": "faces",
    "sweep": "sweeping",
}

__all__ = [  # the names above, loaded on first use
    *_HOMES
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'msa.report' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"msa.report.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
