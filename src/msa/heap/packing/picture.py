"""Plans as pictures: offset × time as text, SVG or matplotlib axes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from msa.errors import UnsupportedError
from msa.heap.whole_number import read_whole
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.heap.packing.plan import HeapPlan

_SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

#: Rectangles that an SVG holds; of more, the smallest are left out.
_DRAWN = 20_000

#: Columns and rows, or pixels, of a picture.
_WIDEST = 10_000

#: A rectangle: number of the buffer, start, end (time), offset, size.
_Box = tuple[int, int, int, int, int]


def _boxes(plan: HeapPlan) -> list[_Box]:
    return [
        (number, start, end, offset, buffer.size)
        for number, (buffer, offset) in enumerate(
            zip(plan.buffers, plan.offsets, strict=True)
        )
        if buffer.size
        for start, end in buffer.pieces()
    ]


def _extent(boxes: list[_Box]) -> tuple[int, int, int]:
    """First time, last time, top address."""
    first = min((box[1] for box in boxes), default=0)
    last = max((box[2] for box in boxes), default=1)
    top = max((box[3] + box[4] for box in boxes), default=1)
    return first, last, top


def _measures(width: int, height: int) -> tuple[int, int]:
    return (
        read_whole(width, "width", at_least=1, below=_WIDEST + 1),
        read_whole(height, "height", at_least=1, below=_WIDEST + 1),
    )


def ascii_picture(plan: HeapPlan, width: int, height: int) -> str:
    """Time to the right, addresses upward; a letter a buffer, `.` free.

    A cell shows the buffer at its centre. Small plans are drawn to scale, one cell
    a unit.

    >>> from msa.heap import pack
    >>> print(pack([("a", 0, 2, 2), ("b", 1, 3, 1), ("c", 2, 3, 2)]).ascii(6, 3))
    3 |aaaacc|
    2 |aaaacc|
    1 |..bbbb|
       0    3
    """
    width, height = _measures(width, height)
    boxes = _boxes(plan)
    first, last, top = _extent(boxes)
    height = max(1, min(height, top))
    grid = [["."] * width for _ in range(height)]
    span = last - first
    for number, start, end, offset, size in boxes:
        # A cell belongs to the box if its centre does; integers keep it exact.
        left = -(-(2 * (start - first) * width - span) // (2 * span))
        right = -(-(2 * (end - first) * width - span) // (2 * span))
        low = -(-(2 * offset * height - top) // (2 * top))
        high = -(-(2 * (offset + size) * height - top) // (2 * top))
        for row in range(max(low, 0), min(high, height)):
            for column in range(max(left, 0), min(right, width)):
                grid[row][column] = _SIGNS[number % len(_SIGNS)]
    margin = len(str(top))
    lines = []
    for row in range(height - 1, -1, -1):
        label = str(top * (row + 1) // height).rjust(margin)
        lines.append(f"{label} |{''.join(grid[row])}|")
    axis = str(first).ljust(max(1, width - len(str(last)))) + str(last)
    lines.append(" " * (margin + 2) + axis)
    return "\n".join(lines)


def _colour(number: int) -> str:
    # The golden angle keeps neighbours in the list apart in hue.
    return f"hsl({number * 137.508 % 360:.0f},60%,{62 + number % 3 * 8}%)"


def svg_picture(plan: HeapPlan, width: int, height: int) -> str:
    """A self-contained SVG; every rectangle has its buffer's numbers as tooltip.

    Of very many rectangles only the largest are drawn; a line says how many are not.
    """
    width, height = _measures(width, height)
    boxes = _boxes(plan)
    first, last, top = _extent(boxes)
    left, bottom = 80, 24
    across = (width - left - 8) / max(1, last - first)
    ceiling = max(top, plan.capacity or 0)
    up = (height - bottom - 8) / max(1, ceiling)
    base = height - bottom
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f"<title>{escape(plan.summary())}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    drawn = sorted(boxes, key=lambda box: (box[1] - box[2]) * box[4])[:_DRAWN]
    for number, start, end, offset, size in drawn:
        buffer = plan.buffers[number]
        name = escape(
            f"{buffer.id}: {format_bytes(size)} at {offset}, time [{start}, {end})"
        )
        out.append(
            f'<rect x="{left + (start - first) * across:.2f}" '
            f'y="{base - (offset + size) * up:.2f}" '
            f'width="{(end - start) * across:.2f}" height="{size * up:.2f}" '
            f'fill="{_colour(number)}" stroke="#333" stroke-width="0.4">'
            f"<title>{name}</title></rect>"
        )
    marks = [(plan.height, "height", "#000"), (plan.lower_bound, "bound", "#777")]
    if plan.capacity is not None:
        marks.append((plan.capacity, "capacity", "#c00"))
    for value, name, colour in marks:
        y = base - value * up
        out.append(
            f'<line x1="{left}" x2="{width - 8}" y1="{y:.2f}" y2="{y:.2f}" '
            f'stroke="{colour}" stroke-dasharray="4 3"><title>{name} {value} B'
            f"</title></line>"
        )
    if len(drawn) < len(boxes):
        out.append(
            f'<text x="{width // 2}" y="{height - 8}" text-anchor="middle">'
            f"{len(boxes) - len(drawn)} small rectangles are not drawn</text>"
        )
    out += [
        f'<text x="{left - 6}" y="{base - top * up + 4:.2f}" text-anchor="end">',
        f"{format_bytes(top)}</text>",
        f'<text x="{left - 6}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{left}" y="{height - 8}">{first}</text>',
        f'<text x="{width - 8}" y="{height - 8}" text-anchor="end">{last}</text>',
        "</svg>",
    ]
    return "\n".join(out)


def plot_picture(plan: HeapPlan, ax: Any = None) -> Any:
    """Rectangles in matplotlib axes, time to the right, bytes upward."""
    try:
        from matplotlib import pyplot as plt
        from matplotlib.patches import Rectangle
    except ImportError:
        raise UnsupportedError(
            "plotting needs matplotlib",
            subject="matplotlib",
            hint="pip install msa[viz]",
        ) from None
    if ax is None:
        _, ax = plt.subplots(figsize=(12, 6))
    boxes = _boxes(plan)
    for number, start, end, offset, size in boxes:
        colour = plt.get_cmap("tab20")(number % 20)
        ax.add_patch(
            Rectangle(
                (start, offset),
                end - start,
                size,
                facecolor=colour,
                edgecolor="black",
                linewidth=0.3,
            )
        )
    first, last, top = _extent(boxes)
    ax.set_xlim(first, last)
    ax.set_ylim(0, max(top, plan.capacity or 0) * 1.02)
    ax.axhline(plan.lower_bound, linestyle=":", color="grey", label="lower bound")
    if plan.capacity is not None:
        ax.axhline(plan.capacity, linestyle="--", color="red", label="capacity")
    ax.set_xlabel("time")
    ax.set_ylabel("offset (bytes)")
    ax.set_title(plan.summary())
    ax.legend(loc="upper right")
    return ax
