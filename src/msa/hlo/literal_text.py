"""Text of literals: reading with checks, decoding to numpy.

Source: `xla/hlo/parser/hlo_parser.cc`, `xla/literal.cc`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from msa.errors import HloError, HloParseError
from msa.hlo.float_formats import FORMATS, decode, encode
from msa.hlo.literal import Literal, NumpyTree, numpy_dtype
from msa.hlo.parser.cursor import MAX_DEPTH, Cursor
from msa.hlo.parser.shapes import ShapeReader
from msa.hlo.primitive import PrimitiveType
from msa.hlo.shape import Shape

_TOKEN: Final = re.compile(
    r"(?:[ \t\r\n]++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\r\n]*+)*+"
    r"([{}(),]|\.\.\.|-?nan(?:\(0x[0-9a-fA-F]++\))?|-?inf|true|false"
    r"|-?[0-9]++(?:\.[0-9]*+)?(?:[eE][+\-]?[0-9]++)?)(?![\w.])"
    r"|(?:[ \t\r\n]++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\r\n]*+)*+(\.\.\.|[{}(),])",
    re.ASCII,
)
_NOISE: Final = re.compile(r"(?:\s++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\r\n]*+)++")
_INTEGER: Final = re.compile(r"-?[0-9]++\Z")
_PAYLOAD: Final = re.compile(r"(-?)nan\(0x([0-9a-fA-F]+)\)")

_MOST_FILLED: Final = 1 << 20
"""Elements of the largest array that one value without braces may stand for."""

Token = str | tuple[str, str]


class Leaf:
    """One dense array as written.

    Attributes:
        shape: shape of the array.
        tokens: values in row-major order; pairs for complex numbers; None when the
            contents were elided.
        sizes: actual sizes of dynamic dimensions, or None.
    """

    __slots__ = ("shape", "sizes", "tokens")

    def __init__(
        self, shape: Shape, tokens: list[Token] | None, sizes: tuple[int, ...] | None
    ) -> None:
        self.shape = shape
        self.tokens = tokens
        self.sizes = sizes


def read_literal(cursor: Cursor, shape: Shape, types: ShapeReader | None) -> Literal:
    """Read a literal of a known shape and check counts, nesting and ranges.

    Args:
        cursor: at the first character of the literal.
        shape: the literal's shape.
        types: given when each leaf is preceded by its shape (`literal=` attributes).
    """
    start = cursor.skip()
    scan_literal(cursor, shape, types, None)
    text = cursor.text[start : cursor.position]
    if "\n" in text or "/" in text:
        text = _NOISE.sub(" ", text)
    return Literal(shape, text.strip())


def read_typed_literal(cursor: Cursor, types: ShapeReader) -> Literal:
    """Read `shape value` or `( shape value, … )`, as in `literal=` attributes.

    The text kept is without the shapes of leaves.
    """
    parts: list[str] = []
    stack: list[list[Shape]] = []
    while True:
        if cursor.accept("("):
            if len(stack) >= MAX_DEPTH:
                cursor.fail("maximum recursion depth exceeded")
            parts.append("( ")
            stack.append([])
            if not cursor.looking_at(")"):
                continue
            shape = None
        else:
            leaf = _read_typed_leaf(cursor, types)
            shape = leaf.shape
            parts.append(leaf.text)
        while True:
            if shape is not None:
                if not stack:
                    return Literal(shape, "".join(parts))
                stack[-1].append(shape)
                if cursor.accept(","):
                    parts.append(", ")
                    break
            cursor.expect(")", "at the end of a tuple literal")
            parts.append(" )")
            shape = Shape.tuple_of(*stack.pop())


_BARE_SHAPE: Final = re.compile(r"[a-z][a-z0-9]*+\[[^\]{]*+\]")


def _read_typed_leaf(cursor: Cursor, types: ShapeReader) -> Literal:
    """`shape value`; `s32[2] {1, 2}` is a value where it can be no layout."""
    start = cursor.skip()
    try:
        return read_literal(cursor, types.read(cursor), None)
    except HloParseError:
        bare = _BARE_SHAPE.match(cursor.text, start)
        if bare is None:
            raise
        cursor.position = bare.end()
        return read_literal(cursor, types.from_text(bare[0]), None)


def scan_literal(
    cursor: Cursor,
    shape: Shape,
    types: ShapeReader | None,
    collect: Callable[[Leaf | str], None] | None,
) -> None:
    """Walk a literal without recursion; leaves and brackets go to `collect`."""
    work: list[Shape | str] = [shape]
    while work:
        item = work.pop()
        if isinstance(item, str):
            cursor.expect(item, "in a tuple literal")
            if collect is not None:
                collect(item)
        elif item.is_tuple:
            cursor.expect("(", "before a tuple literal")
            if collect is not None:
                collect("(")
            work.append(")")
            for i in range(len(item.children) - 1, -1, -1):
                work.append(item.children[i])
                if i:
                    work.append(",")
        elif item.element_type.family == "special":
            _scan_special(cursor, item)
        else:
            leaf = _scan_leaf(cursor, item)
            if collect is not None:
                collect(leaf)


def _scan_special(cursor: Cursor, shape: Shape) -> None:
    if not shape.is_token:
        cursor.fail(f"{shape} has no literal")
    cursor.accept_word("token")
    if cursor.accept("["):
        cursor.expect("]")


def _scan_leaf(cursor: Cursor, shape: Shape) -> Leaf:
    sizes = _dynamic_sizes(cursor, shape)
    dimensions = shape.dimensions
    if sizes is not None:
        dimensions = sizes
    return Leaf(shape, _scan_dense(cursor, shape, dimensions), sizes)


def _dynamic_sizes(cursor: Cursor, shape: Shape) -> tuple[int, ...] | None:
    if not shape.dynamic or not cursor.looking_at("("):
        return None
    cursor.expect("(")
    given = [cursor.integer("a dynamic size")]
    while cursor.accept(","):
        given.append(cursor.integer("a dynamic size"))
    cursor.expect(")")
    flags = shape.dynamic
    if len(given) == len(shape.dimensions):
        sizes = tuple(given)
    elif len(given) == sum(flags):
        rest = iter(given)
        sizes = tuple(
            next(rest) if flag else size
            for size, flag in zip(shape.dimensions, flags, strict=True)
        )
    else:
        cursor.fail(f"expected {sum(flags)} dynamic sizes, got {len(given)}")
    for size, bound in zip(sizes, shape.dimensions, strict=True):
        if not 0 <= size <= bound:
            cursor.fail(f"dynamic size {size} is not within its bound {bound}")
    return sizes


def _scan_dense(
    cursor: Cursor, shape: Shape, dimensions: tuple[int, ...]
) -> list[Token] | None:
    """Tokens of one array; None when elided. Linear in the text."""
    kind = shape.element_type
    check = _checker(kind)
    rank = len(dimensions)
    seen = [0] * rank
    tokens: list[Token] = []
    level = 0
    elided = False
    text, position = cursor.text, cursor.position
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            cursor.position = position
            cursor.fail("unexpected text in a literal", expected="a value or '}'")
        token = match[1] or match[2]
        position = match.end()
        if token == ",":
            continue
        if token == "{":
            level += 1
            if level > rank:
                _literal_error(
                    cursor,
                    match,
                    f"expects nested array in rank {rank}, but sees larger",
                )
            if level > 1:
                _count(cursor, match, seen, level - 1, dimensions)
        elif token == "}":
            if level == 0:
                _literal_error(cursor, match, "unexpected '}' in a literal")
            level -= 1
            if seen[level] != dimensions[level]:
                index = "".join(f"{n - 1}," for n in seen[:level]).rstrip(",")
                _literal_error(
                    cursor,
                    match,
                    f"expects {dimensions[level]} elements in the [{index}]th element, "
                    f"but sees {seen[level]}",
                )
            seen[level] = 0
        elif token == "...":
            if level != 1:
                _literal_error(
                    cursor,
                    match,
                    f"expects `...` at nest level 1, but sees it at nest level {level}",
                )
            seen[0] = dimensions[0]
            elided = True
        elif token == "(":
            if not kind.is_complex:
                _literal_error(
                    cursor, match, "unexpected '(': only complex numbers have parens"
                )
            fill = _count(cursor, match, seen, level, dimensions, leaf=True)
            cursor.position = position
            tokens += [_complex(cursor, check), *[("0", "0")] * fill]
            position = cursor.position
        elif token == ")":
            _literal_error(cursor, match, "unexpected ')' in a literal")
        else:
            fill = _count(cursor, match, seen, level, dimensions, leaf=True)
            problem = check(token)
            if problem or kind.is_complex:
                _literal_error(cursor, match, problem or "expects '(' before complex")
            tokens += [token, *["0"] * fill]
        if level == 0:
            cursor.position = position
            return None if elided else tokens


def _complex(cursor: Cursor, check: Callable[[str], str]) -> tuple[str, str]:
    parts = []
    for end in ",", ")":
        match = _TOKEN.match(cursor.text, cursor.position)
        if match is None or match[0] in "{}(),":
            cursor.fail("expected a number in a complex literal")
        problem = check(match[1])
        if problem:
            _literal_error(cursor, match, problem)
        parts.append(match[1])
        cursor.position = match.end()
        cursor.expect(end, "in a complex literal")
    return parts[0], parts[1]


def _count(
    cursor: Cursor,
    match: re.Match[str],
    seen: list[int],
    level: int,
    dimensions: tuple[int, ...],
    *,
    leaf: bool = False,
) -> int:
    """Count an element at a level; how many zeros follow it.

    As XLA has it, one value without braces is an array's first element, and all
    others are zero.
    """
    rank = len(dimensions)
    if leaf and level != rank:
        others = math.prod(dimensions) - 1
        if level == 0 and 0 <= others < _MOST_FILLED:
            return others
        _literal_error(
            cursor, match, f"expects nested array in rank {rank}, but sees {level}"
        )
    if level == 0:
        return 0
    seen[level - 1] += 1
    if seen[level - 1] > dimensions[level - 1]:
        index = ",".join(str(n - 1) for n in seen[: level - 1])
        _literal_error(
            cursor,
            match,
            f"expects {dimensions[level - 1]} elements in the [{index}]th element, "
            "but sees more",
        )
    return 0


def _literal_error(cursor: Cursor, match: re.Match[str], message: str) -> None:
    cursor.fail(message, at=match.start(1) if match[1] else match.start(2))


# -- ranges --------------------------------------------------------------------


def _checker(kind: PrimitiveType) -> Callable[[str], str]:
    """A function from one value token to what is wrong with it, or ''."""
    if kind.name == "pred":
        return _check_pred
    if kind.is_integral:
        signed = kind.family == "signed"
        low = -(1 << (kind.bits - 1)) if signed else 0
        high = (1 << (kind.bits - (1 if signed else 0))) - 1
        return lambda token: _check_integer(token, low, high, kind.name)
    component = {"c64": "f32", "c128": "f64"}.get(kind.name, kind.name)
    return lambda token: _check_float(token, component)


def _check_pred(token: str) -> str:
    good = token in ("true", "false") or _INTEGER.match(token)
    return "" if good else "expects a pred value"


def wrapped(value: int, *, signed: bool) -> int:
    """As XLA reads integers: numbers of 64 bits without sign, taken as signed ones."""
    return value - (1 << 64) if signed and 1 << 63 <= value < 1 << 64 else value


def _check_integer(token: str, low: int, high: int, name: str) -> str:
    if token in ("true", "false"):
        return ""
    if not _INTEGER.match(token):
        return f"expects integer for primitive type: {name}"
    if len(token) > 30 or not low <= wrapped(int(token), signed=low < 0) <= high:
        return f"value {token[:40]} is out of range for literal's primitive type {name}"
    return ""


_MAX_NATIVE: Final = {
    # The first magnitude that rounds to infinity.
    "f64": math.inf,
    "f32": float.fromhex("0x1.ffffffp127"),
    "f16": 65520.0,
    "bf16": float.fromhex("0x1.ffp127"),
}


def _check_float(token: str, name: str) -> str:
    if token in ("true", "false") or token.endswith("inf"):
        return ""
    if "nan" in token:
        return _check_payload(token, name)
    value = abs(float(token))
    limit = _MAX_NATIVE.get(name)
    if limit is None:
        rounded = decode(name, encode(name, np.array([value])))[0]
        beyond = not math.isfinite(float(rounded)) or value > 2 * float(rounded) + 1
        form = FORMATS[name]
        missing = not form.zero if value == 0 else token[0] == "-" and not form.signed
        outside = missing or (beyond and value != 0)
    else:
        outside = value >= limit if name != "f64" else math.isinf(value)
    if outside:
        return f"value {token[:40]} is out of range for literal's primitive type {name}"
    return ""


def _mantissa_bits(name: str) -> int:
    native = {"f16": 10, "f32": 23, "f64": 52}
    return native[name] if name in native else FORMATS[name].mantissa_bits


def _check_payload(token: str, name: str) -> str:
    match = _PAYLOAD.match(token)
    if match and not int(match[2], 16):
        return "a NaN payload is not 0"
    if match and int(match[2], 16) >> _mantissa_bits(name):
        return f"NaN payload 0x{match[2]} does not fit in {name}"
    return ""


# -- decoding --------------------------------------------------------------------


def decode_literal(shape: Shape, text: str) -> NumpyTree:
    """The numpy value of literal text (see `msa.hlo.literal` for the types)."""
    stack: list[list[NumpyTree]] = [[]]

    def collect(item: Leaf | str) -> None:
        if item == "(":
            stack.append([])
        elif item == ")":
            done = tuple(stack.pop())
            stack[-1].append(done)
        elif isinstance(item, Leaf):
            stack[-1].append(_to_array(item))

    if "..." in text:
        raise HloError(
            f"the contents of a constant of shape {shape} were left out of the text",
            hint="print the module with large constants",
        )
    scan_literal(Cursor(text), shape, None, collect)
    return stack[0][0] if stack[0] else None


def _to_array(leaf: Leaf) -> NDArray[np.generic]:
    kind = leaf.shape.element_type
    tokens = leaf.tokens or []
    dimensions = leaf.sizes if leaf.sizes is not None else leaf.shape.dimensions
    dtype = numpy_dtype(kind)
    flat: NDArray[np.generic]
    if kind.name == "pred":
        flat = np.array([truth_value(t) for t in tokens], dtype=bool)
    elif kind.is_integral:
        signed = kind.family == "signed"
        values = [wrapped(integer_value(t), signed=signed) for t in tokens]
        flat = np.array(values, dtype=dtype)
    elif kind.is_complex:
        part = "f32" if kind.name == "c64" else "f64"
        flat = np.empty(len(tokens), dtype=dtype)
        flat.real = _floats([t[0] for t in tokens], part)
        flat.imag = _floats([t[1] for t in tokens], part)
    else:
        flat = _floats([str(t) for t in tokens], kind.name)
    return flat.reshape(dimensions)


def truth_value(token: Token) -> bool:
    """Value of a `pred` token."""
    return bool(integer_value(token))


def integer_value(token: Token) -> int:
    """Value of an integer token."""
    if token == "true":
        return 1
    return 0 if token == "false" else int(str(token))


UNSIGNED_VIEWS: Final = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}
_FLOAT: Final = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def _floats(tokens: Sequence[str], name: str) -> NDArray[np.floating]:
    values = np.array([number_value(t) for t in tokens], dtype=np.float64)
    if name in FORMATS:
        return decode(name, encode(name, values))
    with np.errstate(over="ignore"):
        out = values.astype(_FLOAT[name])
    for i, token in enumerate(tokens):
        if "nan" in token:
            out.view(UNSIGNED_VIEWS[name])[i] = _nan_bits(token, name)
    return out


def number_value(token: str) -> float:
    """Value of a floating-point token, before rounding to its type."""
    if "nan" in token:
        return -math.nan if token[0] == "-" else math.nan
    if token in ("true", "false"):
        return float(token == "true")
    if _INTEGER.match(token):
        return float(int(token))  # an integer token has no negative zero
    return float(token)


def _nan_bits(token: str, name: str) -> int:
    mantissa = _mantissa_bits(name)
    bits = {"f16": 16, "f32": 32, "f64": 64}[name]
    payload = 1 << (mantissa - 1)
    match = _PAYLOAD.match(token)
    if match:
        payload = int(match[2], 16)
    exponent = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
    sign = 1 << (bits - 1) if token.startswith("-") else 0
    return sign | exponent | payload
