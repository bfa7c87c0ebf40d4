"""The page of a packing: figures, offset × time, and the buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msa.report.notebook import table_html
from msa.report.page import asset, card, render_page
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.heap import HeapPlan

_ROWS: Final = 1000
"""Buffers that the page lists, the largest first; the rest is in the plan's CSV."""


def heap_page(plan: HeapPlan) -> str:
    """A self-contained page of a packing; its filter is the only script."""
    above = plan.height / plan.lower_bound - 1 if plan.lower_bound else 0.0
    gap = "0 %" if plan.height == plan.lower_bound else f"{above:.2%}"
    figures = [
        card(format_bytes(plan.height), "height"),
        card(format_bytes(plan.lower_bound), "lower bound"),
        card(gap, "above the lower bound", "good" if plan.optimal else ""),
        card(str(len(plan.buffers)), "buffers"),
    ]
    if plan.capacity is not None:
        figures.insert(1, card(format_bytes(plan.capacity), "capacity"))
    body = (
        f'<div class="cards">{"".join(figures)}</div>'
        f'<h2>Offset × time</h2><div class="chart scroll">{plan.svg(1248, 480)}</div>'
        f"{_buffers(plan)}"
    )
    proof = "proved lowest" if plan.optimal else "not proved lowest"
    lead = f"{plan.height:,} bytes, {proof}; lower bound {plan.lower_bound:,} bytes"
    return render_page("Heap plan", lead, body, {}, asset("filter.js"))


def _buffers(plan: HeapPlan) -> str:
    pairs = list(zip(plan.buffers, plan.offsets, strict=True))
    pairs.sort(key=lambda pair: (-pair[0].size, pair[1]))
    rows = [
        (
            str(buffer.id),
            str(buffer.size),
            str(offset),
            f"[{buffer.start}, {buffer.end})",
            "pinned" if buffer.offset is not None else "",
            "" if buffer.group is None else str(buffer.group),
        )
        for buffer, offset in pairs[:_ROWS]
    ]
    head = ("buffer", "bytes", "offset", "time", "", "group")
    more = len(pairs) - len(rows)
    rest = f"<p>… and {more} smaller ones</p>" if more > 0 else ""
    return (
        '<h2>Buffers, the largest first</h2><div class="tools"><input id="filter" '
        'type="search" placeholder="Filter" aria-label="Filter buffers"></div>'
        f'<div class="scroll" id="rows">{table_html(head, rows)}</div>{rest}'
    )
