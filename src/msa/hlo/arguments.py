"""Arguments from outside: anything of the wrong kind is refused by name."""

from __future__ import annotations

from typing import Any, TypeVar

from msa.errors import HloError

T = TypeVar("T")
_SHOWN = 40


def shown(value: object) -> str:
    """A short text of any value for a message; never raises.

    >>> shown(None), shown(b"abc"), shown(12)
    ('None', "bytes b'abc'", 'int 12')
    """
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception:
        text = ""
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 1] + "…"
    return f"{type(value).__name__} {text}".rstrip()


def expect(
    value: Any,
    kind: type[T] | tuple[type[T], ...],
    *,
    where: str,
    what: str,
    hint: str = "",
) -> T:
    """`value` itself when it is of the kind; truth values do not count as numbers.

    Args:
        where: the function that was called, for the message.
        what: what it takes, in words.
        hint: what to try.

    Raises:
        HloError: the value is of another kind.

    >>> expect(3, int, where="f", what="a number")
    3
    >>> expect(None, int, where="f", what="a number", hint="pass 3")
    Traceback (most recent call last):
    ...
    msa.errors.HloError: f: takes a number, not None (try: pass 3)
    """
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is int):
        return value
    raise HloError(f"takes {what}, not {shown(value)}", where=where, hint=hint)


def text_of(text: Any, where: str) -> str:
    """The text itself; bytes are read as UTF-8.

    Raises:
        HloError: neither text nor bytes of UTF-8.

    >>> text_of(b"f32[]", "parse")
    'f32[]'
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes | bytearray | memoryview):
        try:
            return bytes(text).decode()
        except UnicodeDecodeError as error:
            raise HloError(
                f"takes text, and these bytes are no UTF-8: {error}",
                where=where,
                hint="msa.load reads .gz and .pb files",
            ) from None
    hint = "msa.load(path) reads a file, str(module) is a module's text"
    return expect(text, str, where=where, what="HLO text", hint=hint)
