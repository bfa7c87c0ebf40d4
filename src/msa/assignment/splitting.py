"""Cutting values into shards: each core's alternate memory holds one of them.

All places of what shares storage are cut alike or not at all. A value that is cut
takes the room of its largest shard, at the same address on every core; default memory
holds it in one piece.

Reference: `MaybeSplitAllocationValues` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from msa.analysis.values import Position
from msa.errors import OptionsError
from msa.hlo.instruction import Instruction
from msa.hlo.layout import Layout, SplitConfig
from msa.hlo.shape import Shape, ShapeIndex

if TYPE_CHECKING:
    from msa.assignment.allocation_values import AllocationValue
    from msa.assignment.state import State

SplitTree = dict[Instruction, dict[ShapeIndex, int]]
"""Per instruction and node of its result, the (major) dimension that is split."""


def split_together(state: State, items: Sequence[AllocationValue]) -> None:
    """Decide how the allocation values of one proposal are cut. Linear.

    `determine_split_dimension_fn` is asked for the value of each of them; if the
    answers differ, nothing is cut.

    Raises:
        OptionsError: a function gives a split that the shape does not have.
    """
    options = state.options
    determine = options.determine_split_dimension_fn
    if determine is None or not items:
        return
    places = [_defining_place(state, item) for item in items]
    common = determine(places[0], state.split_tree)
    if any(determine(place, state.split_tree) != common for place in places[1:]):
        return
    for item, place in zip(items, places, strict=True):
        nodes = _nodes_of(state, place.instruction)
        if common is None:
            nodes[place.index] = options.replicated_split_dimension
            continue
        nodes[place.index] = common.dimension
        shape = with_split(place.shape, common)
        if not fits(shape, common):
            raise OptionsError(
                f"determine_split_dimension_fn cuts {place} into {shape}: there is no "
                f"such dimension, or its bounds do not rise inside it"
            )
        assert options.shape_size_fn is not None  # options are checked for this
        item.split = common
        item.size = options.shape_size_fn(shape)


def with_split(shape: Shape, split: SplitConfig) -> Shape:
    """The array shape cut into shards; a shape that is cut already stays.

    >>> from msa.hlo import parse_shape
    >>> str(with_split(parse_shape("f32[8,4]{1,0:S(1)}"), SplitConfig(0, (4,))))
    'f32[8,4]{1,0:S(1)SC(0:4)}'
    """
    layout = shape.layout or Layout.row_major(len(shape.dimensions))
    if layout.split_configs:
        return shape
    return shape.with_layout(replace(layout, split_configs=(split,)))


def fits(shape: Shape, split: SplitConfig) -> bool:
    """Whether the shape has the dimension, and the bounds between shards lie in it.

    >>> from msa.hlo import parse_shape
    >>> shape = parse_shape("f32[8,4]{0,1}")
    >>> fits(shape, SplitConfig(0, (2,))), fits(shape, SplitConfig(0, (6,)))
    (True, False)
    """
    if not 0 <= split.dimension < len(shape.dimensions):
        return False
    bounds = (0, *split.split_indices, extent_of(shape, split.dimension))
    return len(bounds) > 2 and all(a < b for a, b in pairwise(bounds))


def extent_of(shape: Shape, dimension: int) -> int:
    """Size of a physical dimension, 0 being the most major one."""
    layout = shape.layout or Layout.row_major(len(shape.dimensions))
    return shape.dimensions[layout.minor_to_major[-1 - dimension]]


def _defining_place(state: State, item: AllocationValue) -> Position:
    step, index = item.value.position
    keys = state.problem.keys
    if not keys or keys[step] is None:
        raise OptionsError(
            "determine_split_dimension_fn asks about instructions, and this problem "
            "has none",
            hint="build the problem from a module",
        )
    return Position(keys[step], index)


def _nodes_of(state: State, instruction: Instruction) -> dict[ShapeIndex, int]:
    tree, options = state.split_tree, state.options
    if instruction not in tree:
        assert options.init_split_tree_fn is not None  # options are checked for this
        options.init_split_tree_fn(instruction, tree)
        if instruction not in tree:
            raise OptionsError(
                f"init_split_tree_fn made no entry for {instruction.name}",
                hint="set tree[instruction] to a dict from index to dimension",
            )
    return tree[instruction]
