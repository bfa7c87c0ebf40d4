"""Shapes: arrays, tuples, buffers, tokens and opaque values, and their sizes.

Source: `xla/shape.h`, `xla/shape_util.cc`, `xla/layout_util.cc`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from msa.errors import HloError, shown
from msa.hlo.arguments import expect
from msa.hlo.layout import Layout
from msa.hlo.primitive import (
    BUFFER,
    OPAQUE,
    PRIMITIVE_TYPES,
    TOKEN,
    TUPLE,
    PrimitiveType,
)

UNBOUNDED: Final = -(2**63)
"""Size of an unbounded dynamic dimension, written `?`."""

POINTER_BYTES: Final = 8
"""Bytes of a pointer in tuple index tables unless stated otherwise."""

ShapeIndex = tuple[int, ...]
"""Path into nested tuples; `()` is the whole."""


class Shape:
    """An immutable shape.

    Attributes:
        element_type: the primitive type; `tuple`, `token`, `opaque` and `buffer`
            mark the other kinds.
        dimensions: sizes of an array; the bound of a bounded dynamic dimension,
            `UNBOUNDED` for an unbounded one.
        dynamic: one flag per dimension, or `()` when all are static.
        layout: physical layout of an array, or None.
        children: elements of a tuple; the wrapped array of a buffer.

    Shapes are values: equal shapes have equal hashes and every operation returns a
    new shape. The reader shares equal shapes, so `is` is tested first.

    >>> from msa.hlo.primitive import F32
    >>> shape = Shape.array(F32, (8, 128))
    >>> str(shape), shape.byte_size(), shape.element_count
    ('f32[8,128]{1,0}', 4096, 1024)
    """

    __slots__ = (
        "_byte_size",
        "_count",
        "_hash",
        "_text",
        "children",
        "dimensions",
        "dynamic",
        "element_type",
        "layout",
    )

    def __init__(
        self,
        element_type: PrimitiveType,
        dimensions: tuple[int, ...] = (),
        dynamic: tuple[bool, ...] = (),
        layout: Layout | None = None,
        children: tuple[Shape, ...] = (),
    ) -> None:
        self.element_type = element_type
        self.dimensions = dimensions
        self.dynamic = dynamic if any(dynamic) else ()
        self.layout = layout
        self.children = children
        self._hash = 0
        self._byte_size = -1
        self._count = -1
        self._text: str | None = None

    @staticmethod
    def array(
        element_type: PrimitiveType | str,
        dimensions: Iterable[int] = (),
        layout: Layout | None = None,
    ) -> Shape:
        """A static array shape, row-major unless a layout is given.

        Raises:
            HloError: no element type of arrays, or dimensions that are no sizes.
        """
        kind: PrimitiveType | None
        if isinstance(element_type, str):
            kind = PRIMITIVE_TYPES.get(element_type)
        else:
            kind = element_type
        sizes = _sizes(dimensions)
        if not isinstance(kind, PrimitiveType) or kind.family == "special":
            raise HloError(
                f"no element type of arrays: {shown(element_type)}",
                where="Shape.array",
                hint="a name such as 'f32'",
            )
        if layout is None:
            layout = Layout.row_major(len(sizes))
        expect(layout, Layout, where="Shape.array", what="a Layout or None")
        return Shape(kind, sizes, (), layout)

    @staticmethod
    def tuple_of(*children: Shape) -> Shape:
        """A tuple of the given shapes."""
        for child in children:
            expect(child, Shape, where="Shape.tuple_of", what="Shapes")
        return Shape(TUPLE, children=children)

    @staticmethod
    def token() -> Shape:
        """The shape of an ordering token."""
        return _TOKEN_SHAPE

    @staticmethod
    def opaque() -> Shape:
        """The shape of an opaque value."""
        return _OPAQUE_SHAPE

    @staticmethod
    def buffer_of(array: Shape) -> Shape:
        """A buffer wrapping one array shape."""
        expect(array, Shape, where="Shape.buffer_of", what="a Shape")
        return Shape(BUFFER, children=(array,))

    # -- kinds ---------------------------------------------------------------

    @property
    def is_tuple(self) -> bool:
        """Whether this is a tuple."""
        return self.element_type is TUPLE

    @property
    def is_buffer(self) -> bool:
        """Whether this wraps an array as a buffer."""
        return self.element_type is BUFFER

    @property
    def is_array(self) -> bool:
        """Whether this is an array or a buffer."""
        return self.element_type.family != "special" or self.element_type is BUFFER

    @property
    def is_token(self) -> bool:
        """Whether this is a token."""
        return self.element_type is TOKEN

    @property
    def is_opaque(self) -> bool:
        """Whether this is an opaque value."""
        return self.element_type is OPAQUE

    @property
    def is_scalar(self) -> bool:
        """Whether this is an array without dimensions."""
        return self.element_type.family != "special" and not self.dimensions

    @property
    def is_effective_scalar(self) -> bool:
        """Whether this is an array of exactly one element."""
        return self.is_array and self.element_count == 1

    @property
    def is_static(self) -> bool:
        """Whether no dimension, at any depth, is dynamic."""
        stack = [self]
        while stack:
            shape = stack.pop()
            if shape.dynamic:
                return False
            stack.extend(shape.children)
        return True

    @property
    def rank(self) -> int:
        """Number of dimensions (of the wrapped array for a buffer)."""
        return len(self.as_array.dimensions)

    @property
    def as_array(self) -> Shape:
        """The wrapped array of a buffer; any other shape itself."""
        return self.children[0] if self.element_type is BUFFER else self

    @property
    def memory_space(self) -> int:
        """Memory space of the layout; 0 without a layout."""
        layout = self.as_array.layout
        return 0 if layout is None else layout.memory_space

    # -- sizes ---------------------------------------------------------------

    @property
    def element_count(self) -> int:
        """Product of the dimensions (bounds of dynamic ones); 1 for scalars.

        The sum over leaves for tuples is not taken: a tuple counts its children.
        """
        if self._count < 0:
            if self.element_type is TUPLE:
                self._count = len(self.children)
            else:
                self._count = max(0, math.prod(self.as_array.dimensions))
        return self._count

    def byte_size(self, pointer_bytes: int = POINTER_BYTES) -> int:
        """Logical bytes: packed elements, or the index table of a tuple.

        Tiles are ignored (see `padded_byte_size`); children of a tuple are not
        included (see `leaves`).

        >>> from msa.hlo.primitive import PRIMITIVE_TYPES
        >>> Shape(PRIMITIVE_TYPES["s4"], (9,),
        ...       layout=Layout((0,), element_size_in_bits=4)).byte_size()
        5
        """
        if self._byte_size >= 0 and pointer_bytes == POINTER_BYTES:
            return self._byte_size
        kind = self.element_type
        if kind is TUPLE:
            size = pointer_bytes * len(self.children)
        elif kind is TOKEN:
            size = 0
        elif kind is OPAQUE:
            size = pointer_bytes
        else:
            size = self.as_array._packed(self.element_count)
        if pointer_bytes == POINTER_BYTES:
            self._byte_size = size
        return size

    def _packed(self, count: int) -> int:
        bits = self.layout.element_size_in_bits if self.layout else 0
        if bits:
            return (count * bits + 7) // 8
        return count * self.element_type.byte_width

    def padded_byte_size(self, pointer_bytes: int = POINTER_BYTES) -> int:
        """Bytes that a tiled layout really takes, padding of the first tile included.

        >>> from msa.hlo.primitive import PRIMITIVE_TYPES
        >>> Shape(PRIMITIVE_TYPES["bf16"], (129, 1024),
        ...       layout=Layout((1, 0), tiles=((8, 128), (2, 1)))).padded_byte_size()
        278528
        """
        array = self.as_array
        layout = array.layout
        if not self.is_array or layout is None or not layout.tiles:
            return self.byte_size(pointer_bytes)
        tile = layout.tiles[0]
        order = layout.minor_to_major
        count = 1
        for i in range(max(len(tile), len(order))):
            size = array._max_split_size(order[i]) if i < len(order) else 1
            if i < len(tile) and tile[len(tile) - 1 - i] > 0:
                step = tile[len(tile) - 1 - i]
                size = -(-size // step) * step
            count *= size
        if layout.tail_padding_alignment > 1:
            step = layout.tail_padding_alignment
            count = -(-count // step) * step
        return array._packed(count)

    def shard_byte_size(self) -> int:
        """Bytes of the largest shard, padding not counted; of all if it is not split.

        >>> from msa.hlo.layout import SplitConfig
        >>> from msa.hlo.primitive import PRIMITIVE_TYPES
        >>> Shape(PRIMITIVE_TYPES["f32"], (6, 10),
        ...       layout=Layout((1, 0), split_configs=(SplitConfig(0, (2,)),))
        ... ).shard_byte_size()
        160
        """
        array = self.as_array
        if not self.is_array or array.layout is None or not array.layout.split_configs:
            return self.byte_size()
        sizes = [array._max_split_size(d) for d in range(len(array.dimensions))]
        return array._packed(math.prod(sizes))

    def _max_split_size(self, dimension: int) -> int:
        layout = self.layout
        size = self.dimensions[dimension]
        if layout is None:
            return size
        for config in layout.split_configs:
            place = len(self.dimensions) - 1 - config.dimension
            if layout.minor_to_major[place] == dimension:
                bounds = (0, *config.split_indices, size)
                return max(b - a for a, b in pairwise(bounds))
        return size

    # -- nodes ---------------------------------------------------------------

    def subshape(self, index: ShapeIndex) -> Shape:
        """The shape at an index, a tuple (raises IndexError when it has no node)."""
        shape = self
        for i in index:
            if shape.element_type is not TUPLE or not 0 <= i < len(shape.children):
                raise IndexError(f"no element {index} in {self}")
            shape = shape.children[i]
        return shape

    def has_index(self, index: ShapeIndex) -> bool:
        """Whether `index` names a node of this shape."""
        shape = self
        for i in index:
            if shape.element_type is not TUPLE or not 0 <= i < len(shape.children):
                return False
            shape = shape.children[i]
        return True

    def nodes(self) -> Iterator[tuple[ShapeIndex, Shape]]:
        """Every node with its index, a node before its children."""
        if self.element_type is not TUPLE:
            yield (), self
            return
        stack: list[tuple[ShapeIndex, Shape]] = [((), self)]
        while stack:
            index, shape = stack.pop()
            yield index, shape
            if shape.element_type is TUPLE:
                stack.extend(
                    ((*index, i), shape.children[i])
                    for i in range(len(shape.children) - 1, -1, -1)
                )

    def leaves(self) -> Iterator[tuple[ShapeIndex, Shape]]:
        """Every node that is not a tuple, in the same order."""
        for index, shape in self.nodes():
            if shape.element_type is not TUPLE:
                yield index, shape

    # -- changes -------------------------------------------------------------

    def with_layout(self, layout: Layout | None) -> Shape:
        """The same array with another layout."""
        if layout is not None:
            expect(layout, Layout, where="with_layout", what="a Layout or None")
        if self.element_type is BUFFER:
            return Shape.buffer_of(self.children[0].with_layout(layout))
        return Shape(self.element_type, self.dimensions, self.dynamic, layout)

    def with_memory_space(self, memory_space: int) -> Shape:
        """The same array in another memory space (row-major if it had no layout)."""
        layout = self.as_array.layout
        if layout is None:
            layout = Layout.row_major(self.rank)
        return self.with_layout(layout.with_memory_space(memory_space))

    def with_subshape(self, index: ShapeIndex, new: Shape) -> Shape:
        """A copy in which the node at `index` is `new`."""
        chain = [self]
        for i in index:
            chain.append(chain[-1].subshape((i,)))
        for shape, i in zip(reversed(chain[:-1]), reversed(index), strict=True):
            children = (*shape.children[:i], new, *shape.children[i + 1 :])
            new = Shape(TUPLE, children=children)
        return new

    # -- comparison ----------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Shape):
            return NotImplemented
        stack = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if (
                a.element_type is not b.element_type
                or a.dimensions != b.dimensions
                or a.dynamic != b.dynamic
                or (a.layout is not b.layout and a.layout != b.layout)
                or len(a.children) != len(b.children)
            ):
                return False
            if a.children:
                stack.extend(zip(a.children, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        if not self._hash:
            parts: list[object] = []
            for _, shape in self.nodes():
                array = shape.as_array
                parts.append((shape.element_type.name, len(shape.children)))
                parts.append((array.element_type.name, array.dimensions, array.layout))
            self._hash = hash(tuple(parts)) or 1
        return self._hash

    def compatible(self, other: Shape, *, ignore_element_type: bool = False) -> bool:
        """Equality that ignores layouts and dynamic flags."""
        stack = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            special = a.element_type.family == "special"
            if a.element_type is not b.element_type and (
                not ignore_element_type or special or b.element_type.family == "special"
            ):
                return False
            if a.dimensions != b.dimensions or len(a.children) != len(b.children):
                return False
            stack.extend(zip(a.children, b.children, strict=True))
        return True

    def equal_ignoring_memory_space(
        self, other: Shape, *, shards: bool = False
    ) -> bool:
        """Equality that ignores the memory spaces of layouts at all nodes.

        With `shards` it ignores how arrays are cut into shards, too.
        """
        stack = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if (a.layout is None) != (b.layout is None):
                return False
            if (
                a.element_type is not b.element_type
                or a.dimensions != b.dimensions
                or a.dynamic != b.dynamic
                or len(a.children) != len(b.children)
            ):
                return False
            if (
                a.layout is not None
                and b.layout is not None
                and not a.layout.equal_ignoring_memory_space(b.layout, shards=shards)
            ):
                return False
            stack.extend(zip(a.children, b.children, strict=True))
        return True

    # -- text ----------------------------------------------------------------

    def __str__(self) -> str:
        if self._text is None:
            self._text = _print(self, with_layout=True)
        return self._text

    def to_text(self, *, with_layout: bool = True) -> str:
        """Text form, with or without layouts."""
        return str(self) if with_layout else _print(self, with_layout=False)

    def __repr__(self) -> str:
        return f"<Shape {self}>"

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.dimensions, self.dynamic, self.layout, self.children)
        return Shape, (self.element_type, *fields)


def _sizes(dimensions: Iterable[int]) -> tuple[int, ...]:
    """Dimensions as plain ints."""
    try:
        sizes = tuple(map(operator.index, dimensions))
    except TypeError:
        sizes = (-1,)
    if all(size >= 0 or size == UNBOUNDED for size in sizes):
        return sizes
    raise HloError(
        f"dimensions are sizes of at least 0, not {shown(dimensions)}",
        where="Shape.array",
        hint="a tuple such as (8, 128)",
    )


def _print(shape: Shape, *, with_layout: bool) -> str:
    """Iterative printer: nesting depth is bounded by memory only."""
    out: list[str] = []
    stack: list[Shape | str] = [shape]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif item.element_type is TUPLE:
            stack.append(")")
            for i in range(len(item.children) - 1, -1, -1):
                stack.append(item.children[i])
                if i:
                    stack.append(", " if i % 5 else f", /*index={i}*/")
            stack.append("(")
        elif item.element_type is BUFFER:
            stack.extend((")", item.children[0], "b("))
        else:
            out.append(_print_array(item, with_layout))
    return "".join(out)


def _print_array(shape: Shape, with_layout: bool) -> str:
    dims = ",".join(map(str, shape.dimensions))
    if shape.dynamic:
        dims = ",".join(
            "?" if d == UNBOUNDED else f"<={d}" if flag else str(d)
            for d, flag in zip(shape.dimensions, shape.dynamic, strict=True)
        )
    text = f"{shape.element_type.name}[{dims}]"
    if with_layout and shape.layout is not None:
        layout = str(shape.layout)
        if layout != "{}":
            text += layout
    return text


_TOKEN_SHAPE: Final = Shape(TOKEN)
_OPAQUE_SHAPE: Final = Shape(OPAQUE)
