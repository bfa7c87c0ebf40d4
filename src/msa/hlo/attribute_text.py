"""Text of attribute values, one writer per kind named in the opcode table.

Source: `xla/hlo/ir/hlo_instructions.cc`, `xla/hlo/ir/hlo_instruction.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msa.hlo.literal import Literal
from msa.hlo.opcode import COMMON_ATTRIBUTES, OPCODES
from msa.hlo.shape import Shape

_ESCAPED: Final = re.compile(r'[\\"\n\r\t\x00-\x1f\x7f]')
_SIMPLE: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str) -> str:
    """Text with the C escapes of a quoted string.

    >>> print(escape('a "b"'))
    a \\"b\\"
    """
    return _ESCAPED.sub(lambda m: _SIMPLE.get(m[0]) or f"\\{ord(m[0]):03o}", text)


def quote(text: str) -> str:
    """A quoted string."""
    return f'"{escape(text)}"'


def braces(items: Iterable[Any]) -> str:
    """`{a,b}`."""
    return "{" + ",".join(map(str, items)) + "}"


def is_json_dict(text: str) -> bool:
    """Whether `text` is exactly one balanced `{…}`, strings skipped over.

    >>> is_json_dict('{"}"}'), is_json_dict("{}a"), is_json_dict("{{}")
    (True, False, False)
    """
    if not text.startswith("{") or not text.endswith("}"):
        return False
    from msa.errors import HloParseError
    from msa.hlo.parser.cursor import Cursor

    try:
        return Cursor(text).balanced() == text
    except HloParseError:
        return False


def config_text(value: str) -> str:
    """A backend config or frontend value: JSON dicts stay bare."""
    return value if is_json_dict(value) else quote(value)


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def _ranges(value: Iterable[tuple[int, int, int]]) -> str:
    rows = list(value)
    strided = any(stride != 1 for _, _, stride in rows)
    return (
        "{"
        + ", ".join(f"[{a}:{b}:{s}]" if strided else f"[{a}:{b}]" for a, b, s in rows)
        + "}"
    )


def _padding(value: Iterable[tuple[int, int, int]]) -> str:
    rows = list(value)
    inner = any(row[2] for row in rows)
    return "x".join(
        f"{low}_{high}_{interior}" if inner else f"{low}_{high}"
        for low, high, interior in rows
    )


def aliasing(value: Iterable[tuple[Any, int, Any]]) -> str:
    """`{{0}: (1, {}), …}`."""
    return (
        "{"
        + ", ".join(
            f"{braces(output)}: ({operand}, {braces(index)})"
            for output, operand, index in value
        )
        + "}"
    )


def _float(value: float) -> str:
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return f"{value:.6g}" if float(f"{value:.6g}") == value else f"{value:.9g}"


def pairs(value: Iterable[tuple[str, str]]) -> str:
    """Frontend attributes."""
    return "{" + ",".join(f"{key}={config_text(text)}" for key, text in value) + "}"


def _typed_literal(literal: Literal) -> str:
    from msa.hlo.literal_print import typed_text

    return typed_text(literal.shape, literal.text)


_WRITERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "bool": _boolean,
    "float": _float,
    "ints": braces,
    "precisions": braces,
    "bools": lambda value: braces(map(_boolean, value)),
    "pairs": lambda value: braces(map(braces, value)),
    "int_lists": lambda value: braces(map(braces, value)),
    "ranges": _ranges,
    "padding": _padding,
    "aliasing": aliasing,
    "shapes": lambda value: "{" + ", ".join(map(str, value)) + "}",
    "string": quote,
    "frontend": pairs,
    "accuracy": str,
    "statistics": lambda value: braces(f"{k}={v}" for k, v in value),
    "typed_literal": _typed_literal,
}

# Printed elsewhere: in the parentheses, or after the called computations.
_APART: Final = frozenset({"parameter_number", "result_accuracy"})


def attribute_text(opcode: str, name: str, value: Any) -> str:
    """`name=value` as printed."""
    info = OPCODES.get(opcode)
    spec = (info.attributes.get(name) if info else None) or COMMON_ATTRIBUTES.get(name)
    writer = _WRITERS.get(spec.kind, str) if spec else str
    return f"{name}={writer(value)}"


def extra_attributes(opcode: str, attributes: Mapping[str, Any]) -> list[str]:
    """The opcode's own attributes, in printed order."""
    info = OPCODES.get(opcode)
    if info is None:
        return [
            attribute_text(opcode, name, value)
            for name, value in attributes.items()
            if name not in COMMON_ATTRIBUTES
        ]
    found = []
    for name in info.attributes:
        if name in attributes and name not in _APART:
            if opcode == "constant" and name == "literal":
                continue
            found.append(attribute_text(opcode, name, attributes[name]))
    for name, value in attributes.items():
        if name not in info.attributes and name not in COMMON_ATTRIBUTES:
            found.append(attribute_text(opcode, name, value))
    return found


def common_attribute(attributes: Mapping[str, Any], name: str) -> str:
    """One of the attributes that every opcode has, or an empty string."""
    if name not in attributes:
        return ""
    return attribute_text("", name, attributes[name])


def shape_text(shape: Shape, *, layouts: bool) -> str:
    """Text of a shape."""
    return str(shape) if layouts else shape.to_text(with_layout=False)
