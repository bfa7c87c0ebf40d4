"""Layouts: permutation, tiles and packed widths that fit their array."""

from __future__ import annotations

from msa.hlo.layout import COMBINE_DIMENSION, Layout
from msa.hlo.shape import UNBOUNDED, Shape

LARGEST_SIZE = 2**63 - 1
"""Element counts and byte sizes are 64-bit numbers."""


def shape_problem(shape: Shape) -> str | None:
    """What is wrong with a shape at any depth, or None."""
    stack = [shape]  # not `leaves`, whose indices grow with the depth
    while stack:
        leaf = stack.pop()
        if leaf.is_tuple:
            stack.extend(reversed(leaf.children))
            continue
        array = leaf.as_array
        if array.element_type.family == "special":
            if array.dimensions or array.layout is not None:
                return f"{array.element_type} has no dimensions and no layout"
            continue
        for size in array.dimensions:
            if size < 0 and size != UNBOUNDED:
                return f"{array} has a negative dimension"
        if (
            UNBOUNDED not in array.dimensions
            and array.element_count * array.element_type.byte_width > LARGEST_SIZE
        ):
            return f"{array} has more than 2**63 bytes"
        if array.dynamic and len(array.dynamic) != len(array.dimensions):
            rank, count = len(array.dimensions), len(array.dynamic)
            return f"an array of rank {rank} has flags for {count} dimensions"
        if array.layout is not None:
            problem = _layout_problem(array.layout, len(array.dimensions))
            if problem is not None:
                return f"layout of {array}: {problem}"
    return None


def _layout_problem(layout: Layout, rank: int) -> str | None:
    order = layout.minor_to_major
    if len(order) != rank:
        return f"minor_to_major has {len(order)} entries for rank {rank}"
    if order != Layout.row_major(rank).minor_to_major and set(order) != set(
        range(rank)
    ):
        return "minor_to_major is not a permutation"
    for tile in layout.tiles:
        if any(size < 0 and size != COMBINE_DIMENSION for size in tile):
            return "a tile size is negative"
    if layout.tail_padding_alignment < 1:
        return "the tail padding alignment is not positive"
    if layout.element_size_in_bits < 0:
        return "the element size is negative"
    if layout.memory_space < 0:
        return "the memory space is negative"
    for config in layout.split_configs:
        if not 0 <= config.dimension < rank:
            return f"splits dimension {config.dimension} of rank {rank}"
    return None
