"""The page of an explanation: where values are, and per use why not elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path

from msa.assignment import ExplainedValue, Explanation
from msa.assignment.explanation import SlowUse
from msa.files import write_text
from msa.report.notebook import table_html
from msa.report.page import asset, card, render_page
from msa.units import format_bytes, format_seconds


def explanation_html(explanation: Explanation, path: str | Path | None = None) -> str:
    """One self-contained page; written to `path` if given.

    The data of `Explanation.to_dict` is inside.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> explanation_html(plan.explain("n")).startswith("<!doctype html>")
    True
    """
    asked = "why not in fast memory" if explanation.question == "why_not" else "where"
    return write_text(
        render_page(
            f"{explanation.module}: {explanation.name}",
            f"{asked}, on {explanation.target}",
            "".join(_section(value) for value in explanation.values),
            explanation.to_dict(),
            asset("filter.js"),
        ),
        path,
    )


def _section(value: ExplainedValue) -> str:
    cards = "".join(
        (
            card(format_bytes(value.bytes), "size"),
            card(f"{value.start} to {value.end}", "steps in which it is live"),
            card(value.reason.value.replace("_", " "), "reason"),
        )
    )
    parts = [
        f"<h2>{html.escape(value.value)}</h2>",
        f'<div class="cards">{cards}</div>',
        f"<p>{html.escape(value.sentence)}</p>",
    ]
    if value.stays:
        stays = [
            (
                "fast" if stay.fast else "slow",
                f"{stay.start} to {stay.end}",
                stay.text,
                ", ".join(stay.uses),
            )
            for stay in value.stays
        ]
        parts.append(_table(("memory", "steps", "how", "read by"), stays))
    if value.slow:
        head = (
            "reads slow memory",
            "reason",
            "steps",
            "would save",
            "figures",
            "who has it",
            "what would have to change",
        )
        rows = [row for use in value.slow for row in _rows(use)]
        parts.append(_table(head, rows))
    return "".join(parts)


def _rows(use: SlowUse) -> Iterator[tuple[str, ...]]:
    for finding in use.findings:
        rivals = (
            f"{c.name}: {format_bytes(c.bytes)} of {c.what}, steps {c.start} to {c.end}"
            for c in finding.competitors
        )
        yield (
            f"{', '.join(use.uses)} (step {use.step})",
            f"{finding.reason.value}: {finding.sentence}",
            f"{finding.start} to {finding.end}",
            format_seconds(finding.seconds) if finding.seconds else "0",
            "; ".join(finding.details),
            "; ".join(rivals),
            finding.change,
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f'<div class="scroll">{table_html(head, rows)}</div>'
