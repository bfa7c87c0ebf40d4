"""Self-contained HTML pages: styles, script and data in one file, no network."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any, Final

from msa.report.capture import PlanCapture
from msa.units import format_bytes, format_seconds
from msa.version import VERSION

_PLAN_BODY: Final = """\
{cards}
<h2>Fast memory: offset × step</h2>
<div class="tools" role="toolbar" aria-label="map">
<input id="search" type="search" placeholder="Search buffers, operations, source lines"
 aria-label="Search buffers">
<span id="found" role="status"></span>
<button id="zoom-in" aria-label="Zoom in">+</button>
<button id="zoom-out" aria-label="Zoom out">−</button>
<button id="zoom-all">Whole program</button>
<button id="axis" aria-pressed="false">Scale by time</button>
</div>
<div class="chart"><canvas id="map-canvas" tabindex="0" role="img"
 aria-label="Buffers in fast memory by step and offset. Arrow keys move, plus and minus
 zoom, n and p walk through buffers."></canvas></div>
<div class="chart"><canvas id="occupancy-canvas" role="img"
 aria-label="Bytes of fast memory in use by step"></canvas></div>
<div class="chart"><canvas id="lanes-canvas" role="img"
 aria-label="Compute, prefetches and evictions by step"></canvas></div>
<div class="legend"><span><i style="background:var(--compute)"></i>compute</span>
<span><i style="background:var(--stall)"></i>waiting for a copy</span>
<span><i style="background:var(--prefetch)"></i>prefetch</span>
<span><i style="background:var(--evict)"></i>eviction</span></div>
<div id="detail" aria-live="polite"></div>
<h2>Why: what fast memory saves, and what is left out</h2>
<div class="split"><div id="wins"></div><div id="losses"></div></div>
<h2>Fast memory at its fullest</h2><div id="peak"></div>
<h2>Copies</h2><div id="copies"></div>
<h2>Buffers in fast memory</h2><div id="buffers"></div>"""


def asset(name: str) -> str:
    """Text of a file that ships with the package."""
    folder = resources.files("msa.report") / "assets"
    return (folder / name).read_text(encoding="utf-8")


def render_page(
    title: str, lead: str, body: str, capture: dict[str, Any], script: str
) -> str:
    """One page around a body and its data."""
    # "</" would end the script element inside a name; JSON may escape it.
    data = json.dumps(capture, separators=(",", ":")).replace("</", "<\\/")
    page = asset("page.html")
    # Data goes in last: no later replacement can touch what it contains.
    for mark, text in (
        ("@STYLE@", asset("page.css").rstrip()),
        ("@SCRIPT@", script.rstrip()),
        ("@VERSION@", html.escape(VERSION)),
        ("@BODY@", body),
        ("@LEAD@", html.escape(lead)),
        ("@TITLE@", html.escape(title)),
        ("@CAPTURE@", data),
    ):
        page = page.replace(mark, text)
    return page


def card(value: str, label: str, tone: str = "") -> str:
    """A figure with its label."""
    return (
        f'<div class="card {tone}"><b>{html.escape(value)}</b>'
        f"<span>{html.escape(label)}</span></div>"
    )


def plan_page(capture: PlanCapture) -> str:
    """The page of a plan."""
    estimate = capture["estimate"]
    capacity = capture["alternate_memory_bytes"]
    speedup = estimate["speedup"]
    bound = estimate["lower_bound_seconds"]
    gap = f"{estimate['after_seconds'] / bound - 1:.0%}" if bound > 0 else "–"
    cards = [
        card(f"{speedup:.2f}×", "modelled speed-up", "good" if speedup > 1 else ""),
        card(format_seconds(estimate["before_seconds"]), "all in slow memory"),
        card(format_seconds(estimate["after_seconds"]), "with this plan"),
        card(gap, "above the lower bound"),
        card(format_seconds(estimate["copy_stall_seconds"]), "waiting for copies"),
        card(
            format_bytes(capture["alternate_peak_bytes"]),
            f"of {format_bytes(capacity)} fast memory used",
        ),
        card(str(len(capture["copies"])), "copies"),
        card(str(len(capture["steps"]["names"])), "steps"),
    ]
    body = _PLAN_BODY.format(cards=f'<div class="cards">{"".join(cards)}</div>')
    lead = f"{capture['target']['name']}, {format_bytes(capacity)} of fast memory"
    if capture["strategy"]:
        lead += f", {capture['strategy']} strategy"
    return render_page(capture["module"], lead, body, dict(capture), asset("plan.js"))
