"""Reading the text form of the buffer IR."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from msa.dealloc.errors import BufferIRError
from msa.dealloc.ir import (
    INDEX,
    Block,
    BufferModule,
    BufferType,
    Function,
    Operation,
    Region,
    ScalarType,
    Successor,
    Type,
    Value,
)
from msa.dealloc.printing import PLAIN_OPERATIONS
from msa.hlo.arguments import expect

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<comment>//.*)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<type>buf<[^<>]*>)"
    r"|(?P<value>%[\w.$-]+)|(?P<symbol>@[\w.$-]+)|(?P<block>\^[\w.$-]+)"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_][\w.-]*)"
    r"|(?P<mark>->|[(){}\[\]=:,]))"
)


_SIZE: Final = re.compile("[0-9]{1,18}")
"""A size of a buffer; more digits than any machine addresses are refused."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


@dataclass(slots=True)
class _Open:
    """An operation whose regions are being read."""

    operation: Operation
    region: Region
    block: Block


@dataclass(slots=True)
class _Pending:
    """Names that an operation or successor refers to, resolved at the end."""

    target: list[Value]
    names: list[tuple[str, int, int]] = field(default_factory=list)


def parse(text: str) -> BufferModule:
    """Read functions from text.

    Raises:
        BufferIRError: with line and column.

    >>> list(parse("func @f() {\\n^entry:\\n  return\\n}").functions)
    ['f']
    """
    module = BufferModule()
    reader = _Reader(expect(text, str, where="dealloc.parse", what="text"))
    while True:
        function = reader.function()
        if function is None:
            return module
        module.add(function)


def parse_function(text: str) -> Function:
    """Read exactly one function.

    >>> parse_function("func @f() {\\n^entry:\\n  return\\n}").name
    'f'
    """
    functions = list(parse(text).functions.values())
    if len(functions) != 1:
        raise BufferIRError(f"expected one function, found {len(functions)}")
    return functions[0]


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.line = 0
        self.tokens: list[_Token] = []
        self.place = 0

    # -- tokens ------------------------------------------------------------------

    def _error(self, message: str) -> BufferIRError:
        column = (
            self.tokens[self.place].column
            if self.place < len(self.tokens)
            else len(self.lines[self.line - 1]) + 1
            if self.line
            else 1
        )
        return BufferIRError(message, where=f"{self.line}:{column}")

    def _next_line(self) -> bool:
        while self.line < len(self.lines):
            text = self.lines[self.line]
            self.line += 1
            self.tokens, self.place = [], 0
            position = 0
            while position < len(text) and not text[position:].isspace():
                match = _TOKEN.match(text, position)
                if match is None:
                    self.tokens.append(_Token("bad", "", position + 1))
                    raise self._error(f"cannot read {text[position : position + 20]!r}")
                kind = match.lastgroup or ""
                if kind != "comment":
                    token = _Token(kind, match[kind], match.start(kind) + 1)
                    self.tokens.append(token)
                position = match.end()
            if self.tokens:
                return True
        return False

    @property
    def _done(self) -> bool:
        return self.place >= len(self.tokens)

    def _peek(self, text: str) -> bool:
        return not self._done and self.tokens[self.place].text == text

    def _accept(self, text: str) -> bool:
        if self._peek(text):
            self.place += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error(f"expected {text!r}")

    def _take(self, kind: str, what: str) -> str:
        if self._done or self.tokens[self.place].kind != kind:
            raise self._error(f"expected {what}")
        self.place += 1
        text = self.tokens[self.place - 1].text
        return text[1:] if kind in ("value", "symbol", "block") else text

    def _is(self, kind: str) -> bool:
        return not self._done and self.tokens[self.place].kind == kind

    # -- functions ---------------------------------------------------------------

    def function(self) -> Function | None:
        if not self._next_line():
            return None
        self._expect("func")
        function = Function(self._take("symbol", "a function name"))
        self.values: dict[str, Value] = {}
        self.pending: list[_Pending] = []
        self.blocks: dict[Region, dict[str, Block]] = {}
        self.declared: set[Block] = set()
        entry = function.region.add_block("entry")
        self._expect("(")
        while not self._accept(")"):
            name = self._take("value", "a parameter")
            self._expect(":")
            self._define(entry.add_argument(name, self._type()))
            attributes = self._braces() if self._peek("{") else {}
            function.argument_attributes.append(attributes)
            if not self._peek(")"):
                self._expect(",")
        if self._accept("->"):
            function.result_types = tuple(self._type_list())
        self._expect("{")
        self._body(function, entry)
        self._resolve()
        return function

    def _body(self, function: Function, entry: Block) -> None:
        self._register(entry)
        self.declared.add(entry)
        stack = [_Open(None, function.region, entry)]  # type: ignore[arg-type]
        first = True
        while stack:
            if not self._next_line():
                raise self._error("the text ends inside a function")
            top = stack[-1]
            if self._accept("}"):
                self._close(stack)
            elif self._is("block"):
                top.block = self._label(top.region, first and len(stack) == 1)
            else:
                self._operation(top, stack)
            first = False

    def _close(self, stack: list[_Open]) -> None:
        top = stack[-1]
        if self._done:
            stack.pop()
            return
        if top.operation is None:
            raise self._error("unexpected text after the function")
        region = top.operation.add_region()
        block = region.add_block("entry")
        if self._accept("do"):
            self._expect("(")
            while not self._accept(")"):
                name = self._take("value", "an argument")
                self._expect(":")
                self._define(block.add_argument(name, self._type()))
                if not self._peek(")"):
                    self._expect(",")
        elif not self._accept("else"):
            self._expect("next")
        self._expect("{")
        self._register(block)
        self.declared.add(block)
        stack[-1] = _Open(top.operation, region, block)

    def _register(self, block: Block) -> None:
        self.blocks.setdefault(block.region, {})[block.name] = block

    def _label(self, region: Region, may_rename: bool) -> Block:
        name = self._take("block", "a block")
        if may_rename and not region.blocks[0].operations:
            block = region.blocks[0]
            del self.blocks[region][block.name]
            block.name = name
            self._register(block)
            self._expect(":")
            return block
        block = self._block(region, name)
        if block in self.declared:
            raise self._error(f"block ^{name} is defined twice")
        self.declared.add(block)
        region.blocks.remove(block)
        region.blocks.append(block)
        if self._accept("("):
            while not self._accept(")"):
                argument = self._take("value", "an argument")
                self._expect(":")
                self._define(block.add_argument(argument, self._type()))
                if not self._peek(")"):
                    self._expect(",")
        self._expect(":")
        return block

    def _block(self, region: Region, name: str) -> Block:
        known = self.blocks.setdefault(region, {})
        if name not in known:
            known[name] = region.add_block(name)
        return known[name]

    def _define(self, value: Value) -> Value:
        if value.name in self.values:
            raise self._error(f"%{value.name} is defined twice")
        self.values[value.name] = value
        return value

    def _resolve(self) -> None:
        for pending in self.pending:
            for name, line, column in pending.names:
                if name not in self.values:
                    raise BufferIRError(
                        f"%{name} is not defined", where=f"{line}:{column}"
                    )
                pending.target.append(self.values[name])
        for known in self.blocks.values():
            for block in known.values():
                if block not in self.declared:
                    raise self._error(f"block ^{block.name} is not defined")

    # -- operations --------------------------------------------------------------

    def _operation(self, top: _Open, stack: list[_Open]) -> None:
        names = []
        if self._is("value"):
            names.append(self._take("value", "a result"))
            while self._accept(","):
                names.append(self._take("value", "a result"))
            self._expect("=")
        quoted = self._is("string")
        if quoted:
            kind = self._json()
        else:
            kind = self._take("word", "an operation")
        operation = Operation(kind)
        operands = self._later(operation.operands)
        inner: list[tuple[str, Type | None]] = []
        attributes: dict[str, Any] = {}
        if quoted:
            self._expect("(")
            self._names(operands, ")")
        elif kind == "use":
            operation.reads, operation.writes = self._use(operands)
        elif kind == "constant":
            attributes["value"] = self._json()
        elif kind == "call":
            attributes["callee"] = self._take("symbol", "a function")
            self._expect("(")
            self._names(operands, ")")
        elif kind in ("br", "cond_br"):
            self._branch(operation, operands, top.region)
        elif kind in ("for", "parallel", "while"):
            inner = self._loop(kind, operands)
        elif kind == "if" or kind in PLAIN_OPERATIONS:
            self._names(operands, None)
        else:
            raise self._error(f"unknown operation {kind!r} (quote it to keep it)")
        types = self._signature(kind, inner)
        if len(types) != len(names):
            raise self._error(f"{len(names)} results but {len(types)} types")
        opens = False
        if self._peek("{"):
            opens = self.place == len(self.tokens) - 1
            if not opens:
                attributes.update(self._braces())
                opens = self._peek("{")
            if opens:
                self._expect("{")
        if not self._done:
            raise self._error("unexpected text")
        operation.attributes = attributes
        aliases = attributes.get("aliases")
        if isinstance(aliases, dict):  # keys of JSON are text
            attributes["aliases"] = {
                int(k) if k.isdecimal() else k: v for k, v in aliases.items()
            }
        operation.results = [
            self._define(Value(name, type_, operation, i))
            for i, (name, type_) in enumerate(zip(names, types, strict=True))
        ]
        top.block.append(operation)
        if opens:
            self._open(operation, inner, stack)

    def _open(
        self,
        operation: Operation,
        inner: list[tuple[str, Type | None]],
        stack: list[_Open],
    ) -> None:
        region = operation.add_region()
        block = region.add_block("entry")
        for name, type_ in inner:
            assert type_ is not None
            self._define(block.add_argument(name, type_))
        self._register(block)
        self.declared.add(block)
        stack.append(_Open(operation, region, block))

    def _signature(self, kind: str, inner: list[tuple[str, Type | None]]) -> list[Type]:
        """Result types; fills in the types of loop arguments."""
        types: list[Type] = []
        if self._accept(":"):
            types = self._type_list()
        if kind == "while":
            for place, (name, _) in enumerate(inner):
                if place >= len(types):
                    raise self._error("a while states the types of its arguments")
                inner[place] = (name, types[place])
            self._expect("->")
            return self._type_list()
        if kind in ("for", "parallel"):
            carried = inner[1:]
            if len(carried) != len(types):
                raise self._error("a for states one type for each carried value")
            for place, (name, _) in enumerate(carried):
                inner[place + 1] = (name, types[place])
        return types

    def _later(self, target: list[Value]) -> _Pending:
        pending = _Pending(target)
        self.pending.append(pending)
        return pending

    def _name(self, pending: _Pending) -> None:
        column = self.tokens[self.place].column if not self._done else 0
        pending.names.append((self._take("value", "a value"), self.line, column))

    def _names(self, pending: _Pending, closing: str | None) -> None:
        if closing is None:
            while self._is("value"):
                self._name(pending)
                if not self._accept(","):
                    return
            return
        while not self._accept(closing):
            self._name(pending)
            if not self._peek(closing):
                self._expect(",")

    def _use(self, operands: _Pending) -> tuple[tuple[int, ...], tuple[int, ...]]:
        self._expect("reads")
        self._expect("(")
        self._names(operands, ")")
        reads = len(operands.names)
        self._expect("writes")
        self._expect("(")
        self._names(operands, ")")
        return tuple(range(reads)), tuple(range(reads, len(operands.names)))

    def _branch(self, operation: Operation, operands: _Pending, region: Region) -> None:
        while self._is("value"):
            self._name(operands)
            self._expect(",")
        while True:
            successor = Successor(
                self._block(region, self._take("block", "a block")), []
            )
            operation.successors.append(successor)
            if self._accept("("):
                self._names(self._later(successor.arguments), ")")
            if not self._accept(","):
                return

    def _loop(self, kind: str, operands: _Pending) -> list[tuple[str, Type | None]]:
        inner: list[tuple[str, Type | None]] = []
        if kind != "while":
            inner.append((self._take("value", "a variable"), INDEX))
            self._expect("=")
            self._name(operands)
            self._expect("to")
            self._name(operands)
            self._expect("step")
            self._name(operands)
            if not self._accept("iter"):
                return inner
        self._expect("(")
        while not self._accept(")"):
            inner.append((self._take("value", "an argument"), None))
            self._expect("=")
            self._name(operands)
            if not self._peek(")"):
                self._expect(",")
        return inner

    # -- types and attributes ------------------------------------------------------

    def _type(self) -> Type:
        if self._is("type"):
            body = self._take("type", "a type")[4:-1]
            *sizes, dtype = body.split("x")
            if not dtype or not all(s == "?" or _SIZE.fullmatch(s) for s in sizes):
                raise self._error(f"cannot read the type buf<{body}>")
            return BufferType(tuple(None if s == "?" else int(s) for s in sizes), dtype)
        return ScalarType(self._take("word", "a type"))

    def _type_list(self) -> list[Type]:
        if not self._accept("("):
            types = [self._type()]
            while self._accept(","):
                types.append(self._type())
            return types
        types = []
        while not self._accept(")"):
            types.append(self._type())
            if not self._peek(")"):
                self._expect(",")
        return types

    def _braces(self) -> dict[str, Any]:
        self._expect("{")
        attributes: dict[str, Any] = {}
        while not self._accept("}"):
            key = self._take("word", "an attribute")
            if key in attributes:
                raise self._error(f"the attribute {key!r} is given twice")
            attributes[key] = self._json() if self._accept("=") else True
            if not self._peek("}"):
                self._expect(",")
        return attributes

    def _json(self) -> Any:
        """A JSON value made of the line's tokens."""
        start, depth = self.place, 0
        while not self._done:
            text = self.tokens[self.place].text
            if depth == 0 and text in (",", "}", ")", ":") and self.place > start:
                break
            depth += text in ("{", "[")
            depth -= text in ("}", "]")
            self.place += 1
            if depth == 0:
                break
        raw = "".join(token.text for token in self.tokens[start : self.place])
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            self.place = start
            raise self._error("expected a value") from None
