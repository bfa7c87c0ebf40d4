"""What the methods of a plan call: capture it, then report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msa.assignment.plan_files import plan_csv
from msa.files import write_text
from msa.report.capture import capture_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from msa.assignment import Assignment
    from msa.report.difference import PlanDiff

__all__ = [
    "plan_ascii",
    "plan_csv",
    "plan_diff",
    "plan_figure",
    "plan_html",
    "plan_notebook",
    "plan_perfetto",
]


def plan_html(plan: Assignment, path: str | Path | None = None) -> str:
    """One self-contained page; written to `path` if given.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> plan_html(plan).startswith("<!doctype html>")
    True
    """
    from msa.report.page import plan_page

    return write_text(plan_page(capture_plan(plan)), path)


def plan_perfetto(plan: Assignment, path: str | Path | None = None) -> str:
    """A trace of the modelled run in the Chrome JSON format; written if asked.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> plan_perfetto(plan).startswith('{"traceEvents"')
    True
    """
    from msa.report.perfetto import to_perfetto

    return write_text(to_perfetto(capture_plan(plan)), path)


def plan_ascii(plan: Assignment, width: int = 76, height: int = 20) -> str:
    """The offset × step map in characters.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> len(plan_ascii(plan, width=40, height=5).splitlines()) > 3
    True
    """
    from msa.report.ascii_map import ascii_map

    return ascii_map(capture_plan(plan), width, height)


def plan_figure(plan: Assignment) -> Figure:
    """The offset × time map as a matplotlib figure.

    Raises:
        UnsupportedError: matplotlib is not installed.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> figure = plan_figure(plan)  # doctest: +SKIP
    >>> figure.axes[0].get_xlabel() != ""  # doctest: +SKIP
    True
    """
    from msa.report.plots import plot_plan

    return plot_plan(capture_plan(plan))


def plan_notebook(plan: Assignment) -> str:
    """The essence for a notebook cell: figures and the map as SVG.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> "<svg" in plan_notebook(plan)
    True
    """
    from msa.report.notebook import plan_fragment

    return plan_fragment(capture_plan(plan))


def plan_diff(plan: Assignment, other: Assignment) -> PlanDiff:
    """What the other plan does differently.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> bool(plan_diff(plan, plan))
    False
    """
    from msa.report.difference import compare

    return compare(capture_plan(plan), capture_plan(other))
