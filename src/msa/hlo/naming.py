"""Names: which are legal, and how new ones are made unique.

Source: `xla/service/name_uniquer.h`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msa.hlo.primitive import PRIMITIVE_TYPES

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.\-]")
_RESERVED: Final = frozenset(PRIMITIVE_TYPES) - {"tuple", "buffer"}

_MAX_DIGITS: Final = 18
"""Of a 64-bit number."""

KEYWORDS: Final = frozenset(
    {
        "ENTRY",
        "FileLocations",
        "FileNames",
        "FunctionNames",
        "HloModule",
        "ROOT",
        "StackFrames",
        "false",
        "inf",
        "last_tile_dim_replicate",
        "manual",
        "maximal",
        "nan",
        "replicated",
        "shard_as",
        "shard_like",
        "true",
        "unknown",
        "unreduced",
    }
)
"""Words that are names in text only behind a `%` or before a colon."""


def sanitize_name(name: str) -> str:
    """The nearest legal instruction or computation name.

    >>> sanitize_name("1 a/b"), sanitize_name("f32"), sanitize_name("__x")
    ('a_a_b', 'f32_', 'a_x')
    """
    if not name:
        return name
    out = _ILLEGAL.sub("_", name)
    if not (out[0].isalpha() or out[0] == "_"):
        out = "_" + out[1:]
    if out in _RESERVED:
        out += "_"
    if out.startswith("__") and not out.startswith("__xla_"):
        out = "a" + out[1:]
    return out


class NameUniquer:
    """Hands out names that were not used before.

    >>> uniquer = NameUniquer(["x", "x.1"])
    >>> uniquer.unique("x"), uniquer.unique("y.5"), uniquer.unique("y")
    ('x.2', 'y.5', 'y')
    """

    __slots__ = ("_next", "_used")

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """`name` itself when free, else its base with the next free number.

        Numbers count from 0, which a bare base has as well.
        """
        name = sanitize_name(name)
        base, number = _parts(name)
        if name in self._used or (not number and self._is_taken(base, 0)):
            number = self._next.get(base, 0)
            while self._is_taken(base, number):
                number += 1
            self._next[base] = number + 1
            name = f"{base}.{number}"
        self._used.add(name)
        return name

    def _is_taken(self, base: str, number: int) -> bool:
        if f"{base}.{number}" in self._used:
            return True
        return not number and base in self._used and _parts(base)[0] == base


def _parts(name: str) -> tuple[str, int]:
    """What comes before a name's number, and the number: 0 when it has none.

    Digits too many for a number that is counted belong to the base.
    """
    base, _, suffix = name.rpartition(".")
    if base and suffix.isdecimal() and len(suffix) <= _MAX_DIGITS:
        return base, int(suffix)
    return name, 0
