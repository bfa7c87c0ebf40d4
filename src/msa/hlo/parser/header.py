"""Reading the module header and the stack-frame tables.

Source: `xla/hlo/parser/hlo_parser.cc`.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, Final

from msa.hlo.module import Alias, ComputationLayout, Module
from msa.hlo.parser.cursor import Cursor, nearest_name, shown
from msa.hlo.parser.shapes import ShapeReader
from msa.hlo.parser.values import read_frontend, read_list, read_shape_index

_TITLE: Final = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b")
_ENTRIES: Final = re.compile(
    r'(?:\s++|[0-9]++|"(?:[^"\\]++|\\.)*+"|\{[^{}"]*+\})*+', re.DOTALL
)

_ATTRIBUTES: Final = (
    "is_scheduled",
    "replica_count",
    "num_partitions",
    "input_output_alias",
    "buffer_donor",
    "alias_passthrough_params",
    "entry_computation_layout",
    "frontend_attributes",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
    "origin_recovery_table",
    "debug_attributes",
)


def read_header(cursor: Cursor, types: ShapeReader, module: Module) -> bool:
    """Read `HloModule name, attributes` and the tables after it.

    Returns:
        Whether the text order of instructions is a schedule.
    """
    module.name = cursor.name("a module name")
    cursor.accept(":")
    values: dict[str, Any] = {}
    while cursor.accept(","):
        at = cursor.skip()
        name = cursor.attribute_name()
        if name not in _ATTRIBUTES:
            cursor.fail(
                f"unexpected attribute {shown(name)!r} of a module; permitted: "
                + ", ".join(_ATTRIBUTES),
                at=at,
                expected=", ".join(_ATTRIBUTES),
                nearest=nearest_name(name, _ATTRIBUTES),
            )
        if name in values:
            cursor.fail(f"attribute {shown(name)!r} appears twice", at=at)
        values[name] = _read_value(cursor, types, name)
    _store(module, values)
    module.stack_frames = _read_tables(cursor)
    return bool(values.get("is_scheduled", False))


def _read_value(cursor: Cursor, types: ShapeReader, name: str) -> Any:
    if name in ("is_scheduled", "alias_passthrough_params"):
        return cursor.boolean()
    if name in ("replica_count", "num_partitions"):
        at = cursor.skip()
        count = cursor.integer("a count")
        if not 0 < count < 1 << 31:
            cursor.fail(f"{name} must be a positive count", at=at)
        return count
    if name == "input_output_alias":
        return _read_aliases(cursor)
    if name == "buffer_donor":
        return _read_donors(cursor)
    if name == "entry_computation_layout":
        return _read_layout(cursor, types)
    if name == "frontend_attributes":
        return read_frontend(cursor, types)
    if name.startswith("allow_spmd"):
        if cursor.looking_at("{"):
            return read_list(cursor, cursor.boolean)
        return (cursor.boolean(),)
    return cursor.balanced()


def _read_aliases(cursor: Cursor) -> tuple[Alias, ...]:
    aliases: dict[tuple[int, ...], Alias] = {}

    def one() -> None:
        at = cursor.skip()
        output = read_shape_index(cursor)
        cursor.expect(":", "after an output index")
        cursor.expect("(", "before a parameter number")
        parameter = cursor.integer("a parameter number")
        cursor.expect(",", "after a parameter number")
        index = read_shape_index(cursor)
        must = False
        if cursor.accept(","):
            word_at = cursor.skip()
            word = cursor.word("may-alias or must-alias")
            if word not in ("may-alias", "must-alias"):
                cursor.fail(
                    f"Unexpected aliasing kind; expected SYSTEM or USER: {word!r} is "
                    "not may-alias or must-alias",
                    at=word_at,
                    expected="may-alias or must-alias",
                )
            must = word == "must-alias"
        cursor.expect(")", "after a parameter index")
        if output in aliases:
            cursor.fail(f"output {{{','.join(map(str, output))}}} aliased twice", at=at)
        aliases[output] = Alias(output, parameter, index, must)

    read_list(cursor, one, optional_commas=True)
    return tuple(aliases[key] for key in sorted(aliases))


def _read_donors(cursor: Cursor) -> tuple[tuple[int, tuple[int, ...]], ...]:
    def one() -> tuple[int, tuple[int, ...]]:
        cursor.expect("(", "before a parameter number")
        parameter = cursor.integer("a parameter number")
        cursor.expect(",", "after a parameter number")
        index = read_shape_index(cursor)
        cursor.expect(")", "after a parameter index")
        return parameter, index

    return tuple(sorted(set(read_list(cursor, one, optional_commas=True))))


def _read_layout(cursor: Cursor, types: ShapeReader) -> ComputationLayout:
    cursor.expect("{", "before a computation layout")
    parameters = read_list(cursor, lambda: types.read(cursor), "(", ")")
    cursor.expect("->", "in a computation layout")
    result = types.read(cursor)
    cursor.expect("}", "after a computation layout")
    return ComputationLayout(parameters, result)


def _store(module: Module, values: dict[str, Any]) -> None:
    module.replica_count = values.get("replica_count", 1)
    module.num_partitions = values.get("num_partitions", 1)
    module.aliases = values.get("input_output_alias", ())
    module.buffer_donors = values.get("buffer_donor", ())
    module.entry_layout = values.get("entry_computation_layout")
    rest = {
        name: values[name]
        for name in (
            "alias_passthrough_params",
            "allow_spmd_sharding_propagation_to_parameters",
            "allow_spmd_sharding_propagation_to_output",
            "frontend_attributes",
            "origin_recovery_table",
            "debug_attributes",
        )
        if values.get(name) and values[name] != (False,)
    }
    if rest:
        module.attributes = MappingProxyType(rest)


def _read_tables(cursor: Cursor) -> str:
    """The text of the tables, verbatim; entries are checked for balance only."""
    start = cursor.skip()
    while cursor.match(_TITLE) is not None:
        match = _ENTRIES.match(cursor.text, cursor.position)
        assert match is not None  # matches the empty text
        cursor.position = match.end()
    return cursor.text[start : cursor.position].strip()
