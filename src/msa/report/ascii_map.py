"""The offset × step map in characters, for a terminal."""

from __future__ import annotations

from typing import Final

from msa.report.capture import PlanCapture
from msa.report.tables import shorten
from msa.units import format_bytes

_SIGNS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAMED: Final = 12


def ascii_map(capture: PlanCapture, width: int = 76, height: int = 20) -> str:
    """Steps to the right, addresses upward; a letter a buffer, `.` free.

    A cell shows the buffer at its centre. The legend names the buffers that take most
    bytes × steps; `*` marks the other ones.
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
    labels = {height - 1: format_bytes(top), 0: "0"}
    margin = max(map(len, labels.values()))
    lines = [
        f"{labels.get(line, '').rjust(margin)} |{''.join(grid[line])}|"
        for line in range(height - 1, -1, -1)
    ]
    lines.append(" " * (margin + 2) + "0".ljust(width - len(str(steps))) + str(steps))
    sizes = {row["value"]: row["size"] for row in boxes}
    lines += [
        f"{sign}  {shorten(value, max(24, width - 16))} ({format_bytes(sizes[value])})"
        for value, sign in signs.items()
        if sign != "*"
    ]
    return "\n".join(lines)


def _cell(value: int, whole: int, cells: int) -> int:
    """First cell whose centre is not below `value`, in integers."""
    return max(0, min(cells, -(-(2 * value * cells - whole) // (2 * whole))))
