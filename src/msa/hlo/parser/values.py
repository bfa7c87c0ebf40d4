"""Readers of attribute values, one per kind named in the opcode table.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from msa.hlo.literal_text import read_typed_literal
from msa.hlo.parser.cursor import Cursor, nearest_name
from msa.hlo.parser.groups import read_replica_groups
from msa.hlo.parser.shapes import ShapeReader
from msa.hlo.sharding import canonical_sharding, read_sharding_text
from msa.hlo.window import ConvolutionDimensionNumbers, Window, WindowDimension

_DIM_LABELS: Final = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)")
_DXD: Final = re.compile(r"(-?[0-9]+(?:x-?[0-9]+)*)(?![\w.])")
_PADS: Final = re.compile(
    r"(-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?(?:x-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?)*)(?![\w.])"
)
_RAW: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*+"|[^,\s{}()"])++')
_KEY: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]*+)=")

Reader = Callable[[Cursor, ShapeReader], Any]

# -- numbers and words ------------------------------------------------------------


def read_list(
    cursor: Cursor,
    item: Callable[[], Any],
    opening: str = "{",
    closing: str = "}",
    *,
    optional_commas: bool = False,
) -> tuple[Any, ...]:
    """Read `{item, item, …}`."""
    cursor.expect(opening, "at the start of a list")
    items: list[Any] = []
    while not cursor.accept(closing):
        if items and not cursor.accept(",") and not optional_commas:
            cursor.expect(closing, "at the end of a list")
        if optional_commas and cursor.accept(closing):
            break
        items.append(item())
    return tuple(items)


def read_integers(cursor: Cursor) -> tuple[int, ...]:
    """`{1,2}`."""
    return read_list(cursor, cursor.integer)


def read_integer_lists(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    """`{{1,2},{3}}`."""
    return read_list(cursor, lambda: read_integers(cursor))


def _pairs(cursor: Cursor, types: ShapeReader) -> tuple[tuple[int, ...], ...]:
    start = cursor.skip()
    pairs = read_integer_lists(cursor)
    if any(len(pair) != 2 for pair in pairs):
        cursor.fail("expects pairs such as {{0,1},{1,0}}", at=start)
    return pairs


def _booleans(cursor: Cursor, types: ShapeReader) -> tuple[bool, ...]:
    return read_list(cursor, cursor.boolean)


def _enumeration(what: str, words: str, *, fold: bool = False) -> Reader:
    known = words.split()
    table = {word.lower() if fold else word: word for word in known}

    def read(cursor: Cursor, types: ShapeReader) -> str:
        start = cursor.skip()
        word = cursor.word(what)
        value = table.get(word.lower() if fold else word)
        if value is None:
            cursor.fail(
                f"{word!r} is not {what}",
                at=start,
                expected=" ".join(known),
                nearest=nearest_name(word, known),
            )
        return value

    return read


_PRECISION: Final = _enumeration(
    "an operand precision", "default high highest packed_nibble", fold=True
)


def _precisions(cursor: Cursor, types: ShapeReader) -> tuple[str, ...]:
    return read_list(cursor, lambda: _PRECISION(cursor, types))


def _word(cursor: Cursor, types: ShapeReader) -> str:
    return cursor.word()


def _raw(cursor: Cursor, types: ShapeReader) -> str:
    if cursor.looking_at("{"):
        return cursor.balanced()
    match = cursor.match(_RAW)
    if match is None:
        cursor.fail("expected a value", expected="a value")
    return match[0]


def _numbers(cursor: Cursor, match: re.Match[str]) -> list[tuple[int, ...]]:
    """`1_2x3_4` as `[(1, 2), (3, 4)]`."""
    at = match.start(1)
    return [
        tuple(cursor.number(x, at) for x in part.split("_"))
        for part in match[1].split("x")
    ]


# -- windows -----------------------------------------------------------------------


def _window(cursor: Cursor, types: ShapeReader) -> Window:
    start = cursor.skip()
    cursor.expect("{", "at the start of a window")
    fields: dict[str, list[tuple[int, ...]]] = {}
    while not cursor.accept("}"):
        at = cursor.skip()
        name = cursor.attribute_name()
        if name not in _WINDOW_FIELDS or name in fields:
            cursor.fail(
                f"unexpected window field {name!r}",
                at=at,
                expected=" ".join(_WINDOW_FIELDS),
                nearest=nearest_name(name, _WINDOW_FIELDS),
            )
        match = cursor.match(_PADS if name == "pad" else _DXD)
        if match is None:
            cursor.fail(f"expects a value of {name} such as 3x3 or 1_1x0_0")
        fields[name] = _numbers(cursor, match)
    if not fields:
        return Window()
    if "size" not in fields:
        cursor.fail("sub-attribute 'size=' is required in a window", at=start)
    rank = len(fields["size"])
    for name, entries in fields.items():
        if len(entries) != rank:
            cursor.fail(
                f"window has {rank} dimensions by its size, "
                f"but {name} has {len(entries)}: expects same number of dimensions in "
                f"{name}=",
                at=start,
            )
        if name == "pad" and any(len(entry) != 2 for entry in entries):
            cursor.fail("window padding is low_high", at=start)
    return Window(tuple(_window_dimension(fields, i) for i in range(rank)))


_WINDOW_FIELDS: Final = (
    "size",
    "stride",
    "pad",
    "lhs_dilate",
    "rhs_dilate",
    "rhs_reversal",
)


def _window_dimension(
    fields: dict[str, list[tuple[int, ...]]], i: int
) -> WindowDimension:
    def one(name: str, default: int) -> int:
        return fields[name][i][0] if name in fields else default

    low, high = fields["pad"][i] if "pad" in fields else (0, 0)
    return WindowDimension(
        one("size", 1),
        one("stride", 1),
        low,
        high,
        one("rhs_dilate", 1),
        one("lhs_dilate", 1),
        bool(one("rhs_reversal", 0)),
    )


def _dim_labels(cursor: Cursor, types: ShapeReader) -> ConvolutionDimensionNumbers:
    start = cursor.skip()
    match = cursor.match(_DIM_LABELS)
    if match is None:
        cursor.fail("expects dim labels pattern, e.g., 'bf0_0io->0bf'")
    lhs, rhs, output = match[1], match[2], match[3]
    spatial = None
    for labels, letters in ((lhs, "bf"), (rhs, "io"), (output, "bf")):
        digits = sorted(c for c in labels if c.isdecimal())
        wanted = [str(i) for i in range(len(digits))]
        if (
            any(labels.count(letter) != 1 for letter in letters)
            or digits != wanted
            or (spatial is not None and digits != spatial)
            or len(labels.replace("?", "")) != len(digits) + 2
        ):
            cursor.fail(
                f"inconsistent dimension labels {labels!r} in {match[0]!r}: expects "
                f"'{letters[0]}', '{letters[1]}' and 0, 1, … once each, the same "
                "number in all three parts",
                at=start,
            )
        spatial = digits
    return ConvolutionDimensionNumbers(lhs, rhs, output)


def _padding(cursor: Cursor, types: ShapeReader) -> tuple[tuple[int, ...], ...]:
    match = cursor.match(_PADS)
    if match is None:
        if cursor.looking_at("{"):
            cursor.expect("{")
            cursor.expect("}")
            return ()
        cursor.fail("expects padding such as 0_1 or 0_1_2x3_4_5")
    entries = _numbers(cursor, match)
    return tuple((e[0], e[1], e[2] if len(e) > 2 else 0) for e in entries)


def _ranges(cursor: Cursor, types: ShapeReader) -> tuple[tuple[int, int, int], ...]:
    def one() -> tuple[int, int, int]:
        cursor.expect("[", "at the start of a slice range")
        start = cursor.integer("a slice start")
        cursor.expect(":")
        limit = cursor.integer("a slice limit")
        stride = cursor.integer("a slice stride") if cursor.accept(":") else 1
        cursor.expect("]", "at the end of a slice range")
        return start, limit, stride

    return read_list(cursor, one)


# -- tables -------------------------------------------------------------------------


def read_shape_index(cursor: Cursor) -> tuple[int, ...]:
    """`{0,1}` naming a node of a shape."""
    cursor.expect("{", "at the start of ShapeIndex")
    index: list[int] = []
    if not cursor.accept("}"):
        while True:
            if cursor.peek() not in "-0123456789" or not cursor.peek():
                cursor.fail("Expects '}' at the end of ShapeIndex: expects integer")
            at = cursor.skip()
            index.append(cursor.integer("a shape index"))
            if index[-1] < 0:
                cursor.fail("a shape index is not negative", at=at)
            if not cursor.accept(",") or cursor.looking_at("}"):
                break
        if not cursor.accept("}"):
            cursor.fail("Expects '}' at the end of ShapeIndex", expected="'}'")
    return tuple(index)


def _aliasing(cursor: Cursor, types: ShapeReader) -> tuple[Any, ...]:
    def one() -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        output = read_shape_index(cursor)
        cursor.expect(":", "after an output index")
        cursor.expect("(", "before an operand number")
        operand = cursor.integer("an operand number")
        cursor.expect(",", "after an operand number")
        index = read_shape_index(cursor)
        cursor.expect(")", "after an operand index")
        return output, operand, index

    return read_list(cursor, one, optional_commas=True)


def _shapes(cursor: Cursor, types: ShapeReader) -> tuple[Any, ...]:
    return read_list(cursor, lambda: types.read(cursor))


def _accuracy(cursor: Cursor, types: ShapeReader) -> str | None:
    """Result accuracy as standard text; None for the default mode."""
    at = cursor.skip()
    cursor.expect("{", "before a result accuracy")
    name = cursor.attribute_name()
    if name == "mode":
        mode = _ACCURACY_MODE(cursor, types)
        cursor.expect("}", "after a result accuracy")
        return None if mode == "default" else f"{{mode={mode}}}"
    if name != "tolerance":
        cursor.fail(f"unexpected {name!r} in a result accuracy", at=at)
    cursor.expect("{", "before a tolerance")
    found: dict[str, str] = {}
    while not cursor.accept("}"):
        if found:
            cursor.expect(",", "between tolerances")
        key_at = cursor.skip()
        key = cursor.attribute_name()
        if key not in ("atol", "rtol", "ulps") or key in found:
            cursor.fail(f"unexpected tolerance {key!r}", at=key_at)
        found[key] = (
            str(cursor.integer()) if key == "ulps" else f"{cursor.decimal():.6g}"
        )
    cursor.expect("}", "after a result accuracy")
    rows = ",".join(f"{k}={found.get(k, '0')}" for k in ("atol", "rtol", "ulps"))
    return f"{{tolerance={{{rows}}}}}"


_ACCURACY_MODE: Final = _enumeration("an accuracy mode", "default highest", fold=True)


def read_pairs(cursor: Cursor, value: Callable[[], Any]) -> tuple[tuple[str, Any], ...]:
    """`{key=value,…}`, sorted by key."""
    cursor.expect("{")
    found: dict[str, Any] = {}
    while not cursor.accept("}"):
        if found:
            cursor.expect(",", "between entries")
        at = cursor.skip()
        match = cursor.match(_KEY)
        if match is None:
            cursor.fail("expected key=value", expected="key=value")
        if match[1] in found:
            cursor.fail(f"key {match[1]!r} appears twice", at=at)
        found[match[1]] = value()
    return tuple(sorted(found.items()))


def read_frontend(cursor: Cursor, types: ShapeReader) -> tuple[tuple[str, str], ...]:
    """Frontend attributes; a JSON dict is kept as raw text."""
    return read_pairs(cursor, lambda: read_string_or_json(cursor))


def read_string_or_json(cursor: Cursor) -> str:
    """An unescaped string, or the raw text of a JSON dict."""
    if cursor.looking_at("{"):
        return cursor.balanced()
    return cursor.string()


def _statistics(cursor: Cursor, types: ShapeReader) -> tuple[tuple[str, Any], ...]:
    cursor.expect("{")
    found: dict[str, Any] = {}
    while not cursor.accept("}"):
        if found:
            cursor.expect(",", "between statistics")
        name = cursor.attribute_name()
        match = cursor.match(_RAW)
        if match is None:
            cursor.fail("expected a number", expected="a number")
        found[name] = match[0]
    return tuple(found.items())


def _string(cursor: Cursor, types: ShapeReader) -> str:
    return cursor.string()


_DOMAIN: Final = re.compile(r"(kind|entry|exit)=")
_QUOTED: Final = re.compile(r'("(?:[^"\\]++|\\.)*+")')


def _domain(cursor: Cursor, types: ShapeReader) -> str:
    """A sharding domain as standard text."""
    cursor.expect("{", "before a domain")
    found: dict[str, str] = {}
    while not cursor.accept("}"):
        cursor.accept(",")
        at = cursor.skip()
        match = cursor.match(_DOMAIN)
        if match is None or match[1] in found:
            cursor.fail("expected kind=, entry= or exit=", at=at)
        if match[1] == "kind":
            found["kind"] = cursor.string()
        else:
            found[match[1]] = canonical_sharding(read_sharding_text(cursor))
    if set(found) != {"kind", "entry", "exit"}:
        cursor.fail("a domain has kind, entry and exit", expected="kind, entry, exit")
    if found["kind"] != "sharding":
        cursor.fail(f"unsupported domain kind: {found['kind']}")
    return f'{{kind="sharding", entry={found["entry"]}, exit={found["exit"]}}}'


def _origin(cursor: Cursor, types: ShapeReader) -> str:
    """An original value; the text is kept, spaced in the standard way."""
    text = cursor.balanced()
    parts: list[str] = []
    for i, part in enumerate(_QUOTED.split(text)):
        if i % 2 == 0:
            part = re.sub(r"\s+", "", part)
            part = re.sub(r"([})]),", r"\1, ", part)
            if i and part.startswith("{"):
                part = " " + part
        parts.append(part)
    return "".join(parts)


VALUE_READERS: Final[dict[str, Reader]] = {
    "int": lambda c, t: c.integer(),
    "float": lambda c, t: c.decimal(),
    "bool": lambda c, t: c.boolean(),
    "ignored": _raw,
    "ints": lambda c, t: read_integers(c),
    "int_lists": lambda c, t: read_integer_lists(c),
    "pairs": _pairs,
    "bools": _booleans,
    "word": _word,
    "raw": _raw,
    "accuracy": _accuracy,
    "sharding": lambda c, t: read_sharding_text(c),
    "domain": _domain,
    "origin": _origin,
    "precisions": _precisions,
    "direction": _enumeration("a comparison direction", "EQ NE LT LE GT GE"),
    "fft_type": _enumeration("an FFT type", "FFT IFFT RFFT IRFFT"),
    "fusion_kind": _enumeration("a fusion kind", "kLoop kInput kOutput kCustom"),
    "distribution": _enumeration(
        "a distribution", "rng_uniform rng_normal rng_bernoulli", fold=True
    ),
    "rng_algorithm": _enumeration(
        "a random algorithm", "rng_default rng_three_fry rng_philox", fold=True
    ),
    "window": _window,
    "dim_labels": _dim_labels,
    "padding": _padding,
    "ranges": _ranges,
    "groups": lambda c, t: read_replica_groups(c),
    "aliasing": _aliasing,
    "shapes": _shapes,
    "shape": lambda c, t: t.read(c),
    "string": _string,
    "typed_literal": read_typed_literal,
    "frontend": read_frontend,
    "statistics": _statistics,
}
"""Value readers by kind; kinds that name computations or instructions are read by
`msa.hlo.parser.tail`."""
