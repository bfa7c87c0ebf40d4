"""The page of a difference: both maps, the figures, the values treated differently."""

from __future__ import annotations

import html
from collections.abc import Sequence

from msa.report.difference import COLUMNS, PlanDiff, ValueChange, signed
from msa.report.notebook import map_svg, table_html
from msa.report.page import asset, card, render_page
from msa.units import format_bytes, format_seconds

_ROWS = 1000
"""Changes that the page lists; the rest is in the diff itself."""


def diff_page(diff: PlanDiff) -> str:
    """A self-contained page; its filter is the only script."""
    left, right = diff.before["estimate"], diff.after["estimate"]
    gain = right["after_seconds"] - left["after_seconds"]
    tone = "good" if gain < 0 else "bad" if gain > 0 else ""
    cards = "".join(
        (
            card(format_seconds(left["after_seconds"]), "first plan"),
            card(format_seconds(right["after_seconds"]), "second plan"),
            card(signed(gain), "second against first", tone),
            card(str(len(diff.changes)), "values treated differently"),
        )
    )
    maps = "".join(
        f"<h2>{title}: {html.escape(str(plan['target']['name']))}, "
        f"{format_bytes(plan['alternate_memory_bytes'])}</h2>"
        f'<div class="chart">{map_svg(plan, 1248, 260)}</div>'
        for title, plan in (("First", diff.before), ("Second", diff.after))
    )
    figures = ""
    if diff.figures:
        table = table_html(("", "first", "second"), diff.figures)
        figures = f'<h2>Figures</h2><div class="scroll">{table}</div>'
    body = f'<div class="cards">{cards}</div>{maps}{figures}{_changes(diff.changes)}'
    title = f"{diff.before['module']}: two plans"
    lead = "The plans are the same." if not diff else "What the second does differently"
    return render_page(title, lead, body, {}, asset("filter.js"))


def _changes(changes: Sequence[ValueChange]) -> str:
    if not changes:
        return ""
    rows = [change.cells() for change in changes[:_ROWS]]
    more = len(changes) - len(rows)
    rest = f"<p>… and {more} more values</p>" if more > 0 else ""
    return (
        "<h2>Values treated differently</h2>"
        '<div class="tools"><input id="filter" type="search" '
        'placeholder="Filter" aria-label="Filter values"></div>'
        f'<div class="scroll" id="rows">{table_html(COLUMNS, rows)}</div>{rest}'
    )
