"""Layouts: permutation, tiles and packed widths that fit their array."""

from __future__ import annotations

from itertools import pairwise

from msa.hlo.layout import COMBINE_DIMENSION, Layout
from msa.hlo.shape import UNBOUNDED, Shape

WIDEST_ELEMENT = 128
"""Bits of `c128`."""

LAST_MEMORY_SPACE = 127
"""XLA keeps the number of a memory space in one signed byte."""

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
            problem = _layout_problem(array.layout, array)
            if problem is not None:
                return f"layout of {array}: {problem}"
    return None


def _layout_problem(layout: Layout, array: Shape) -> str | None:
    rank = len(array.dimensions)
    if layout is Layout.row_major(rank):
        return None
    order = layout.minor_to_major
    if len(order) != rank:
        return f"minor_to_major has {len(order)} entries for rank {rank}"
    if order != Layout.row_major(rank).minor_to_major and set(order) != set(
        range(rank)
    ):
        return "minor_to_major is not a permutation"
    for tile in layout.tiles:
        if any(size < 1 and size != COMBINE_DIMENSION for size in tile):
            return f"a tile size is less than 1: {list(tile)}"
    if not 1 <= layout.tail_padding_alignment <= LARGEST_SIZE // WIDEST_ELEMENT:
        return f"a tail padding alignment of {layout.tail_padding_alignment}"
    if not 0 <= layout.element_size_in_bits <= WIDEST_ELEMENT:
        return f"an element size of {layout.element_size_in_bits} bits"
    if not 0 <= layout.memory_space <= LAST_MEMORY_SPACE:
        return f"memory space {layout.memory_space} is not in 0..{LAST_MEMORY_SPACE}"
    if layout.dynamic_metadata_prefix_bytes < 0:
        return "the bytes before the elements are negative"
    for kind in (layout.index_type, layout.pointer_type):
        if kind is not None and not kind.is_integral:
            return f"indices and pointers are integers, not {kind}"
    problem = _split_problem(layout, array)
    if problem is None and UNBOUNDED not in array.dimensions:
        size = array.padded_byte_size() + layout.dynamic_metadata_prefix_bytes
        if size > LARGEST_SIZE:
            return "tiles and padding take more than 2**63 bytes"
    return problem


def _split_problem(layout: Layout, array: Shape) -> str | None:
    """What is wrong with the boundaries of shards, which are of physical dimensions."""
    rank, order = len(array.dimensions), layout.minor_to_major
    seen: set[int] = set()
    for config in layout.split_configs:
        dimension, bounds = config.dimension, config.split_indices
        if not 0 <= dimension < rank:
            return f"splits dimension {dimension} of rank {rank}"
        if dimension in seen:
            return f"splits dimension {dimension} twice"
        seen.add(dimension)
        size = array.dimensions[order[rank - 1 - dimension]]
        if any(b <= a for a, b in pairwise((0, *bounds))):
            return f"boundaries {list(bounds)} of shards do not rise from 1"
        if bounds and bounds[-1] >= size != UNBOUNDED:
            return f"a shard starts at {bounds[-1]}, beyond the size {size}"
    return None
