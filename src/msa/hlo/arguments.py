"""Arguments from outside: anything of the wrong kind is refused by name."""

from __future__ import annotations

from typing import Any, TypeVar

from msa.errors import HloError, MsaError, shown

T = TypeVar("T")


def expect(
    value: Any,
    kind: type[T] | tuple[type[T], ...],
    *,
    where: str,
    what: str,
    hint: str = "",
    error: type[MsaError] = HloError,
) -> T:
    """`value` itself when it is of the kind; truth values do not count as numbers.

    Args:
        where: the function that was called, for the message.
        what: what it takes, in words.
        hint: what to try.
        error: what is raised.

    Raises:
        HloError: the value is of another kind (or another `error`).

    >>> expect(3, int, where="f", what="a number")
    3
    >>> expect(None, int, where="f", what="a number", hint="pass 3")
    Traceback (most recent call last):
    ...
    msa.errors.HloError: f: takes a number, not None (try: pass 3)
    """
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is int):
        return value
    raise error(f"takes {what}, not {shown(value)}", where=where, hint=hint)


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
