"""The fast path: instructions in the form in which XLA prints them, one per line.

One compiled pattern takes a line apart; shapes, attribute texts and metadata are
looked up by their text. Whatever does not fit is left to the general reader, which
starts again at the same place, so that this path only has to be right about what
it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msa.errors import HloParseError
from msa.hlo.computation import Computation
from msa.hlo.instruction import NO_ATTRIBUTES, Instruction
from msa.hlo.literal_text import read_literal
from msa.hlo.metadata import is_metadata
from msa.hlo.naming import KEYWORDS
from msa.hlo.opcode import OPCODES, OpcodeInfo
from msa.hlo.parser.cursor import Cursor
from msa.hlo.parser.state import ReaderState, Scope, run
from msa.hlo.parser.tail import Tail, read_tail
from msa.hlo.primitive import PRIMITIVE_TYPES
from msa.hlo.shape import Shape

_INSTRUCTION: Final = re.compile(
    r"[ \t]*+(ROOT )?+%?+([A-Za-z][A-Za-z0-9_.\-]*+) = "
    r"([a-z][a-z0-9]*+\[[^\]\n\"/]*+\](?:\{[^}\n\"/]*+\})?+"
    r"|\((?:[^()\n\"]++|\((?:[^()\n\"]++|\((?:[^()\n\"]++|\([^()\n\"]*+\))*+\))*+\))*+\))"
    r" ([a-z][a-z0-9\-]*+)\(([^()\"\n]*+)\)(?:, ([^\n]++))?+\n(?![ \t\r\n]*+[,/])"
)
_METADATA: Final = re.compile(
    r'((?:[^"{}/]++|"(?:[^"\\]++|\\.)*+"|\{[^{}"/]*+\})*+)\}'
    r"(?:, backend_config=(\{.*\}))?"
)
_CALLS: Final = re.compile(
    r"(?:, )?\b(calls|to_apply|condition|body|select|scatter)=%?+"
    r"([A-Za-z_][A-Za-z0-9_.\-]*+)(?=,|$)"
)
_SHAPED_OPERAND: Final = re.compile(
    r"([a-z][a-z0-9]*+\[[0-9,]*+\](?:\{[^{}]*+\})?+) "
    r"%?+([A-Za-z_][A-Za-z0-9_.\-]*+)(?:, (?=.)|\Z)"
)
_NUMBER: Final = re.compile(r"[0-9]{1,9}\Z")
_INDEX_COMMENT: Final = re.compile(r"/\*index=[0-9]+\*/")
_NOT_FAST_WORDS: Final = (
    "async-start async-update async-done send send-done recv recv-done after-all "
    "add-dependency infeed outfeed scatter scan map conditional"
)
_NOT_FAST: Final = frozenset(_NOT_FAST_WORDS.split())
_MAX_INDENT: Final = 200
_RESERVED: Final = KEYWORDS | frozenset(PRIMITIVE_TYPES)


_ORDINARY, _PARAMETER, _CONSTANT, _PAIRED = range(4)
_KINDS: Final = {
    "parameter": _PARAMETER,
    "constant": _CONSTANT,
    "reduce": _PAIRED,
    "reduce-window": _PAIRED,
}

_Rest = tuple[Mapping[str, Any], str | None, str | None]


class _Row:
    """What the fast path knows of one opcode."""

    __slots__ = (
        "arity",
        "bare_allowed",
        "called",
        "heads",
        "info",
        "kind",
        "name",
        "needs_calls",
        "rests",
        "special",
    )

    def __init__(self, info: OpcodeInfo) -> None:
        self.info = info
        self.name = info.name
        self.arity = info.arity
        self.called = info.called
        self.kind = _KINDS.get(info.name, _ORDINARY)
        self.bare_allowed = not info.required and not info.always_printed
        self.needs_calls = any(a in info.required for a in info.called)
        # Attribute text without calls, metadata and config to attributes.
        self.heads: dict[str, Mapping[str, Any]] = {}
        # Whole attribute text without calls to attributes, metadata and config.
        self.rests: dict[str, _Rest] = {}
        # Text of parameter numbers and constants to attributes.
        self.special: dict[str, Mapping[str, Any]] = {}

    def takes(self, count: int) -> bool:
        """Whether a variadic opcode takes so many operands."""
        return self.kind != _PAIRED or (count % 2 == 0 and count > 0)


def _rows(state: ReaderState) -> dict[str, _Row]:
    if not state.tails:
        state.tails.update(
            {
                name: _Row(info)
                for name, info in OPCODES.items()
                if name not in _NOT_FAST
            }
        )
    return state.tails


def read_lines(state: ReaderState, scope: Scope) -> None:
    """Read instructions while they have the common form.

    Leaves the cursor where the general reader has to go on: at an instruction of
    another form, or at the closing brace.
    """
    cursor = state.cursor
    text = cursor.text
    rows = _rows(state)
    names = scope.names
    shapes = state.types.by_text
    computation = scope.computation
    instructions = computation.instructions
    parameters = computation.parameters
    match = _INSTRUCTION.match
    position = cursor.skip()
    if not _starts_line(text, position):
        return
    line = state.line_at(position)
    while True:
        found = match(text, position)
        if found is None:
            break
        root, name, shape_text, opcode, operand_text, rest = found.groups()
        row = rows.get(opcode)
        if row is None or name in names or name in _RESERVED:
            break
        shape = shapes.get(shape_text) or _shape(state, shape_text)
        if shape is None:
            break
        kind = row.kind
        extra = None
        operands: tuple[Instruction, ...] | None
        if kind in (_ORDINARY, _PAIRED):
            if not operand_text:
                operands = ()
            elif "[" in operand_text or "/" in operand_text:
                operands = _noted_operands(state, names, operand_text)
                if operands is None:
                    break
            else:
                try:
                    if "," in operand_text:
                        written = operand_text.replace("%", "").split(", ")
                        operands = tuple([names[x] for x in written])
                    else:
                        operands = (names[operand_text.removeprefix("%")],)
                except KeyError:
                    break
            count = len(operands)
            if count != row.arity and (row.arity >= 0 or not row.takes(count)):
                break
        else:
            operands = ()
            extra = _special(row, shape, shape_text, operand_text)
            if extra is None:
                break
        called: tuple[Computation, ...] = ()
        predecessors: tuple[Instruction, ...] = ()
        if rest is None:
            if not row.bare_allowed:
                break
            attributes, metadata, config = NO_ATTRIBUTES, None, None
        else:
            known = row.rests.get(rest)
            if known is not None:
                attributes, metadata, config = known
            else:
                tail = _tail(state, scope, row, rest, found.start(6), found.end() - 1)
                if tail is None:
                    break
                attributes, called, predecessors, metadata, config = tail
        if extra is not None:
            attributes = _joined(extra, attributes)
        if root:
            if scope.explicit_root:
                break
            scope.explicit_root = True
        instruction = Instruction(
            name,
            row.name,
            shape,
            operands,
            attributes,
            called,
            predecessors,
            metadata,
            config,
        )
        instruction.computation = computation
        instruction.line = line
        names[name] = instruction
        instructions.append(instruction)
        if kind == _PARAMETER:
            parameters.append(instruction)
        if root:
            computation.root = instruction
        position = found.end()
        line += 1
    cursor.position = position


def _starts_line(text: str, position: int) -> bool:
    """Whether only a modest indentation comes before on the line.

    The pattern looks as far as the end of the line, so it is tried once per line.
    """
    start = text.rfind("\n", max(0, position - _MAX_INDENT), position) + 1
    if not start and position > _MAX_INDENT:
        return False
    return start == position or text[start:position].isspace()


def _noted_operands(
    state: ReaderState, names: dict[str, Instruction], text: str
) -> tuple[Instruction, ...] | None:
    """Operands with index comments or with their shapes."""
    text = _INDEX_COMMENT.sub("", text)
    if "[" in text:
        return _shaped_operands(state, names, text)
    try:
        return tuple([names[name] for name in text.replace("%", "").split(", ")])
    except KeyError:
        return None


def _shaped_operands(
    state: ReaderState, names: dict[str, Instruction], text: str
) -> tuple[Instruction, ...] | None:
    """Operands written with their shapes, which must be compatible."""
    operands = []
    position = 0
    while position < len(text):
        match = _SHAPED_OPERAND.match(text, position)
        if match is None:
            return None
        operand = names.get(match[2])
        shape = _shape(state, match[1])
        if operand is None or shape is None or not shape.compatible(operand.shape):
            return None
        operands.append(operand)
        position = match.end()
    return tuple(operands)


def _joined(
    extra: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    return MappingProxyType({**extra, **attributes}) if attributes else extra


def _shape(state: ReaderState, text: str) -> Shape | None:
    known = state.types.by_text.get(text)
    if known is not None:
        return known
    try:
        return state.types.from_text(text)
    except HloParseError:
        return None


def _special(
    row: _Row, shape: Shape, shape_text: str, operand_text: str
) -> Mapping[str, Any] | None:
    """Attributes of a parameter or constant, or None to leave it."""
    if row.kind == _PARAMETER:
        extra = row.special.get(operand_text)
        if extra is None and _NUMBER.match(operand_text):
            extra = MappingProxyType({"parameter_number": int(operand_text)})
            row.special[operand_text] = extra
        return extra
    key = f"{shape_text} {operand_text}"
    extra = row.special.get(key)
    if extra is None:
        cursor = Cursor(operand_text)
        try:
            literal = read_literal(cursor, shape, None)
            if not cursor.at_end():
                return None
        except HloParseError:
            return None
        extra = MappingProxyType({"literal": literal})
        row.special[key] = extra
    return extra


_FastTail = tuple[
    Mapping[str, Any],
    tuple[Any, ...],
    tuple[Instruction, ...],
    str | None,
    str | None,
]


def _tail(
    state: ReaderState, scope: Scope, row: _Row, rest: str, start: int, end: int
) -> _FastTail | None:
    """Attributes from the text after `, `; None to leave the line."""
    head, metadata, config, sure = rest, None, None, True
    place = rest.find("metadata={")
    if place == 0 or (place > 0 and rest[place - 2 : place] == ", "):
        head = rest[: place - 2] if place else ""
        metadata = rest[place + 10 :]
        if metadata.find("}") == len(metadata) - 1:
            metadata = metadata[:-1]
        else:
            match = _METADATA.fullmatch(metadata)
            if match is None:
                sure = False
            else:
                metadata, config = match[1], match[2]
    else:
        place = rest.find("backend_config={")
        if place == 0 or (place > 0 and rest[place - 2 : place] == ", "):
            head = rest[: place - 2] if place else ""
            config = rest[place + 15 :]
    if metadata is not None and metadata not in state.metadata:
        sure = sure and is_metadata(metadata)
        if sure:
            state.metadata.add(metadata)
    if config is not None and config not in state.configs:
        try:
            sure = sure and Cursor(config).balanced() == config
        except HloParseError:
            sure = False
        if sure:
            state.configs.add(config)
    if sure:
        calls = _CALLS.findall(head) if row.called else None
        bare = _CALLS.sub("", head).removeprefix(", ") if calls else head
        if bare or not row.bare_allowed:
            attributes = row.heads.get(bare)
        else:
            attributes = NO_ATTRIBUTES
        if attributes is not None and (calls or not row.needs_calls):
            if not calls:
                row.rests[rest] = attributes, metadata, config
                return attributes, (), (), metadata, config
            called = _resolve(state, row, calls)
            if called is not None:
                return attributes, called, (), metadata, config
    return _slow_tail(state, scope, row, head, metadata, config, sure, start, end)


def _resolve(
    state: ReaderState, row: _Row, calls: list[tuple[str, str]]
) -> tuple[Any, ...] | None:
    computations = state.computations
    if len(calls) == 1:
        found = computations.get(calls[0][1])
        return None if found is None or len(row.called) != 1 else (found,)
    by_name = dict(calls)
    if len(by_name) != len(calls) or len(calls) != len(row.called):
        return None
    try:
        return tuple(computations[by_name[role]] for role in row.called)
    except KeyError:
        return None


def _slow_tail(
    state: ReaderState,
    scope: Scope,
    row: _Row,
    head: str,
    metadata: str | None,
    config: str | None,
    sure: bool,
    start: int,
    end: int,
) -> _FastTail | None:
    cursor = state.cursor
    if " =" in head or "\t=" in head:
        return None  # a computation written in place spans more than this line
    before = cursor.position
    cursor.position = start - 2
    try:
        tail: Tail = run(read_tail(state, scope, row.info), cursor)
    except HloParseError:
        cursor.position = before
        return None
    reached = cursor.position
    cursor.position = before
    if reached < end or not cursor.text[end:reached].isspace():
        return None
    if (
        sure
        and tail.metadata == metadata
        and tail.backend_config == config
        and not tail.predecessors
        and head.count('"') % 2 == 0
    ):
        calls = _CALLS.findall(head) if row.called else []
        if len(calls) == len(tail.called):
            bare = _CALLS.sub("", head).removeprefix(", ") if calls else head
            row.heads[bare] = tail.attributes
    return (
        tail.attributes,
        tail.callees(row.info),
        tail.predecessors,
        tail.metadata,
        tail.backend_config,
    )
