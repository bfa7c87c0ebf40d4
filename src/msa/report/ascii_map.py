"""The offset × step map in characters, for a terminal."""

from __future__ import annotations

from typing import Final

from msa.report.capture import PlanCapture
from msa.report.tables import shorten
from msa.units import format_bytes

_SIGNS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAMED: Final = 12
_HEAD: Final = "address in fast memory ↑, step of the schedule →; a letter or * is a buffer, . is free"
_MARK_EVERY: Final = 5
"""Rows from one labelled row to the next."""


def ascii_map(capture: PlanCapture, width: int = 76, height: int = 20) -> str:
    """Steps to the right, addresses upward; a letter a buffer, `.` free.

    A cell shows the buffer at its centre. The legend names the buffers that take most
    bytes × steps; `*` marks the other ones. Rows are labelled with the address at
    their lower edge, the topmost with the highest address in use.
    """
    boxes = [row for row in capture["buffers"] if row["offset"] >= 0]
    steps = max(1, len(capture["steps"]["names"]))
    top = max((row["offset"] + row["size"] for row in boxes), default=0)
    if not boxes or not top:
        return "Nothing is placed in fast memory."
    boxes.sort(key=lambda row: -row["size"] * (row["end"] - row["start"]))
    signs: dict[str, str] = {}
    grid = [["."] * width for _ in range(height)]
    for row in boxes:
        sign = signs.setdefault(
            row["value"], _SIGNS[len(signs)] if len(signs) < _NAMED else "*"
        )
        left = _cell(row["start"], steps, width)
        right = _cell(row["end"], steps, width)
        low = _cell(row["offset"], top, height)
        high = _cell(row["offset"] + row["size"], top, height)
        for line in range(low, high):
            for column in range(left, right):
                grid[line][column] = sign
    marks = {line: line * top // height for line in range(0, height, _MARK_EVERY)}
    labels = {line: format_bytes(address) for line, address in marks.items()}
    labels[0], labels[height - 1] = "0", format_bytes(top)
    margin = max(map(len, labels.values()))
    lines = [_HEAD]
    lines += [
        f"{labels.get(line, '').rjust(margin)} |{''.join(grid[line])}|"
        for line in range(height - 1, -1, -1)
    ]
    lines.append(" " * (margin + 2) + "0".ljust(width - len(str(steps))) + str(steps))
    if "*" in signs.values():
        others = sum(sign == "*" for sign in signs.values())
        legend = f"*  {others} other {'buffer' if others == 1 else 'buffers'}"
    else:
        legend = ""
    sizes = {row["value"]: row["size"] for row in boxes}
    lines += [
        f"{sign}  {shorten(value, max(24, width - 16))} ({format_bytes(sizes[value])})"
        for value, sign in signs.items()
        if sign != "*"
    ]
    if legend:
        lines.append(legend)
    return "\n".join(lines)


def _cell(value: int, whole: int, cells: int) -> int:
    """First cell whose centre is not below `value`, in integers."""
    return max(0, min(cells, -(-(2 * value * cells - whole) // (2 * whole))))
