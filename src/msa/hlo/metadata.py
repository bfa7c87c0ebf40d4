"""Metadata of instructions: where in the user's program an operation comes from.

Source: `xla/xla_data.proto` (`OpMetadata`), `xla/hlo/ir/hlo_op_metadata.h`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msa.hlo.arguments import expect

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module

_FIELD: Final = re.compile(
    r'([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|\{([^{}]*)\}|([^\s,{}"]+))', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the front end said about one instruction; empty fields were not given.

    `source_line`, `source_end_line` and columns are 1-based, 0 when unknown.

    >>> Metadata(op_name="jit(f)/add", source_file="f.py", source_line=3).op_name
    'jit(f)/add'
    """

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    profile_type: str = ""
    deduplicated_name: str = ""
    scheduling_name: str = ""
    stack_frame_id: int = 0
    metadata_payload: str = ""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the user's program."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


_NUMBERS: Final = frozenset(
    {
        "source_line",
        "source_end_line",
        "source_column",
        "source_end_column",
        "stack_frame_id",
    }
)
_EMPTY: Final = Metadata()
_TEXTS: Final = (
    "op_type op_name source_file deduplicated_name scheduling_name metadata_payload"
)
# Fields of older dumps are accepted too.
_OLD: Final = (
    "preserve_layout size_of_generated_code_in_bytes "
    "size_of_memory_working_set_in_bytes"
)
METADATA_FIELDS: Final = tuple(Metadata.__slots__)
_WELL_FORMED: Final = re.compile(
    r"\s*+(?:(?:(?:"
    + "|".join(_TEXTS.split())
    + r')=(?:"(?:[^"\\]++|\\.)*+"|\{[^{}]*+\})|(?:'
    + "|".join([*sorted(_NUMBERS, reverse=True), *_OLD.split()])
    + r")=(?:-?[0-9]++|true|false)|profile_type=\{[0-9, ]*+\})(?:\s*+,?\s*+))*+",
    re.DOTALL,
)


def is_metadata(text: str) -> bool:
    """Whether text between braces is a list of known metadata fields.

    >>> is_metadata('op_name="x" source_line=3'), is_metadata("bogus=1")
    (True, False)
    """
    return _WELL_FORMED.fullmatch(text) is not None


def first_unknown_field(text: str) -> str:
    """The first field name that metadata does not have, or an empty string."""
    bare = re.sub(r'"(?:[^"\\]++|\\.)*+"', "", text)
    known = {*METADATA_FIELDS, *_OLD.split()}
    return next((n for n in re.findall(r"(\w+)=", bare) if n not in known), "")


@lru_cache(maxsize=4096)
def parse_metadata(text: str | None) -> Metadata:
    """Read the text between the braces of `metadata={…}`; unknown fields are skipped.

    >>> parse_metadata('op_name="jit(f)/add" source_file="f.py" source_line=4').op_name
    'jit(f)/add'
    """
    if not text:
        return _EMPTY
    from msa.hlo.parser.cursor import unescape

    values: dict[str, str | int] = {}
    for name, quoted, braced, bare in _FIELD.findall(text):
        if name not in Metadata.__slots__:
            continue
        if name in _NUMBERS:
            if _SHORT.fullmatch(bare):
                values[name] = int(bare)
        else:
            values[name] = unescape(quoted) or braced or bare
    return Metadata(**values)  # type: ignore[arg-type]


_SHORT: Final = re.compile(r"[0-9]{1,18}")
_ENTRY: Final = re.compile(
    r'^\s*([0-9]{1,18})\s+(?:"((?:[^"\\]|\\.)*)"|\{([^{}]*)\})', re.M
)
_TITLE: Final = re.compile(
    r"^[ \t]*(FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*$", re.M
)


class StackFrames:
    """The stack-frame tables of a module, resolved to source lines.

    >>> tables = StackFrames('''FileNames
    ... 1 "f.py"
    ... FunctionNames
    ... 1 "main"
    ... FileLocations
    ... 1 {file_name_id=1 function_name_id=1 line=7}
    ... StackFrames
    ... 1 {file_location_id=1 parent_frame_id=1}
    ... ''')
    >>> str(tables.resolve(1))
    'f.py:7'
    """

    __slots__ = ("_files", "_frames", "_functions", "_locations")

    def __init__(self, text: str) -> None:
        sections: dict[str, str] = {}
        titles = list(_TITLE.finditer(text))
        for i, title in enumerate(titles):
            end = titles[i + 1].start() if i + 1 < len(titles) else len(text)
            sections[title[1]] = text[title.end() : end]
        self._files = _strings(sections.get("FileNames", ""))
        self._functions = _strings(sections.get("FunctionNames", ""))
        self._locations = _records(sections.get("FileLocations", ""))
        self._frames = _records(sections.get("StackFrames", ""))

    def resolve(self, frame_id: int) -> SourceLocation | None:
        """The innermost source line of a frame, or None when it is not there."""
        frame = self._frames.get(frame_id)
        location = (
            self._locations.get(frame["file_location_id"])
            if frame and ("file_location_id" in frame)
            else None
        )
        if location is None:
            return None
        return SourceLocation(
            self._files.get(location.get("file_name_id", 0), ""),
            location.get("line", 0),
            self._functions.get(location.get("function_name_id", 0), ""),
        )

    def stack(self, frame_id: int) -> list[SourceLocation]:
        """The whole stack, innermost first."""
        found: list[SourceLocation] = []
        seen: set[int] = set()
        while frame_id in self._frames and frame_id not in seen:
            seen.add(frame_id)
            place = self.resolve(frame_id)
            if place is not None:
                found.append(place)
            # Parent ids are stored one higher, so that 1 means no parent.
            frame_id = self._frames[frame_id].get("parent_frame_id", 1) - 1
        return found


def _strings(text: str) -> dict[int, str]:
    from msa.hlo.parser.cursor import unescape

    return {int(m[1]): unescape(m[2] or "") for m in _ENTRY.finditer(text)}


def _records(text: str) -> dict[int, Mapping[str, int]]:
    return {
        int(m[1]): {
            k: int(v) for k, v in re.findall(r"(\w+)=([0-9]{1,18})(?!\w)", m[3] or "")
        }
        for m in _ENTRY.finditer(text)
    }


@lru_cache(maxsize=16)
def _tables(text: str) -> StackFrames:
    return StackFrames(text)


def source_location(
    instruction: Instruction, module: Module | None = None
) -> SourceLocation | None:
    """Where in the user's program an instruction comes from, if it says so.

    The module's stack-frame tables are used when the metadata names a frame.

    >>> import msa
    >>> text = 'ENTRY e { ROOT p = f32[4] parameter(0), metadata={source_file="f.py" source_line=3} }'
    >>> str(source_location(msa.parse(text).entry.root))
    'f.py:3'
    """
    from msa.hlo.instruction import Instruction

    expect(instruction, Instruction, where="source_location", what="an Instruction")
    metadata = instruction.metadata
    if metadata.source_file:
        return SourceLocation(metadata.source_file, metadata.source_line)
    if module is None and instruction.computation is not None:
        module = instruction.computation.module
    if metadata.stack_frame_id and module is not None and module.stack_frames:
        return _tables(module.stack_frames).resolve(metadata.stack_frame_id)
    return None
