"""A plan in a notebook cell: figures, the map as SVG, the largest wins and losses."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from msa.report.capture import PlanCapture
from msa.report.capture_rows import EffectRow
from msa.units import format_bytes, format_seconds

_WIDTH: Final = 900
_HEIGHT: Final = 260
_BOXES: Final = 2000
"""Rectangles drawn; the largest ones are kept."""
_ROWS: Final = 6


def plan_fragment(capture: PlanCapture) -> str:
    """HTML without scripts, styles of its own inline, so that it fits any notebook."""
    estimate = capture["estimate"]
    figures = (
        f"<b>{html.escape(capture['module'])}</b> on "
        f"{html.escape(str(capture['target']['name']))}: "
        f"{format_seconds(estimate['before_seconds'])} → "
        f"<b>{format_seconds(estimate['after_seconds'])}</b> "
        f"({estimate['speedup']:.2f}×), "
        f"{format_bytes(capture['alternate_peak_bytes'])} of "
        f"{format_bytes(capture['alternate_memory_bytes'])} used, "
        f"{len(capture['copies'])} copies"
    )
    tables = _effects("saved by fast memory", capture["wins"]) + _effects(
        "fast memory would save", capture["losses"]
    )
    return (
        f"<div><p>{figures}</p>{map_svg(capture)}"
        f'<div style="display:flex;gap:2em;flex-wrap:wrap">{tables}</div></div>'
    )


def map_svg(capture: PlanCapture, width: int = _WIDTH, height: int = _HEIGHT) -> str:
    """Offset × step as SVG; hovering names buffers."""
    boxes = [row for row in capture["buffers"] if row["offset"] >= 0]
    if not boxes:
        return "<p>Nothing is placed in fast memory.</p>"
    boxes.sort(key=lambda row: -row["size"] * (row["end"] - row["start"]))
    steps = max(1, len(capture["steps"]["names"]))
    top = max(row["offset"] + row["size"] for row in boxes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        f' style="width:100%;max-width:{width}px;height:auto" role="img"',
        ' aria-label="Buffers in fast memory by step and offset">',
        f'<rect width="{width}" height="{height}" fill="#8881"/>',
    ]
    for row in boxes[:_BOXES]:
        left = row["start"] * width / steps
        across = max(0.7, (row["end"] - row["start"]) * width / steps)
        tall = max(0.7, row["size"] * height / top)
        up = height - row["offset"] * height / top - tall
        title = html.escape(
            f"{row['value']} ({row['kind']}): {format_bytes(row['size'])} at "
            f"{row['offset']}, steps {row['start']}–{row['end']}"
        )
        parts.append(
            f'<rect x="{left:.1f}" y="{up:.1f}" width="{across:.1f}" '
            f'height="{tall:.1f}" fill="hsl({hue(row["value"])} 48% 60%)" '
            f'stroke="#0003" stroke-width="0.5"><title>{title}</title></rect>'
        )
    parts.append("</svg>")
    return "".join(parts)


def hue(name: str) -> int:
    """A colour for a name, the same in every picture."""
    value = 0
    for character in name:
        value = (value * 31 + ord(character)) & 0xFFFFFFFF
    return value % 360


def _effects(title: str, rows: Sequence[EffectRow]) -> str:
    if not rows:
        return ""
    return table_html(
        (title, "", "bytes"),
        (
            (
                format_seconds(row["seconds"]),
                row["value"],
                format_bytes(row["bytes"]),
            )
            for row in rows[:_ROWS]
        ),
    )


def table_html(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A plain table."""
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
