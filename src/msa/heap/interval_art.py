"""A memory map of an interval tree as text, for debugging."""

from __future__ import annotations

import math

from msa.heap.interval_tree import BufferIntervalTree

#: Larger maps are listed instead of drawn.
_LIMIT = 100


def interval_art(
    tree: BufferIntervalTree, start: int, end: int, group_size: int = 3
) -> str:
    """Addresses upward, times `start..end` (inclusive) to the right.

    `#` is occupied, `.` free; a row is one block, the largest that divides all
    offsets and ends. Columns are grouped; the last row shows times modulo 10.

    Reference: `BufferIntervalTree::NodesOverlappingInTimeToAsciiArt` of
    `xla/service/heap_simulator/heap_simulator.cc`.
    """
    entries = sorted(tree.entries_overlapping(start, end))
    if not entries:
        return "No nodes overlapping in time. Memory is free!"
    block = math.gcd(*(value for entry in entries for value in entry[2:])) or 1
    rows = max(entry[3] for entry in entries) // block
    columns = end - start + 1
    if rows > _LIMIT or columns > _LIMIT:
        return "\n".join(
            f"start: {first} end: {last} chunk: [{offset},{stop})"
            for first, last, offset, stop in entries
        )
    grid = [["."] * columns for _ in range(rows)]
    for first, last, offset, stop in entries:
        for row in range(offset // block, stop // block):
            for time in range(max(first, start), min(last, end) + 1):
                grid[row][time - start] = "#"
    head = f"Memory map for time: [{start},{end}], memory_block_size: {block}, "
    digits = [str(time % 10) for time in range(start, end + 1)]
    lines = [
        f"{head}group_size: {group_size}",
        *(
            f"{_grouped(grid[row], 0, group_size)} {(row + 1) * block}"
            for row in range(rows - 1, -1, -1)
        ),
        _grouped(digits, start, group_size),
    ]
    return "\n".join(lines)


def _grouped(cells: list[str], first: int, group_size: int) -> str:
    """The cells with a space before each whose number divides by the group size."""
    return "".join(
        f" {cell}" if number % group_size == 0 else cell
        for number, cell in enumerate(cells, first)
    )
