"""The text form of a memory report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.analysis.memory_report.model import MemoryReport

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 72


def report_text(report: MemoryReport, rows: int) -> str:
    """Peak, breakdown, timeline, buffers at the peak, donations and hints."""
    b = report.breakdown
    step = report.steps[report.peak_step] if report.steps else "-"
    peak = f"{report.peak_bytes:,} B ({format_bytes(report.peak_bytes)})"
    lines = [
        f"{report.module}: peak {peak} at step {report.peak_step} ({step})",
        f"  arguments   {b.arguments:>16,}",
        f"  outputs     {b.outputs:>16,}",
        f"  aliased    {-b.aliased:>17,}",
        f"  temporaries {b.temporaries:>16,}",
        f"  constants   {b.constants:>16,}  (part of the program)",
        f"  padding     {b.padding:>16,}  (within the above)",
        f"  lower bound {report.lower_bound:>16,}",
    ]
    lines += [f"  space {space:<6}{size:>16,}" for space, size in report.other_spaces]
    lines += ["", _sparkline(report.timeline.tolist())]
    lines += ["", f"At the peak ({len(report.at_peak)} buffers):"]
    lines += _buffers(report, rows)
    if report.donations:
        lines += ["", "Donations:"]
        for d in report.donations[:rows]:
            lines.append(
                f"  {d.status:<9} {format_bytes(d.bytes):>10}  {d.argument}: {d.reason}"
            )
        lines += _more(len(report.donations), rows)
    if report.hints:
        lines += ["", "Hints:"]
        for hint in report.hints[:rows]:
            where = f" ({hint.source})" if hint.source else ""
            lines.append(f"  {hint.kind}: {hint.message}{where}")
        lines += _more(len(report.hints), rows)
    return "\n".join(lines)


def _buffers(report: MemoryReport, rows: int) -> list[str]:
    table = [("bytes", "padding", "kind", "buffer", "shape", "operation", "source")]
    table.extend(
        (
            f"{row.bytes:,}",
            f"{row.padding_factor:.2f}x" if row.padding_factor != 1 else "",
            str(row.kind) + (" (waiting)" if row.waiting else ""),
            _short(row.buffer, 32),
            _short(row.shape, 28),
            _short(row.op_name, 36),
            row.source,
        )
        for row in report.at_peak[:rows]
    )
    widths = [max(len(line[i]) for line in table) for i in range(6)]
    lines = []
    for line in table:
        cells = [line[0].rjust(widths[0])]
        cells += [line[i].ljust(widths[i]) for i in range(1, 6)]
        lines.append(("  " + "  ".join(cells) + "  " + line[6]).rstrip())
    return lines + _more(len(report.at_peak), rows)


def _more(count: int, shown: int) -> list[str]:
    return [f"  … and {count - shown} more"] if count > shown else []


def _short(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]


def _sparkline(values: Sequence[int]) -> str:
    """The timeline in one line: the highest value of each column."""
    if not values:
        return ""
    columns = min(_WIDTH, len(values))
    low, high = min(values), max(values)
    marks = []
    for k in range(columns):
        first = k * len(values) // columns
        last = max(first + 1, (k + 1) * len(values) // columns)
        part = max(values[first:last])
        level = 8 if high == low else round(8 * (part - low) / (high - low))
        marks.append(_BARS[level])
    return f"  {''.join(marks)}  {format_bytes(low)} … {format_bytes(high)}"
