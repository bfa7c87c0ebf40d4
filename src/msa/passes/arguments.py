"""Arguments of passes: anything of the wrong kind is refused by name."""

from __future__ import annotations

from typing import Any, TypeVar

from msa.hlo.arguments import expect
from msa.hlo.module import Module

T = TypeVar("T")


def module_of(value: Any, where: str) -> Module:
    """The module itself.

    Raises:
        HloError: it is none.

    >>> module_of(None, "suggest")
    Traceback (most recent call last):
    ...
    msa.errors.HloError: suggest: takes a Module, not None (try: msa.parse(text))
    """
    return expect(value, Module, where=where, what="a Module", hint="msa.parse(text)")


def one_of(value: Any, kind: type[T], where: str) -> T:
    """The value itself, of a class that the message names.

    Raises:
        HloError: it is of another class.
    """
    return expect(value, kind, where=where, what=f"a {kind.__name__}")


def options_of(value: Any, kind: type[T], where: str) -> T:
    """The options, or those by default for None.

    Raises:
        HloError: they are of another class.
    """
    return kind() if value is None else one_of(value, kind, where)
