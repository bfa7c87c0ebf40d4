"""Bytes as memory diagnostics write them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_bytes(count: float) -> str:
    """Whole bytes below 1024, KiB with one decimal, larger units with two.

    >>> [human_bytes(n) for n in (512, 4096, 3 << 19, -512, 0)]
    ['512B', '4.0KiB', '1.50MiB', '-512B', '0B']
    """
    sign, value = ("-", -count) if count < 0 else ("", count)
    if value < 1024:
        return f"{sign}{value:.0f}B"
    for unit in _UNITS:
        value /= 1024
        if value < 1024 or unit == _UNITS[-1]:
            break
    return f"{sign}{value:.1f}{unit}" if unit == "KiB" else f"{sign}{value:.2f}{unit}"


def percent(part: float, whole: float) -> float:
    """`part` of `whole` in per cent; 0 of nothing is 0."""
    return 100.0 * part / whole if whole else 0.0
