"""Quantities in the user's notation: bytes, bandwidths and rates.

>>> parse_bytes("16MiB"), parse_bytes(4096), parse_bandwidth("819GB/s")
(16777216, 4096, 819000000000.0)
"""

from __future__ import annotations

import re
from typing import Final

from msa.errors import UnitError, shown

_DECIMAL: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY: Final = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_PREFIXES: Final = _DECIMAL | _BINARY
_TOO_LARGE: Final = 10**300
_QUANTITY: Final = re.compile(
    r"\s*(?P<number>\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*"
    r"(?P<prefix>[kmgtp]i?)?(?P<unit>b|byte|bytes|flop|flops|op|ops)?"
    r"(?P<rate>/s|ps)?\s*",
    re.IGNORECASE,
)


def _parse(
    text: int | float | str, what: str, units: frozenset[str], rate: bool
) -> float | int:
    if isinstance(text, bool) or not isinstance(text, (int, float, str)):
        raise UnitError(f"{what} must be a number or text, got {text!r}")
    if not isinstance(text, str):
        if text != text or text < 0 or text >= _TOO_LARGE:
            raise UnitError(
                f"{what} must be finite and not negative, got {shown(text)}"
            )
        return text
    match = _QUANTITY.fullmatch(text)
    unit = (match["unit"] or "").lower() if match else "?"
    if not match or (unit and unit not in units) or (match["rate"] and not rate):
        example = "819GB/s" if rate else "16MiB"
        raise UnitError(
            f"cannot read {text!r} as {what}", hint=f"a form such as {example!r}"
        )
    number = match["number"].replace("_", "")
    scale = _PREFIXES[(match["prefix"] or "").lower()]
    if len(number) > 300:
        raise UnitError(f"{text[:60]!r}... is too long for {what}")
    value = int(number) * scale if number.isdigit() else float(number) * scale
    if value >= _TOO_LARGE:
        raise UnitError(f"{text!r} is too large for {what}")
    return value


def parse_bytes(text: int | float | str) -> int:
    """Bytes as `int` from a number or a text such as `"16MiB"`, `"1.5 GB"`.

    `KiB`, `MiB` … are powers of 1024; `kB`, `MB` … powers of 1000.

    Raises:
        UnitError: the text is not a quantity, or not a whole number of bytes.
    """
    value = _parse(text, "a size in bytes", frozenset({"b", "byte", "bytes"}), False)
    if value != int(value):
        raise UnitError(f"{text!r} is not a whole number of bytes")
    return int(value)


def parse_bandwidth(text: int | float | str) -> float:
    """Bytes per second as `float` from a number or a text such as `"819GB/s"`.

    Raises:
        UnitError: the text is not a bandwidth.
    """
    return float(_parse(text, "a bandwidth", frozenset({"b", "byte", "bytes"}), True))


def parse_rate(text: int | float | str) -> float:
    """Operations per second as `float`, such as `"197Tflop/s"` or `6.2e12`.

    Raises:
        UnitError: the text is not a rate.
    """
    units = frozenset({"flop", "flops", "op", "ops"})
    return float(_parse(text, "a rate", units, True))


def format_bytes(count: int | float) -> str:
    """A size for people, in powers of 1024.

    >>> format_bytes(0), format_bytes(1536), format_bytes(16 << 20)
    ('0 B', '1.5 KiB', '16 MiB')
    """
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            text = f"{value:.1f}".removesuffix(".0")
            return f"{text} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def format_seconds(seconds: float) -> str:
    """A duration for people.

    >>> format_seconds(0.00123), format_seconds(2.5), format_seconds(4e-7)
    ('1.23 ms', '2.5 s', '400 ns')
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
