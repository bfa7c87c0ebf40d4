"""Dense numbers for the nodes of a shape.

Analyses keep one entry per node of an instruction's result, in pre-order; a tuple's
elements are then slices. Tables are shared by equal shapes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msa.hlo.primitive import TUPLE
from msa.hlo.shape import Shape, ShapeIndex


class ShapeNodes:
    """The nodes of one shape in pre-order.

    Attributes:
        indices: index of each node.
        shapes: sub-shape at each node.
        number: place of each index.
        starts: places of the elements of the root and, last, one past the end, so
            that element `i` is `starts[i]:starts[i + 1]`.
        leaves: places of the nodes that are not tuples.

    >>> from msa.hlo.primitive import F32
    >>> x = Shape.array(F32, (2,))
    >>> nodes = shape_nodes(Shape.tuple_of(x, Shape.tuple_of(x, x)))
    >>> nodes.indices
    ((), (0,), (1,), (1, 0), (1, 1))
    >>> nodes.starts, nodes.leaves
    ((1, 2, 5), (1, 3, 4))
    """

    __slots__ = ("indices", "leaves", "number", "shapes", "starts")

    def __init__(self, shape: Shape) -> None:
        nodes = list(shape.nodes())
        self.indices: tuple[ShapeIndex, ...] = tuple(index for index, _ in nodes)
        self.shapes: tuple[Shape, ...] = tuple(node for _, node in nodes)
        self.number: dict[ShapeIndex, int] = {x: i for i, x in enumerate(self.indices)}
        self.starts: tuple[int, ...] = (
            *(i for i, index in enumerate(self.indices) if len(index) == 1),
            len(nodes),
        )
        self.leaves: tuple[int, ...] = tuple(
            i for i, node in enumerate(self.shapes) if node.element_type is not TUPLE
        )

    def __len__(self) -> int:
        return len(self.indices)

    def element(self, index: int) -> slice:
        """Places of the nodes of one element of the root tuple."""
        return slice(self.starts[index], self.starts[index + 1])

    def subtree(self, place: int) -> slice:
        """Places of a node and everything below it. Linear in its size."""
        depth = len(self.indices[place])
        end = place + 1
        while end < len(self.indices) and len(self.indices[end]) > depth:
            end += 1
        return slice(place, end)


@lru_cache(maxsize=16384)
def _nodes(shape: Shape) -> ShapeNodes:
    return ShapeNodes(shape)


ARRAY_INDICES: Final[tuple[ShapeIndex, ...]] = ((),)


def shape_nodes(shape: Shape) -> ShapeNodes:
    """The table of a shape's nodes; linear the first time, then shared."""
    return _nodes(shape)


def node_count(shape: Shape) -> int:
    """Number of nodes, 1 for anything but a tuple."""
    return len(_nodes(shape).indices) if shape.element_type is TUPLE else 1


def node_number(shape: Shape, index: ShapeIndex) -> int:
    """Place of the node at `index`, or -1 when the shape has none."""
    if not index:
        return 0
    if shape.element_type is not TUPLE:
        return -1
    return _nodes(shape).number.get(index, -1)


def node_indices(shape: Shape) -> tuple[ShapeIndex, ...]:
    """Index of each node, in pre-order."""
    if shape.element_type is not TUPLE:
        return ARRAY_INDICES
    return _nodes(shape).indices
