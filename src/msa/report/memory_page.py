"""The page of a memory report: peak, timeline, buffers, donations, hints."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msa.report.page import asset, card, render_page
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.analysis.memory_report import LiveRow, MemoryReport

_WIDTH: Final = 1200
_HEIGHT: Final = 220
_ROWS: Final = 500
"""Rows of a table that the page holds; the rest is in the JSON form."""


def memory_page(report: MemoryReport) -> str:
    """A self-contained page: no network, works without scripts except filtering."""
    b = report.breakdown
    gap = report.peak_bytes / report.lower_bound - 1 if report.lower_bound else 0.0
    cards = "".join(
        (
            card(format_bytes(report.peak_bytes), "peak"),
            card(format_bytes(b.arguments), "arguments"),
            card(format_bytes(b.outputs), "outputs"),
            card(format_bytes(b.aliased), "of them in donated arguments"),
            card(format_bytes(b.temporaries), "temporaries"),
            card(format_bytes(b.padding), "padding"),
            card(f"{gap:.1%}", "above the bytes needed at once"),
            card(str(len(report.steps)), "steps"),
        )
    )
    step = report.steps[report.peak_step] if report.steps else "-"
    body = (
        f'<div class="cards">{cards}</div>'
        f"<h2>Bytes by step</h2>{timeline_svg(report)}"
        f"{_hints(report)}"
        f"<h2>At the peak: step {report.peak_step}, {html.escape(step)}</h2>"
        f"{_buffers(report)}{_donations(report)}"
    )
    lead = (
        f"{report.peak_bytes:,} bytes at the peak; no placement gets below "
        f"{report.lower_bound:,} with this schedule"
    )
    columns = _columns(report)
    capture: dict[str, Any] = {
        "columns": columns,
        "names": [report.steps[first] for first, _ in columns],
    }
    return render_page(report.module, lead, body, capture, asset("memory.js"))


def memory_fragment(report: MemoryReport) -> str:
    """The essence for a notebook: figures, timeline and the largest buffers."""
    rows = report.at_peak[:12]
    return (
        f"<div><b>{html.escape(report.module)}</b>: peak "
        f"{format_bytes(report.peak_bytes)} at step {report.peak_step}"
        f"{timeline_svg(report)}{_buffer_table(rows)}</div>"
    )


def _columns(report: MemoryReport) -> list[tuple[int, int]]:
    """(first step, highest value) per column of the picture."""
    values = report.timeline
    count = min(_WIDTH, len(values))
    columns = []
    for k in range(count):
        first = k * len(values) // count
        last = max(first + 1, (k + 1) * len(values) // count)
        part = values[first:last]
        at = int(part.argmax())
        columns.append((first + at, int(part[at])))
    return columns


def timeline_svg(report: MemoryReport) -> str:
    """Bytes over steps: arguments and outputs below, temporaries above."""
    columns = _columns(report)
    if not columns:
        return "<p>The program has no steps.</p>"
    top = max(max(value for _, value in columns), report.peak_bytes, 1)
    base = report.breakdown.total - report.breakdown.temporaries
    width = _WIDTH / len(columns)

    def y(value: int) -> float:
        return _HEIGHT - value / top * (_HEIGHT - 10)

    path = [f"M0 {_HEIGHT}"]
    for k, (_, value) in enumerate(columns):
        path.append(
            f"L{k * width:.1f} {y(value):.1f}L{(k + 1) * width:.1f} {y(value):.1f}"
        )
    path.append(f"L{_WIDTH} {_HEIGHT}Z")
    label = (
        f"Bytes in use by step, from {format_bytes(min(v for _, v in columns))} to "
        f"{format_bytes(max(v for _, v in columns))}"
    )
    return (
        f'<div class="chart"><svg id="timeline" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'preserveAspectRatio="none" width="100%" height="{_HEIGHT}" role="img" '
        f'aria-label="{html.escape(label)}">'
        f'<path d="{"".join(path)}" fill="#3f7fbf"/>'
        f'<rect x="0" y="{y(base):.1f}" width="{_WIDTH}" '
        f'height="{_HEIGHT - y(base):.1f}" fill="#8a94a3"/></svg></div>'
        '<div class="legend"><span><i style="background:#3f7fbf"></i>temporaries</span>'
        '<span><i style="background:#8a94a3"></i>arguments and outputs</span></div>'
    )


def _buffers(report: MemoryReport) -> str:
    tools = (
        '<div class="tools"><input id="filter" type="search" '
        'placeholder="Filter buffers, operations, source lines" '
        'aria-label="Filter buffers"></div>'
    )
    more = ""
    if len(report.at_peak) > _ROWS:
        more = f"<p>{len(report.at_peak) - _ROWS} smaller buffers are not listed.</p>"
    return tools + _buffer_table(report.at_peak[:_ROWS]) + more


def _buffer_table(rows: Sequence[LiveRow]) -> str:
    body = (
        (
            f"{row.bytes:,}",
            f"{row.padding_factor:.2f}×" if row.padding_factor != 1 else "",
            str(row.kind) + (", not written yet" if row.waiting else ""),
            row.buffer,
            row.shape,
            row.op_name,
            row.source,
        )
        for row in rows
    )
    head = ("bytes", "padding", "kind", "buffer", "shape", "operation", "source")
    return _table("at-peak", head, body, numbers=2)


def _donations(report: MemoryReport) -> str:
    if not report.donations:
        return ""
    rows = (
        (f"{d.bytes:,}", str(d.status), d.op_name or d.argument, d.reason)
        for d in report.donations[:_ROWS]
    )
    head = ("bytes", "status", "argument", "why")
    return "<h2>Donations</h2>" + _table("donations", head, rows, numbers=1)


def _hints(report: MemoryReport) -> str:
    if not report.hints:
        return ""
    items = "".join(
        f"<li><b>{html.escape(hint.kind)}</b>: {html.escape(hint.message)}"
        + (f" <code>{html.escape(hint.source)}</code>" if hint.source else "")
        + "</li>"
        for hint in report.hints[:50]
    )
    return f"<h2>Hints</h2><ul>{items}</ul>"


def _table(
    name: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int
) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=num' if i < numbers else ''}>{html.escape(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table id="{name}"><thead><tr>{cells(head, "th")}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )
