"""Reading shapes and layouts; equal text gives one shared object.

Source of the grammar: `xla/hlo/parser/hlo_parser.cc`, `xla/layout.h`.
"""

from __future__ import annotations

import math
import re
from typing import Final

from msa.errors import HloParseError
from msa.hlo.arguments import text_of
from msa.hlo.layout import COMBINE_DIMENSION, MAX_RANK, Layout, SplitConfig
from msa.hlo.parser.cursor import MAX_DEPTH, Cursor, nearest_name
from msa.hlo.primitive import PRIMITIVE_TYPES, PrimitiveType
from msa.hlo.shape import UNBOUNDED, Shape

_TYPE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*+")
_PLAIN_ARRAY: Final = re.compile(
    r"([a-z][a-z0-9]*+)\[([0-9,]*+)\](?:\{([0-9,]*+)(:[^{}PD]*+)?\})?+(?!\s*\{\s*[0-9:])"
)
_EMPTY_LAYOUT: Final = re.compile(r"\{\s*\}")
_LAYOUT_START: Final = re.compile(r"\{(?:\s|/\*(?:[^*]|\*(?!/))*+\*/)*+(?=[0-9:\-])")
_DIM_LEVELS: Final = re.compile(r"D\([^(){}]*+\)")
_MAX_BYTES: Final = 1 << 63

_READABLE: Final = {
    name: kind
    for name, kind in PRIMITIVE_TYPES.items()
    if name not in ("tuple", "buffer")
} | {"opaque_type": PRIMITIVE_TYPES["opaque"]}


class ShapeReader:
    """Reads shapes; shares equal ones between all instructions of one text.

    >>> reader = ShapeReader()
    >>> a = reader.read(Cursor("(f32[2,3]{1,0:S(1)}, token[])"))
    >>> str(a)
    '(f32[2,3]{1,0:S(1)}, token[])'
    """

    __slots__ = ("_arrays", "_tuples", "by_text")

    def __init__(self) -> None:
        self.by_text: dict[str, Shape] = {}
        self._arrays: dict[str, Shape] = {}
        self._tuples: dict[tuple[int, ...], Shape] = {}

    def from_text(self, text: str) -> Shape:
        """The shape that is all of `text`, from the cache when seen before.

        Raises:
            HloParseError: `text` is not exactly one shape.
        """
        shape = self.by_text.get(text)
        if shape is None:
            cursor = Cursor(text)
            shape = self.read(cursor)
            if not cursor.at_end():
                cursor.fail("unexpected text after the shape")
            self.by_text[text] = shape
        return shape

    def read(self, cursor: Cursor) -> Shape:
        """Read one shape at the cursor; iterative in the nesting of tuples."""
        # Each open bracket: (closing for a buffer?, children so far).
        stack: list[tuple[bool, list[Shape]]] = []
        while True:
            shape = self._leaf_or_open(cursor, stack)
            while shape is not None:
                if not stack:
                    return shape
                is_buffer, children = stack[-1]
                children.append(shape)
                if not is_buffer and cursor.accept(","):
                    break
                cursor.expect(")", "at the end of a shape")
                stack.pop()
                shape = self._close(cursor, is_buffer, children)

    def _leaf_or_open(
        self, cursor: Cursor, stack: list[tuple[bool, list[Shape]]]
    ) -> Shape | None:
        position = cursor.skip()
        text = cursor.text
        if text.startswith("(", position):
            cursor.position += 1
            if len(stack) >= MAX_DEPTH:
                cursor.fail("maximum recursion depth exceeded", at=position)
            if cursor.accept(")"):
                return self._close(cursor, False, [])
            stack.append((False, []))
            return None
        if text.startswith("b(", position):
            cursor.position += 2
            if len(stack) >= MAX_DEPTH:
                cursor.fail("maximum recursion depth exceeded", at=position)
            stack.append((True, []))
            return None
        match = _PLAIN_ARRAY.match(text, position)
        if match is None:
            return self._array(cursor)
        shape = self._arrays.get(match[0])
        if shape is None:
            shape = self._array(cursor)
            self._arrays[match[0]] = shape
        cursor.position = match.end()
        return shape

    def _close(self, cursor: Cursor, is_buffer: bool, children: list[Shape]) -> Shape:
        if is_buffer:
            if children[0].element_type.family == "special":
                cursor.fail("a buffer wraps exactly one array shape")
            key: tuple[int, ...] = (-1, id(children[0]))
        else:
            key = tuple(map(id, children))
        shape = self._tuples.get(key)
        if shape is None:
            shape = (
                Shape.buffer_of(children[0]) if is_buffer else Shape.tuple_of(*children)
            )
            self._tuples[key] = shape
        return shape

    def _array(self, cursor: Cursor) -> Shape:
        start = cursor.skip()
        kind = read_primitive_type(cursor)
        cursor.expect("[", "after a primitive type")
        dimensions, dynamic = _read_dimensions(cursor)
        if kind.family == "special":
            if dimensions:
                cursor.fail(f"{kind.name} has no dimensions", at=start)
            if _EMPTY_LAYOUT.match(cursor.text, cursor.position):
                cursor.expect("{")
                cursor.expect("}")
            return Shape.token() if kind.name == "token" else Shape.opaque()
        if len(dimensions) > MAX_RANK:
            cursor.fail(f"a shape has at most {MAX_RANK} dimensions", at=start)
        _check_size(cursor, start, kind, dimensions)
        layout = self._layout(cursor, len(dimensions))
        return Shape(kind, dimensions, dynamic, layout)

    def _layout(self, cursor: Cursor, rank: int) -> Layout:
        position = cursor.skip()
        if not _LAYOUT_START.match(cursor.text, position):
            # `f32[2]{}` of old dumps: an empty body is never legal, so this is
            # an absent layout.
            match = _EMPTY_LAYOUT.match(cursor.text, position)
            if match is not None:
                cursor.position = match.end()
            return Layout.row_major(rank)
        layout = self.read_layout(cursor)
        order = layout.minor_to_major
        if len(order) != rank:
            cursor.fail(
                f"Dimensions size is {rank}, but minor to major size is {len(order)}.",
                at=position,
            )
        if sorted(order) != list(range(rank)):
            cursor.fail(
                f"minor to major {order} is not a permutation of the dimensions",
                at=position,
            )
        if (
            layout == Layout.row_major(rank)
            and not layout.dynamic_metadata_prefix_bytes
        ):
            return Layout.row_major(rank)
        return layout

    def read_layout(self, cursor: Cursor) -> Layout:
        """Read `{minor_to_major:tags}`; tags are accepted in any order."""
        cursor.expect("{")
        order: list[int] = []
        if not cursor.looking_at(":") and not cursor.looking_at("}"):
            order.append(cursor.integer("a dimension"))
            while cursor.accept(","):
                order.append(cursor.integer("a dimension"))
        tags: dict[str, object] = {}
        if cursor.accept(":"):
            while not cursor.looking_at("}"):
                self._tag(cursor, tags)
        cursor.expect("}", "at the end of a layout")
        return Layout(tuple(order), **tags)  # type: ignore[arg-type]

    def _tag(self, cursor: Cursor, tags: dict[str, object]) -> None:
        start = cursor.skip()
        name: str
        value: object
        if cursor.match(_DIM_LEVELS):
            return
        if cursor.accept("SC"):
            name, value = "split_configs", _read_split_configs(cursor)
        elif cursor.accept("T"):
            name, value = "tiles", _read_tiles(cursor)
        elif cursor.accept("P"):
            cursor.expect("(")
            name, value = "physical_shape", self.read(cursor)
            cursor.expect(")")
        else:
            for letter, field in _NUMERIC_TAGS.items():
                if cursor.accept(letter):
                    cursor.expect("(")
                    name, value = field, cursor.integer()
                    break
            else:
                name, value = _read_type_tag(cursor)
            cursor.expect(")")
        if name in tags:
            cursor.fail("a layout has each tag once", at=start)
        tags[name] = value


_NUMERIC_TAGS: Final = {
    "L": "tail_padding_alignment",
    "E": "element_size_in_bits",
    "S": "memory_space",
    "M": "dynamic_metadata_prefix_bytes",
}
_TYPE_TAGS: Final = {"#": "index_type", "*": "pointer_type"}


def _read_type_tag(cursor: Cursor) -> tuple[str, PrimitiveType]:
    for letter, field in _TYPE_TAGS.items():
        if cursor.accept(letter):
            cursor.expect("(")
            return field, read_primitive_type(cursor)
    return cursor.fail(
        "unknown layout tag", expected="one of T( L( #( *( E( S( SC( P( M( or '}'"
    )


def read_primitive_type(cursor: Cursor) -> PrimitiveType:
    """Read the name of an element type."""
    match = cursor.match(_TYPE)
    if match is None:
        cursor.fail("expected a shape", expected="a primitive type, '(' or 'b('")
    kind = _READABLE.get(match[0])
    if kind is None:
        cursor.fail(
            f"expected a primitive type, got {match[0]!r}",
            at=match.start(),
            expected="a primitive type",
            nearest=nearest_name(match[0], _READABLE),
        )
    return kind


def _read_dimensions(cursor: Cursor) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    sizes: list[int] = []
    dynamic: list[bool] = []
    if not cursor.accept("]"):
        while True:
            if cursor.accept("?"):
                sizes.append(UNBOUNDED)
                dynamic.append(True)
            else:
                flag = cursor.accept("<=")
                at = cursor.skip()
                size = cursor.integer("a dimension")
                if not 0 <= size < 1 << 63:
                    cursor.fail(f"dimension {size} is out of range", at=at)
                sizes.append(size)
                dynamic.append(flag)
            if not cursor.accept(","):
                break
        cursor.expect("]", "at the end of the dimensions")
    return tuple(sizes), tuple(dynamic)


def _check_size(
    cursor: Cursor, start: int, kind: PrimitiveType, dimensions: tuple[int, ...]
) -> None:
    known = [d for d in dimensions if d != UNBOUNDED]
    if math.prod(known) * max(kind.byte_width, 1) >= _MAX_BYTES:
        cursor.fail("shape is too large: its byte size overflows 64 bits", at=start)


def _read_split_configs(cursor: Cursor) -> tuple[SplitConfig, ...]:
    configs = []
    while cursor.accept("("):
        dimension = cursor.integer("a dimension")
        cursor.expect(":")
        indices = [cursor.integer("a split index")]
        while cursor.accept(","):
            indices.append(cursor.integer("a split index"))
        cursor.expect(")")
        configs.append(SplitConfig(dimension, tuple(indices)))
    if not configs:
        cursor.fail("expected '(' after SC", expected="'('")
    return tuple(configs)


def _read_tiles(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    tiles = []
    while cursor.accept("("):
        tile: list[int] = []
        if not cursor.looking_at(")"):
            tile.append(_tile_entry(cursor))
            while cursor.accept(","):
                tile.append(_tile_entry(cursor))
        cursor.expect(")", "at the end of a tile")
        tiles.append(tuple(tile))
    if not tiles:
        cursor.fail("expected '(' after T", expected="'('")
    return tuple(tiles)


def _tile_entry(cursor: Cursor) -> int:
    if cursor.accept("*"):
        return COMBINE_DIMENSION
    return cursor.integer("a tile size or '*'")


def parse_shape(text: str) -> Shape:
    """Read one shape from its text.

    Raises:
        HloParseError: `text` is not exactly one shape.

    >>> parse_shape("bf16[8,<=128]{1,0:T(8,128)(2,1)}").dynamic
    (False, True)
    """
    return ShapeReader().from_text(text_of(text, "parse_shape"))


def is_shape_text(text: str) -> bool:
    """Whether `text` is exactly one shape."""
    try:
        parse_shape(text)
    except HloParseError:
        return False
    return True
