"""Text of literals: canonical printing.

Source: `xla/literal.cc`.
"""

from __future__ import annotations

import math

import numpy as np

from msa.hlo.float_formats import FORMATS, decode, encode
from msa.hlo.literal_text import (
    UNSIGNED_VIEWS,
    Leaf,
    Token,
    integer_value,
    number_value,
    scan_literal,
    truth_value,
    wrapped,
)
from msa.hlo.parser.cursor import Cursor
from msa.hlo.primitive import PrimitiveType
from msa.hlo.shape import Shape


def canonical_text(shape: Shape, text: str) -> str:
    """One-line standard print of literal text: equal values give equal text."""
    if "..." in text and not shape.is_tuple:
        return "{...}"
    parts: list[str] = []
    pending: list[str] = []

    def collect(item: Leaf | str) -> None:
        if isinstance(item, Leaf):
            parts.append(_print_leaf(item))
        elif item == "(":
            parts.append("(")
            pending.append("(")
        elif item == ",":
            parts.append(", ")
        else:
            parts.append(")")

    scan_literal(Cursor(text), shape, None, collect)
    return "".join(parts)


def typed_text(shape: Shape, text: str) -> str:
    """Literal text in which each leaf is preceded by its shape."""
    parts: list[str] = []

    def collect(item: Leaf | str) -> None:
        if isinstance(item, Leaf):
            parts.append(f"{item.shape.to_text(with_layout=True)} {_print_leaf(item)}")
        else:
            parts.append({"(": "( ", ",": ", ", ")": " )"}[item])

    scan_literal(Cursor(text), shape, None, collect)
    return "".join(parts)


def _print_leaf(leaf: Leaf) -> str:
    if leaf.tokens is None:
        return "{...}"
    dimensions = leaf.sizes if leaf.sizes is not None else leaf.shape.dimensions
    prefix = ""
    if leaf.sizes is not None:
        prefix = f"({','.join(map(str, leaf.sizes))})"
    rank = len(dimensions)
    values = [_print_value(t, leaf.shape.element_type, rank) for t in leaf.tokens]
    if rank == 0:
        return values[0]
    if rank == 1:
        return prefix + "{" + ", ".join(values) + "}"
    rows = values
    # Group from the innermost dimension outwards.
    for level in range(rank - 1, -1, -1):
        size = dimensions[level]
        count = math.prod(dimensions[:level])
        spaced = level == 0 or size > 1 or level < rank - 1
        groups = [_group(rows[i * size : (i + 1) * size], spaced) for i in range(count)]
        if rank > 3 and 0 < level < rank - 1:
            width = dimensions[level - 1]
            groups = [
                f"{{ /*i{level - 1}={i % width}*/ {text[2:]}"
                for i, text in enumerate(groups)
            ]
        rows = groups
    return prefix + rows[0]


def _group(items: list[str], spaced: bool) -> str:
    body = ", ".join(items)
    return "{ " + body + " }" if spaced else "{" + body + "}"


def _print_value(token: Token, kind: PrimitiveType, rank: int) -> str:
    if isinstance(token, tuple):
        part = "f32" if kind.name == "c64" else "f64"
        return f"({_print_float(token[0], part)}, {_print_float(token[1], part)})"
    if kind.name == "pred":
        true = truth_value(token)
        return str(true).lower() if rank == 0 else str(int(true))
    if kind.is_integral:
        signed = kind.family == "signed"
        return str(wrapped(integer_value(token), signed=signed))
    return _print_float(token, kind.name)


def _print_float(token: str, name: str) -> str:
    if "nan" in token and name in UNSIGNED_VIEWS:
        return token
    value = number_value(token)
    if name in FORMATS:
        return _print_narrow(token, value, name)
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    if name == "f16":
        return _general(float(np.float16(value)), 5)
    if name == "f32":
        exact = np.float32(value)
        text = _general(float(exact), 6)
        return text if np.float32(text) == exact else _general(float(exact), 9)
    text = _general(value, 15)
    return text if float(text) == value else _general(value, 17)


def _print_narrow(token: str, value: float, name: str) -> str:
    form = FORMATS[name]
    if "nan" in token and form.nan in ("ieee", "all_ones"):
        return token
    number = float(decode(name, encode(name, np.array([value])))[0])
    if math.isnan(number):
        return "-nan" if form.nan == "negative_zero" or value < 0 else "nan"
    if math.isinf(number):
        return "-inf" if number < 0 else "inf"
    return _general(number, math.ceil(1 + (form.mantissa_bits + 1) * math.log10(2)))


def _general(value: float, digits: int) -> str:
    return f"{value:.{digits}g}"
