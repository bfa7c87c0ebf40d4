"""Plain-text tables that line up in a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence


def text_width(text: str) -> int:
    """Columns that a terminal needs for the text (wide characters take two)."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, width: int) -> str:
    """At most `width` characters; the middle gives way.

    >>> shorten("transformer_layer_norm", 12)
    'transf…_norm'
    """
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]


def format_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[int] = (),
    indent: str = "",
) -> str:
    """Columns padded to their widest cell; `right` names right-aligned columns.

    >>> print(format_table(("name", "bytes"), [("x", "16"), ("long", "4")], right={1}))
    name  bytes
    x        16
    long      4
    """
    body = [tuple(head), *(tuple(row) for row in rows)]
    widths = [
        max(text_width(row[i]) for row in body if i < len(row))
        for i in range(len(head))
    ]
    lines = []
    for row in body:
        cells = []
        for i, cell in enumerate(row):
            pad = " " * (widths[i] - text_width(cell))
            cells.append(pad + cell if i in right else cell + pad)
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)
