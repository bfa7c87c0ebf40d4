"""Whole numbers from outside: one rule for all options and fields.

A whole number is an `int` or what stands for one (numpy's integers). Truth values
and floating-point numbers are not, even if they have no fraction: in this place they
are mistakes, and `NaN` passes every comparison.
"""

from __future__ import annotations

import operator
from typing import Any

from msa.errors import MsaError, OptionsError, shown

#: Offsets, sizes and alignments stay below this, and so do their sums in a packing:
#: all of them fit a 64-bit integer.
SIZE_LIMIT = 2**60
#: Any other number, such as a capacity that stands for "no limit", is below this.
WORD_LIMIT = 2**64
#: Times are between minus this and this; nanoseconds since 1970 are.
TIME_LIMIT = 2**61


def read_whole(
    value: Any,
    what: str,
    *,
    at_least: int | None = None,
    below: int | None = None,
    error: type[MsaError] = OptionsError,
    where: str = "",
) -> int:
    """The number that `value` stands for, if it is whole and in range.

    Args:
        value: anything.
        what: how the user calls it, for the message.
        at_least, below: the range `[at_least, below)`; None for no limit.
        error: what to raise.
        where: the place, for the message.

    Raises:
        MsaError: of the given kind, by default `OptionsError`.

    >>> read_whole(8, "size", at_least=0)
    8
    >>> read_whole(True, "size")
    Traceback (most recent call last):
    ...
    msa.errors.OptionsError: size must be a whole number, got True
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number: int = operator.index(value)
    except TypeError:
        raise error(
            f"{what} must be a whole number, got {shown(value)}", where=where
        ) from None
    if at_least is not None and number < at_least:
        if at_least == 0:
            raise error(f"{what} {shown(number)} is negative", where=where)
        if at_least == 1:
            raise error(f"{what} {shown(number)} is not positive", where=where)
        raise error(f"{what} is out of range: {shown(number)}", where=where)
    if below is not None and number >= below:
        raise error(f"{what} is out of range: {shown(number)}", where=where)
    return number
