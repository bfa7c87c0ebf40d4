"""Arguments of the runtime: whole numbers, seconds and their bounds."""

from __future__ import annotations

import threading
from typing import Any

from msa.errors import shown
from msa.runtime.status import InvalidArgument

LARGEST = 2**63 - 1
"""Sizes and addresses are 64-bit numbers."""


def whole(
    value: Any, where: str, what: str, *, least: int = 0, most: int = LARGEST
) -> int:
    """A whole number between bounds (numpy's too; no truth values).

    Raises:
        InvalidArgument: it is none, or out of bounds.

    >>> whole(3, "f", "a size")
    3
    >>> whole(-1, "f", "a size")
    Traceback (most recent call last):
    ...
    msa.runtime.status.InvalidArgument: f: a size is a whole number from 0 to 9223372036854775807, not -1
    """
    if type(value) is int:
        if least <= value <= most:
            return value
    elif not isinstance(value, bool) and hasattr(value, "__index__"):
        return whole(int(value), where, what, least=least, most=most)
    raise InvalidArgument(
        f"{what} is a whole number from {least} to {most}, not {shown(value)}",
        where=where,
    )


def seconds(value: Any, where: str, what: str) -> float | None:
    """A duration; None and infinity are for ever.

    Raises:
        InvalidArgument: it is negative or no number.

    >>> seconds(0.5, "f", "a timeout"), seconds(float("inf"), "f", "a timeout")
    (0.5, None)
    """
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not value >= 0:
        raise InvalidArgument(
            f"{what} is None or seconds of at least 0, not {shown(value)}", where=where
        )
    return None if value > threading.TIMEOUT_MAX else float(value)


def callable_of(value: Any, where: str, what: str) -> None:
    """Check that a value can be called (raises InvalidArgument)."""
    if not callable(value):
        raise InvalidArgument(f"{what} is callable, not {shown(value)}", where=where)
