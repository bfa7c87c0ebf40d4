"""Pictures with matplotlib (extra `viz`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msa.errors import UnsupportedError
from msa.report.notebook import hue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from msa.report.capture import PlanCapture
    from msa.report.sweeping import SweepResult


def figure(width: float, height: float) -> tuple[Figure, Any]:
    """A figure with one set of axes, free of global state.

    Raises:
        UnsupportedError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError(
            "plots need matplotlib",
            subject="matplotlib",
            hint="pip install 'msa[viz]', or use .html() or .ascii()",
        ) from error
    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.add_subplot()


def plot_sweep(result: SweepResult) -> Figure:
    """Capacity → modelled time, one line per module and target, knees marked."""
    made, axes = figure(8, 5)
    for module, target in sorted({(row.module, row.target) for row in result.rows}):
        curve = result.curve(module, target)
        sizes = [row.alternate_memory_bytes / 2**20 for row in curve]
        times = [row.after_seconds * 1e3 for row in curve]
        (line,) = axes.plot(sizes, times, marker="o", label=f"{module} on {target}")
        knee = result.knee(module, target)
        if knee is not None:
            axes.plot(
                [knee.alternate_memory_bytes / 2**20],
                [knee.after_seconds * 1e3],
                marker="*",
                markersize=16,
                color=line.get_color(),
            )
    axes.set_xscale("log", base=2)
    axes.set_xlabel("fast memory, MiB")
    axes.set_ylabel("modelled time, ms")
    axes.legend()
    return made


def plot_plan(capture: PlanCapture) -> Figure:
    """Offset × step of a plan."""
    made, axes = figure(11, 5)
    from matplotlib.colors import hsv_to_rgb
    from matplotlib.patches import Rectangle

    top = 1
    for row in capture["buffers"]:
        if row["offset"] < 0:
            continue
        top = max(top, row["offset"] + row["size"])
        axes.add_patch(
            Rectangle(
                (row["start"], row["offset"] / 2**20),
                row["end"] - row["start"],
                row["size"] / 2**20,
                facecolor=hsv_to_rgb((hue(row["value"]) / 360, 0.45, 0.85)),
                edgecolor="black",
                linewidth=0.2,
            )
        )
    axes.set_xlim(0, max(1, len(capture["steps"]["names"])))
    axes.set_ylim(0, top / 2**20 * 1.02)
    axes.set_xlabel("step")
    axes.set_ylabel("offset, MiB")
    axes.set_title(
        f"{capture['module']} on {capture['target']['name']}: "
        f"{capture['estimate']['speedup']:.2f}×"
    )
    return made
