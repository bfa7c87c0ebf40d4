"""Options from protocol-buffer text, as XLA's flags take them.

Only what the options need: fields `name: value`, messages `name { … }`, lists
`[a, b]`, quoted text, numbers, booleans and comments.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from typing import Any, TypeVar

from msa.assignment.filters import (
    HloOperandFilter,
    HloPositionMatcher,
    HloRandomFilter,
    MsaSortOrderOverride,
    PreferredPrefetchOverride,
)
from msa.assignment.options import (
    MemoryBoundLoopOptimizerOptions,
    SlicedPrefetchOptions,
)
from msa.errors import OptionsError

_TOKEN = re.compile(
    r"""\s*(?:\#[^\n]*\n\s*)*
    (?: (?P<name>[A-Za-z_]\w*)
      | (?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+))
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<mark>[{}\[\]:,;<>]) )""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_DEEPEST = 20
Message = TypeVar("Message")

#: Wire names of fields that hold several numbers.
_INDEX_FIELD = "tuple_index"


def parse_text_proto(text: str) -> dict[str, list[Any]]:
    """Fields of a message, each with all its values in order.

    Raises:
        OptionsError: the text is not well formed; says where.

    >>> parse_text_proto('a: 1 b { c: "x" } a: 2')
    {'a': [1, 2], 'b': [{'c': ['x']}]}
    """
    parser = _Parser(text)
    return parser.message(0)


class _Parser:
    __slots__ = ("_place", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def _error(self, message: str) -> OptionsError:
        line = self._text.count("\n", 0, self._place) + 1
        column = self._place - self._text.rfind("\n", 0, self._place)
        return OptionsError(message, where=f"{line}:{column}")

    def _next(self) -> tuple[str, str] | None:
        """Kind and text of the next token; None at the end."""
        found = _TOKEN.match(self._text, self._place)
        if found is None:
            rest = re.sub(r"#[^\n]*", "", self._text[self._place :])
            if rest.strip():
                raise self._error(f"unexpected {rest.strip()[0]!r}")
            self._place = len(self._text)
            return None
        self._place = found.end()
        kind = found.lastgroup or ""
        return kind, found.group(kind)

    def _peek(self) -> tuple[str, str] | None:
        place = self._place
        token = self._next()
        self._place = place
        return token

    def message(self, depth: int) -> dict[str, list[Any]]:
        """Fields up to the closing brace (or, outermost, to the end)."""
        if depth > _DEEPEST:
            raise self._error(f"messages are nested deeper than {_DEEPEST}")
        fields: dict[str, list[Any]] = {}
        while True:
            token = self._next()
            if token is None:
                if depth:
                    raise self._error("a message is not closed")
                return fields
            kind, text = token
            if text in ("}", ">") and depth:
                return fields
            if text in (",", ";"):
                continue
            if kind != "name":
                raise self._error(f"expected a field, found {text!r}")
            fields.setdefault(text, []).extend(self._values(depth))

    def _values(self, depth: int) -> list[Any]:
        following = self._peek()
        if following is not None and following[1] == ":":
            self._next()
            following = self._peek()
        if following is None:
            raise self._error("a field has no value")
        if following[1] in ("{", "<"):
            self._next()
            return [self.message(depth + 1)]
        if following[1] != "[":
            return [self._scalar()]
        self._next()
        values: list[Any] = []
        while True:
            following = self._peek()
            if following is not None and following[1] == "]":
                self._next()
                return values
            if following is not None and following[1] == ",":
                self._next()
                continue
            values.append(self._scalar())

    def _scalar(self) -> Any:
        token = self._next()
        if token is None:
            raise self._error("a value is missing")
        kind, text = token
        if kind == "number":
            is_whole = text.lstrip("+-").isdigit()
            return int(text) if is_whole else float(text)
        if kind == "text":
            return re.sub(
                r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), text[1:-1]
            )
        if kind == "name":
            return {"true": True, "false": False}.get(text, text)
        raise self._error(f"expected a value, found {text!r}")


def sort_order_overrides(text: str) -> tuple[MsaSortOrderOverride, ...]:
    """`overrides { hlo_position_matcher { … } override_options { … } }`, repeated."""
    found = []
    for fields in parse_text_proto(text).get("overrides", ()):
        options = fields.pop("override_options", [{}])[0]
        found.append(_read(MsaSortOrderOverride, {**fields, **options}))
    return tuple(found)


def preferred_prefetch_overrides(text: str) -> tuple[PreferredPrefetchOverride, ...]:
    """`overrides { hlo_operand_filter { … } override_options { … } }`, repeated."""
    found = []
    for fields in parse_text_proto(text).get("overrides", ()):
        options = fields.pop("override_options", [{}])[0]
        found.append(_read(PreferredPrefetchOverride, {**fields, **options}))
    return tuple(found)


def sliced_prefetch_options(text: str) -> SlicedPrefetchOptions:
    """Options of sliced prefetches."""
    return _read(SlicedPrefetchOptions, parse_text_proto(text))


def loop_optimizer_options(text: str) -> MemoryBoundLoopOptimizerOptions:
    """Options of the memory-bound loop optimizer."""
    return _read(MemoryBoundLoopOptimizerOptions, parse_text_proto(text))


_MESSAGES: dict[str, type[Any]] = {
    "after_instruction": HloPositionMatcher,
    "before_instruction": HloPositionMatcher,
    "hlo_operand_filter": HloOperandFilter,
    "hlo_position_matcher": HloPositionMatcher,
    "hlo_random_filter": HloRandomFilter,
    "hlo_use_filter": HloOperandFilter,
}


def _read(kind: type[Message], fields: dict[str, list[Any]]) -> Message:
    """A dataclass from the fields of a message.

    Raises:
        OptionsError: a field is unknown or has the wrong type.
    """
    hints = typing.get_type_hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for name, values in fields.items():
        if name not in known:
            raise OptionsError(f"{kind.__name__} has no field {name!r}")
        value = values[-1]
        if name == _INDEX_FIELD:
            arguments[name] = _index(values)
        elif isinstance(value, dict):
            if name not in _MESSAGES:
                raise OptionsError(f"{name} takes a value, not a message")
            arguments[name] = _read(_MESSAGES[name], value)
        else:
            wanted = hints[name]
            if not _fits(value, wanted):
                raise OptionsError(f"{name} cannot be {value!r}")
            arguments[name] = value
    return kind(**arguments)


def _index(values: list[Any]) -> tuple[int, ...]:
    if len(values) == 1 and isinstance(values[0], dict):
        values = values[0].get("index", [])
    return tuple(int(value) for value in values)


def _fits(value: Any, hint: Any) -> bool:
    options = typing.get_args(hint) or (hint,)
    if isinstance(value, bool):
        return bool in options
    if isinstance(value, int):
        return int in options or float in options
    return type(value) in options
