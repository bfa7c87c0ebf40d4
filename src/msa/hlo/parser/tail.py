"""Reading the attributes that follow an instruction's operands.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.metadata import METADATA_FIELDS, first_unknown_field, is_metadata
from msa.hlo.opcode import (
    COMMON_ATTRIBUTES,
    ONE_DIMENSION,
    AttributeSpec,
    OpcodeInfo,
)
from msa.hlo.parser.cursor import Cursor, nearest_name, shown
from msa.hlo.parser.state import ReaderState, Scope, Task
from msa.hlo.parser.values import VALUE_READERS, read_list, read_string_or_json

_UNKNOWN: Final = AttributeSpec("", "raw")


_DROPPED_WHEN_EMPTY: Final = frozenset({"frontend", "statistics", "accuracy"})


class Tail:
    """Attributes of one instruction as read.

    Attributes:
        attributes: parsed values, defaults left out.
        called: computations by the name of the attribute that names them.
        predecessors: control predecessors.
        metadata: text between the braces, or None.
        backend_config: raw or unescaped text, or None.
    """

    __slots__ = ("attributes", "backend_config", "called", "metadata", "predecessors")

    def __init__(self, attributes: Mapping[str, Any] = NO_ATTRIBUTES) -> None:
        self.attributes = attributes
        self.called: Mapping[str, tuple[Computation, ...]] = NO_ATTRIBUTES
        self.predecessors: tuple[Instruction, ...] = ()
        self.metadata: str | None = None
        self.backend_config: str | None = None

    def callees(self, info: OpcodeInfo) -> tuple[Computation, ...]:
        """Called computations in the order of `Instruction.called_computations`."""
        if not self.called:
            return ()
        return tuple(c for name in info.called for c in self.called.get(name, ()))


def read_tail(
    state: ReaderState,
    scope: Scope,
    info: OpcodeInfo,
    *,
    optional: frozenset[str] = frozenset(),
) -> Task:
    """Read `, name=value` as often as it comes; returns a `Tail`.

    Args:
        state: the reader.
        scope: names that control predecessors refer to.
        info: row of the opcode whose attributes are read.
        optional: required attributes that may be missing all the same.
    """
    cursor = state.cursor
    values: dict[str, Any] = {}
    called: dict[str, tuple[Computation, ...]] = {}
    tail = Tail()
    seen: set[str] = set()
    start = cursor.skip()
    while cursor.accept(","):
        at = cursor.skip()
        name = cursor.attribute_name()
        spec = info.attributes.get(name) or COMMON_ATTRIBUTES.get(name)
        if spec is None:
            if not state.allow_unknown:
                allowed = [*info.attributes, *COMMON_ATTRIBUTES]
                cursor.fail(
                    f"unexpected attribute {shown(name)!r} of {info.name}; permitted: "
                    + ", ".join(allowed),
                    at=at,
                    expected=", ".join(allowed),
                    nearest=nearest_name(name, allowed),
                )
            spec = _UNKNOWN
        if name in seen:
            cursor.fail(f"attribute {shown(name)!r} appears twice", at=at)
        seen.add(name)
        kind = spec.kind
        if kind == "calls" or kind == "calls_list":
            called[name] = yield _read_called(state, kind == "calls_list")
        elif kind == "metadata":
            tail.metadata = _read_metadata(cursor)
        elif kind == "config":
            tail.backend_config = read_string_or_json(cursor)
        elif kind == "instructions":
            tail.predecessors = read_list(
                cursor, lambda: resolve_instruction(state, scope)
            )
        elif kind == "ignored":
            VALUE_READERS[kind](cursor, state.types)
        else:
            value_at = cursor.skip()
            value = VALUE_READERS[kind](cursor, state.types)
            if name == "dimensions" and info.name in ONE_DIMENSION:
                _check_one_dimension(cursor, value, value_at)
            if kind not in _DROPPED_WHEN_EMPTY or value:
                values[name] = value
    for name in info.required:
        if name not in seen and name not in optional:
            cursor.fail(
                f"attribute {name} is expected but not seen", at=start, expected=name
            )
    if values.get("use_global_device_ids") and "channel_id" not in values:
        cursor.fail(
            "Cannot have use_global_device_ids=true without channel_id",
            at=start,
            expected="channel_id",
        )
    _drop_defaults(info, values)
    if values:
        tail.attributes = MappingProxyType(values)
    tail.called = called
    return tail


def _read_metadata(cursor: Cursor) -> str:
    start = cursor.skip()
    text = cursor.balanced()[1:-1].strip()
    if is_metadata(text):
        return text
    unknown = first_unknown_field(text)
    if not unknown:
        cursor.fail("malformed metadata", at=start, expected="field=value …")
    return cursor.fail(
        f"unexpected metadata field {shown(unknown)!r}; permitted: "
        + ", ".join(METADATA_FIELDS),
        at=start,
        expected=", ".join(METADATA_FIELDS),
        nearest=nearest_name(unknown, METADATA_FIELDS),
    )


def _check_one_dimension(cursor: Cursor, dimensions: tuple[int, ...], at: int) -> None:
    if len(dimensions) != 1:
        cursor.fail(
            f"dimensions must have exactly one element, got {len(dimensions)}",
            at=at,
            expected="one dimension such as {0}",
        )
    if dimensions[0] < 0:
        cursor.fail(f"dimension {dimensions[0]} is negative", at=at)


def _drop_defaults(info: OpcodeInfo, values: dict[str, Any]) -> None:
    for name, default in info.defaults.items():
        if name in info.always_printed:
            values.setdefault(name, default)
        elif name in values and values[name] == default:
            del values[name]


def _read_called(state: ReaderState, listed: bool) -> Task:
    from msa.hlo.parser.computation import read_inline_computation

    cursor = state.cursor
    if not listed or not cursor.looking_at("{"):
        if cursor.looking_at("{"):
            return ((yield read_inline_computation(state)),)
        return (_named_computation(state),)
    found: list[Computation] = []
    cursor.expect("{")
    while not cursor.accept("}"):
        if found:
            cursor.expect(",", "between computations")
        if cursor.looking_at("{"):
            found.append((yield read_inline_computation(state)))
        else:
            found.append(_named_computation(state))
    return tuple(found)


def _named_computation(state: ReaderState) -> Computation:
    at = state.cursor.skip()
    return state.resolve_computation(state.cursor.name("a computation"), at)


def resolve_instruction(state: ReaderState, scope: Scope) -> Instruction:
    """Read a name and look it up in the computation."""
    cursor = state.cursor
    at = cursor.skip()
    name = cursor.name("an instruction name")
    instruction = scope.names.get(name)
    if instruction is None:
        cursor.fail(
            f"instruction does not exist: {shown(name)}",
            at=at,
            expected="an instruction defined above",
            nearest=nearest_name(name, scope.names),
        )
    return instruction
