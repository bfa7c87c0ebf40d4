"""What kind of thing each option takes, read from how the options are declared."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Final

from msa.errors import OptionsError, shown

#: Sums of two larger numbers could not be counted on in 64 bits.
LARGEST: Final = 2**62


def check_types(options: Any, prefix: str = "") -> None:
    """Raise `OptionsError` for the first field that is not what it is declared as.

    Args:
        options: an object of a dataclass; groups of options in it are looked into.
        prefix: stands before the names of fields in messages.

    Truth values are no numbers; numbers are finite, and not larger than `LARGEST`.
    Defaults are taken to be as declared.

    >>> from msa.assignment.options import InstructionCountPicker
    >>> check_types(InstructionCountPicker(2, 10))
    >>> check_types(InstructionCountPicker(2, "many"), "picker.")
    Traceback (most recent call last):
    ...
    msa.errors.OptionsError: picker.max_overlap must be a whole number, got 'many'
    """
    declared = _declared(options.__class__)
    for field in fields(options):
        value = getattr(options, field.name)
        if value is not field.default:
            _check(value, declared[field.name], prefix + field.name)


@lru_cache(maxsize=32)
def _declared(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _check(value: Any, kind: Any, name: str) -> None:
    kinds = _alternatives(kind)
    if Any in kinds:
        return
    if not any(_is_one(value, one) for one in kinds):
        words = " or ".join(dict.fromkeys(map(_in_words, kinds)))
        raise OptionsError(f"{name} must be {words}, got {shown(value)}")
    if isinstance(value, Real) and not -LARGEST <= float(value) <= LARGEST:
        raise OptionsError(
            f"{name} is too large: at most {LARGEST}, got {shown(value)}"
        )
    for one in kinds:
        if typing.get_origin(one) is tuple and isinstance(value, tuple):
            _check_elements(value, typing.get_args(one), name)
        elif _is_group(one) and isinstance(value, one):
            check_types(value, f"{name}.")


def _check_elements(value: tuple[Any, ...], kinds: tuple[Any, ...], name: str) -> None:
    if kinds[1:] == (Ellipsis,):
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise OptionsError(f"{name} must have {len(kinds)} parts, got {shown(value)}")
    for number, (part, kind) in enumerate(zip(value, kinds, strict=True)):
        _check(part, kind, f"{name}[{number}]")


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The kinds of a union; the kind itself, otherwise."""
    origin = typing.get_origin(kind)
    is_union = origin is typing.Union or type(kind).__name__ == "UnionType"
    return typing.get_args(kind) if is_union else (kind,)


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")


def _is_one(value: Any, kind: Any) -> bool:
    origin = typing.get_origin(kind)
    if kind is bool or kind is str or kind is type(None):
        return isinstance(value, kind)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return _is_one(value, int) or (isinstance(value, Real) and _is_finite(value))
    if origin is typing.Literal:
        return isinstance(value, str) and value in typing.get_args(kind)
    if origin is Callable or kind is Callable:
        return callable(value)
    if origin is Mapping:
        return isinstance(value, Mapping)
    return isinstance(value, origin or kind)


def _is_finite(value: Any) -> bool:
    return not isinstance(value, bool) and math.isfinite(value)


def _in_words(kind: Any) -> str:
    """What is asked for; "or" follows between alternatives.

    Literals are listed by name.
    """
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return "one of " + ", ".join(map(str, typing.get_args(kind)))
    if origin is tuple:
        return "a tuple"
    if origin is not None:
        return "a mapping" if origin is Mapping else "a function"
    return _WORDS.get(kind) or f"of the class {kind.__name__}"


_WORDS: Final = {
    bool: "True or False",
    int: "a whole number",
    float: "a finite number",
    str: "text",
    type(None): "None",
}


def bytes_from(function: str, answer: Any, about: Any) -> int:
    """What a user's function that counts bytes has answered, if that is a number.

    Raises:
        OptionsError: it is none, or negative, or too large to be an address.

    >>> bytes_from("size_fn", 12.0, "x")
    12
    >>> bytes_from("size_fn", None, "x")
    Traceback (most recent call last):
    ...
    msa.errors.OptionsError: size_fn must give a number of bytes for x, got None
    """
    if _is_one(answer, float) and 0 <= answer <= LARGEST:
        return int(answer)
    raise OptionsError(
        f"{function} must give a number of bytes for {about}, got {shown(answer)}"
    )
