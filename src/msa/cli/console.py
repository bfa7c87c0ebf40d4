"""Tables on standard output: rich on a terminal that has it, plain text otherwise."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from msa.report.tables import format_table


def print_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[int] = (),
) -> None:
    """Print a table; `right` names right-aligned columns."""
    body = [tuple(row) for row in rows]
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text
        except ImportError:
            pass
        else:
            table = Table(box=None, header_style="bold")
            for i, name in enumerate(head):
                table.add_column(name, justify="right" if i in right else "left")
            for row in body:
                table.add_row(*(Text(cell) for cell in row))
            Console(file=sys.stdout).print(table)
            return
    sys.stdout.write(format_table(head, body, right=right) + "\n")
