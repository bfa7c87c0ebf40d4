"""What builders accept from Python and how it becomes values of the IR.

Structured values may be given as Python data or as HLO text: `window="{size=3x3}"`,
`padding=((0, 1), (2, 2))`, `replica_groups=[[0, 1], [2, 3]]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msa.errors import HloError, HloParseError, shown
from msa.hlo.arguments import expect
from msa.hlo.layout import Layout
from msa.hlo.opcode import COMMON_ATTRIBUTES, OPCODES, AttributeSpec
from msa.hlo.parser.cursor import Cursor, nearest_name
from msa.hlo.parser.shapes import ShapeReader, parse_shape
from msa.hlo.parser.values import VALUE_READERS
from msa.hlo.primitive import PRIMITIVE_TYPES, PrimitiveType
from msa.hlo.replica_groups import ListGroups
from msa.hlo.shape import Shape

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction

ShapeLike = Shape | str | tuple[PrimitiveType | str, Iterable[int]]
"""A shape, its text, or an element type with dimensions."""


def to_shape(value: ShapeLike) -> Shape:
    """A shape from any accepted spelling; arrays without layout become row-major.

    >>> str(to_shape("f32[2,3]")), str(to_shape(("bf16", (4,))))
    ('f32[2,3]{1,0}', 'bf16[4]{0}')
    """
    if isinstance(value, Shape):
        return value
    if isinstance(value, str):
        shape = parse_shape(value)
        return shape if shape.layout is not None else _laid_out(shape)
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise HloError(
            f"takes a shape, not {shown(value)}",
            where="Builder",
            hint="a Shape, text such as 'f32[8,128]', or ('f32', (8, 128))",
        )
    kind, dimensions = value
    return Shape.array(to_type(kind), dimensions)


def _laid_out(shape: Shape) -> Shape:
    for index, leaf in list(shape.leaves()):
        array = leaf.as_array
        if array.layout is None and array.element_type.family != "special":
            row_major = leaf.with_layout(Layout.row_major(array.rank))
            shape = shape.with_subshape(index, row_major)
    return shape


def to_type(kind: PrimitiveType | str) -> PrimitiveType:
    """An element type by object or name."""
    if isinstance(kind, PrimitiveType):
        return kind
    expect(kind, str, where="Builder", what="the name of an element type")
    if kind not in PRIMITIVE_TYPES:
        nearest = nearest_name(kind, PRIMITIVE_TYPES)
        hint = f"did you mean {nearest!r}?" if nearest else ""
        raise HloError(f"unknown element type {kind!r}", hint=hint)
    return PRIMITIVE_TYPES[kind]


# -- attributes --------------------------------------------------------------

_PLAIN_TEXT: Final = "string"
"""The kind whose value is any text; strings for other kinds are read as HLO text."""


def to_attributes(opcode: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of an opcode from keyword arguments; defaults are left out.

    Raises:
        HloError: an attribute is unknown or missing, or its value is malformed.
    """
    info = OPCODES[opcode]
    values: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        spec = info.attributes.get(name) or COMMON_ATTRIBUTES.get(name)
        if spec is None:
            known = sorted({*info.attributes, *COMMON_ATTRIBUTES})
            nearest = nearest_name(name, known)
            raise HloError(
                f"{opcode} has no attribute {name!r}; it has {', '.join(known)}",
                hint=f"did you mean {nearest!r}?" if nearest else "",
            )
        converted = _convert(opcode, spec, value)
        if name in info.always_printed or converted != info.defaults.get(name):
            values[name] = converted
    for name in info.always_printed:
        values.setdefault(name, info.defaults[name])
    for name in info.required:
        if name not in values and name not in info.called:
            raise HloError(f"{opcode} needs attribute {name}")
    return values


def _convert(opcode: str, spec: AttributeSpec, value: Any) -> Any:
    try:
        if isinstance(value, str):
            if spec.kind == _PLAIN_TEXT:
                return value
            return _read(VALUE_READERS[spec.kind], value)
        converter = _CONVERTERS.get(spec.kind)
        return _frozen(value) if converter is None else converter(value)
    except HloParseError as error:
        message = f"{opcode}: attribute {spec.name}: {error.message}"
        raise HloError(message, hint=error.hint) from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        message = f"{opcode}: attribute {spec.name} cannot be {shown(value)}"
        raise HloError(message) from error


def _read(reader: Callable[[Cursor, ShapeReader], Any], text: str) -> Any:
    cursor = Cursor(text)
    value = reader(cursor, ShapeReader())
    if not cursor.at_end():
        cursor.fail("trailing text")
    return value


def _frozen(value: Any) -> Any:
    """Lists as tuples, at any depth of ordinary data."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(x) for x in value)
    return value


def _integers(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(int(x) for x in value)


def _ranges(value: Any) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (int(start), int(limit), int(rest[0]) if rest else 1)
        for start, limit, *rest in value
    )


def _padding(value: Any) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (int(low), int(high), int(rest[0]) if rest else 0) for low, high, *rest in value
    )


def _groups(value: Any) -> Any:
    if hasattr(value, "expand"):
        return value
    return ListGroups(tuple(_integers(group) for group in value))


def _pairs_of_text(value: Any) -> tuple[tuple[str, str], ...]:
    items = value.items() if isinstance(value, Mapping) else value
    return tuple(sorted((str(k), str(v)) for k, v in items))


def _slice_sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(_integers(sizes) for sizes in value)


_CONVERTERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "ints": _integers,
    "bools": lambda value: tuple(bool(x) for x in value),
    "ranges": _ranges,
    "padding": _padding,
    "groups": _groups,
    "frontend": _pairs_of_text,
    "statistics": _pairs_of_text,
    "int_lists": _slice_sizes,
    "shapes": lambda value: tuple(to_shape(x) for x in value),
    "shape": to_shape,
}


# -- metadata and backend configs --------------------------------------------


def to_metadata(value: Mapping[str, Any] | str | None) -> str | None:
    """Text between the braces of `metadata={…}`.

    >>> to_metadata({"op_name": "jit(f)/add", "source_line": 3})
    'op_name="jit(f)/add" source_line=3'
    """
    if value is None or isinstance(value, str):
        return value
    expect(value, Mapping, where="metadata", what="a mapping or text")
    return " ".join(
        f"{name}={item}" if isinstance(item, int) else f'{name}="{_escaped(str(item))}"'
        for name, item in value.items()
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def to_backend_config(value: Mapping[str, Any] | str | None) -> str | None:
    """Raw text of a backend config; mappings become JSON."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise HloError(
            f"cannot be written as JSON: {error}", where="backend_config"
        ) from error


def shapes_of(operands: Iterable[Instruction]) -> tuple[Shape, ...]:
    """Shapes of some instructions."""
    return tuple(operand.shape for operand in operands)
