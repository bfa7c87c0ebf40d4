"""A place in HLO text: skipping, matching and pointing at what is wrong.

The reader is scannerless: each construct is one compiled pattern tried at the
current position, after white space and comments. Line and column are worked out
only when an error is reported.

Source of the lexical rules: `xla/hlo/parser/hlo_lexer.cc`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from heapq import nlargest
from itertools import islice
from typing import Final, NoReturn

from msa.errors import HloParseError

_SPACE: Final = re.compile(
    r"(?:[ \t\r\n]++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\r\n]*+)*+", re.ASCII
)
_BLANK: Final = frozenset(" \t\r\n/")
_NAME: Final = re.compile(r"%?([A-Za-z_][A-Za-z0-9_.\-]*+)(:?)")
_ATTRIBUTE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]*+)=")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*+")
_INTEGER: Final = re.compile(r"-?[0-9]++(?![.0-9A-Za-z_])")
_FLOAT: Final = re.compile(
    r"(-?(?:[0-9]++(?:\.[0-9]*+)?(?:[eE][+\-]?[0-9]++)?|inf\b|nan\b))(?![\w.])"
)
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\]|\\.)*+\'', re.DOTALL)
_BRACES: Final = re.compile(r'[^{}"]++|"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
}

MAX_DEPTH: Final = 8192
"""Nested shapes, operands, literals and computations deeper than this are refused."""


class Cursor:
    """Text with a current position; white space and comments are skipped first.

    Attributes:
        text: the whole input.
        position: index of the next character to read.

    >>> cursor = Cursor("  /* note */ x = 1")
    >>> cursor.name(), cursor.accept("="), cursor.integer()
    ('x', True, 1)
    """

    __slots__ = ("position", "text")

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position

    # -- looking -------------------------------------------------------------

    def skip(self) -> int:
        """Skip white space and comments; returns the new position."""
        position = self.position
        if self.text[position : position + 1] not in _BLANK:
            return position
        match = _SPACE.match(self.text, position)
        assert match is not None  # the pattern matches the empty text
        self.position = position = match.end()
        if self.text.startswith("/*", position):
            self.fail("unterminated comment", expected="'*/'")
        return position

    def peek(self) -> str:
        """The next character, or an empty string at the end."""
        position = self.skip()
        return self.text[position : position + 1]

    def looking_at(self, token: str) -> bool:
        """Whether `token` comes next; nothing is consumed but white space."""
        return self.text.startswith(token, self.skip())

    def at_end(self) -> bool:
        """Whether only white space and comments are left."""
        return self.skip() >= len(self.text)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Try a pattern at the next token and consume it when it matches."""
        match = pattern.match(self.text, self.skip())
        if match is not None:
            self.position = match.end()
        return match

    # -- taking --------------------------------------------------------------

    def accept(self, token: str) -> bool:
        """Consume `token` if it comes next."""
        position = self.skip()
        if self.text.startswith(token, position):
            self.position = position + len(token)
            return True
        return False

    def expect(self, token: str, context: str = "") -> None:
        """Consume `token` or fail."""
        if not self.accept(token):
            where = f" {context}" if context else ""
            self.fail(f"expected {token!r}{where}", expected=repr(token))

    def accept_word(self, word: str) -> bool:
        """Consume a whole word if it comes next."""
        match = _WORD.match(self.text, self.skip())
        if match is not None and match[0] == word:
            self.position = match.end()
            return True
        return False

    def peek_word(self) -> str:
        """The next identifier-like word, or an empty string."""
        match = _WORD.match(self.text, self.skip())
        return match[0] if match else ""

    def word(self, what: str = "a word") -> str:
        """An identifier-like word."""
        match = self.match(_WORD)
        if match is None:
            self.fail(f"expected {what}", expected=what)
        return match[0]

    def name(self, what: str = "a name") -> str:
        """An identifier with or without `%`; a colon right after it is consumed."""
        match = self.match(_NAME)
        if match is None:
            self.fail(f"expected {what}", expected=what)
        return match[1]

    def attribute_name(self) -> str:
        """An identifier immediately followed by `=`."""
        match = self.match(_ATTRIBUTE)
        if match is None:
            self.fail("expected an attribute such as name=value", expected="attribute")
        return match[1]

    def integer(self, what: str = "an integer") -> int:
        """A decimal integer of at most 64 bits."""
        match = self.match(_INTEGER)
        if match is None:
            self.fail(f"expected {what}: expects integer", expected=what)
        return self.number(match[0], match.start(), what)

    def number(self, text: str, at: int, what: str = "an integer") -> int:
        """The value of matched digits (with a sign); at most 64 bits."""
        value = int(text) if len(text) <= 21 else 1 << 64
        if not -(1 << 63) <= value < (1 << 64):
            self.fail(
                f"integer {text[:40]} does not fit in 64 bits",
                at=at,
                expected=what,
            )
        return value

    def decimal(self) -> float:
        """An integer, a decimal, `inf`, `-inf` or `nan`."""
        match = self.match(_FLOAT)
        if match is None:
            self.fail("expected a number", expected="a number")
        return float(match[1])

    def boolean(self) -> bool:
        """`true` or `false`."""
        for word in ("true", "false"):
            if self.accept_word(word):
                return word == "true"
        return self.fail("expected true or false", expected="true or false")

    def string(self) -> str:
        """A quoted string, unescaped."""
        return unescape(self.raw_string())

    def raw_string(self) -> str:
        """The contents of a quoted string as written."""
        match = self.match(_STRING)
        if match is None:
            if self.peek() in ("'", '"'):
                self.fail("unterminated string", expected="a closing quote")
            self.fail("expected a string", expected='a string such as "text"')
        return match[0][1:-1]

    def balanced(self) -> str:
        """Raw text from `{` to its matching `}`, both included.

        Braces inside double-quoted strings do not count.
        """
        start = self.skip()
        text = self.text
        if not text.startswith("{", start):
            self.fail("expected '{'", expected="'{'")
        depth = 0
        position = start
        while position < len(text):
            char = text[position]
            if char == "{":
                depth += 1
                position += 1
            elif char == "}":
                depth -= 1
                position += 1
                if depth == 0:
                    self.position = position
                    return text[start:position]
            else:
                match = _BRACES.match(text, position)
                if match is None:
                    self.fail("unterminated string", at=position, expected="'\"'")
                position = match.end()
        return self.fail("unmatched '{'", at=start, expected="'}'")

    # -- failing -------------------------------------------------------------

    def place(self, position: int) -> tuple[int, int]:
        """Line and column, both from 1, of a position."""
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        return line, column

    def fail(
        self,
        message: str,
        *,
        at: int | None = None,
        expected: str = "",
        nearest: str = "",
        hint: str = "",
    ) -> NoReturn:
        """Raise a parse error at a position (default: the next token)."""
        if at is None:
            match = _SPACE.match(self.text, self.position)
            at = match.end() if match else self.position
        line, column = self.place(at)
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        if end < 0:
            end = len(self.text)
        raise HloParseError(
            message,
            line=line,
            column=column,
            source_line=self.text[start:end],
            expected=expected,
            nearest=nearest,
            hint=hint,
        )


def unescape(raw: str) -> str:
    """Undo the C escapes of a quoted string.

    >>> unescape(r'say \\"hi\\"')
    'say "hi"'
    """
    if "\\" not in raw:
        return raw
    return _ESCAPE.sub(_unescape_one, raw)


def _unescape_one(match: re.Match[str]) -> str:
    body = match[1]
    if body[0] == "x" and len(body) > 1:
        return chr(int(body[1:], 16))
    if body[0] in "01234567":
        return chr(int(body, 8))
    return _SIMPLE_ESCAPES.get(body, body)


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name closest to `name`, or an empty string.

    Only names that share letter pairs with it are compared closely, and only the
    first 20,000 are looked at.
    """
    wanted = _letter_pairs(name)
    if not wanted or len(name) > 200:
        return ""
    scored = []
    for candidate in islice(known, 20_000):
        if abs(len(candidate) - len(name)) <= 3:
            shared = len(wanted & _letter_pairs(candidate))
            if shared:
                scored.append((shared, candidate))
    best = [candidate for _, candidate in nlargest(30, scored)]
    found = difflib.get_close_matches(name, best, n=1, cutoff=0.6)
    return found[0] if found else ""


def _letter_pairs(name: str) -> set[str]:
    return {name[i : i + 2] for i in range(len(name) - 1)} or {name}


def shown(name: str) -> str:
    """A name from the text, cut to a length that a message can carry."""
    return name if len(name) <= 80 else f"{name[:77]}…"
