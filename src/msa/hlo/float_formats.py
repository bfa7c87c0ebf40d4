"""Narrow floating-point formats: exact decoding and correctly rounded encoding.

numpy has no type for bf16, f8, f6 and f4; their values are held as float32, which
represents every one of them exactly.

Source: OCP 8-bit and microscaling format specifications; names as in
`xla/xla_data.proto`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary format of at most 8 bits, plus bf16.

    Attributes:
        exponent_bits, mantissa_bits, bias: field widths and exponent bias.
        signed: whether there is a sign bit.
        infinity: whether infinities exist.
        nan: `ieee` (exponent all ones, mantissa not zero), `all_ones` (one pattern
            per sign), `negative_zero` (the pattern of -0), or `none`.
        zero: whether zero and subnormal numbers exist.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool = True
    infinity: bool = False
    nan: str = "all_ones"
    zero: bool = True

    @property
    def bits(self) -> int:
        """Total width."""
        return self.exponent_bits + self.mantissa_bits + int(self.signed)


FORMATS: Final = {
    "bf16": FloatFormat(8, 7, 127, infinity=True, nan="ieee"),
    "f8e5m2": FloatFormat(5, 2, 15, infinity=True, nan="ieee"),
    "f8e4m3": FloatFormat(4, 3, 7, infinity=True, nan="ieee"),
    "f8e4m3fn": FloatFormat(4, 3, 7),
    "f8e4m3b11fnuz": FloatFormat(4, 3, 11, nan="negative_zero"),
    "f8e3m4": FloatFormat(3, 4, 3, infinity=True, nan="ieee"),
    "f8e5m2fnuz": FloatFormat(5, 2, 16, nan="negative_zero"),
    "f8e4m3fnuz": FloatFormat(4, 3, 8, nan="negative_zero"),
    "f8e8m0fnu": FloatFormat(8, 0, 127, signed=False, zero=False),
    "f6e3m2fn": FloatFormat(3, 2, 3, nan="none"),
    "f6e2m3fn": FloatFormat(2, 3, 1, nan="none"),
    "f4e2m1fn": FloatFormat(2, 1, 1, nan="none"),
}
"""Formats without a numpy type."""


@lru_cache(maxsize=16)
def decode_table(name: str) -> NDArray[np.float32]:
    """Value of every bit pattern of a format of at most 8 bits."""
    form = FORMATS[name]
    values = [_value(form, code) for code in range(1 << form.bits)]
    table = np.array(values, dtype=np.float64).astype(np.float32)
    table.setflags(write=False)
    return table


def _value(form: FloatFormat, code: int) -> float:
    magnitude_bits = form.exponent_bits + form.mantissa_bits
    negative = bool(form.signed and code >> magnitude_bits)
    magnitude = code & ((1 << magnitude_bits) - 1)
    exponent = magnitude >> form.mantissa_bits
    mantissa = magnitude & ((1 << form.mantissa_bits) - 1)
    top = (1 << form.exponent_bits) - 1
    if form.nan == "negative_zero" and negative and magnitude == 0:
        return float("nan")
    if form.nan == "all_ones" and magnitude == (1 << magnitude_bits) - 1:
        return float("nan")
    if form.nan == "ieee" and exponent == top:
        return float("nan") if mantissa else (-np.inf if negative else np.inf)
    scale = float(1 << form.mantissa_bits)
    if exponent == 0 and form.zero:
        value = mantissa / scale * 2.0 ** (1 - form.bias)
    else:
        value = (1 + mantissa / scale) * 2.0 ** (exponent - form.bias)
    return -value if negative else value


@lru_cache(maxsize=16)
def _rounding(name: str) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Non-negative finite values ascending, with their codes."""
    table = decode_table(name).astype(np.float64)
    codes = np.nonzero(np.isfinite(table) & (table >= 0) & ~np.signbit(table))[0]
    codes = codes[np.argsort(table[codes], kind="stable")]
    return table[codes], codes.astype(np.uint8)


def encode(name: str, values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Bit patterns of values rounded to nearest, ties to even.

    Values beyond the largest finite one become infinity, or NaN in formats that
    have no infinity, or the largest value in those that have neither, where NaN
    becomes -0.

    >>> encode("f8e4m3fn", np.array([1.0, -0.5, 448.0])).tolist()
    [56, 176, 126]
    """
    values = np.asarray(values, dtype=np.float64)
    if name == "bf16":
        return _encode_bf16(values)
    form = FORMATS[name]
    grid, codes = _rounding(name)
    magnitude = np.abs(values)
    high = np.searchsorted(grid, magnitude).clip(1, len(grid) - 1)
    low = high - 1
    with np.errstate(invalid="ignore"):
        below, above = magnitude - grid[low], grid[high] - magnitude
        odd = codes[low] & 1
        up = (below > above) | ((below == above) & (odd == 1))
        out = np.where(up, codes[high], codes[low]).astype(np.uint16)
        # The step past the largest value decides between rounding down and overflow.
        beyond = grid[-1] + (grid[-1] - grid[-2]) / 2
        # A tie goes to the even code, as everywhere.
        past = magnitude >= beyond if codes[-1] & 1 else magnitude > beyond
        overflow = past & ~np.isnan(values)
    negative = np.signbit(values) & form.signed
    sign = 1 << (form.exponent_bits + form.mantissa_bits)
    out = np.where(negative, out | sign, out)
    if form.nan == "negative_zero":
        out = np.where(out == sign, 0, out)
    top = ((1 << form.exponent_bits) - 1) << form.mantissa_bits
    if form.infinity:
        out = np.where(overflow, top | np.where(negative, sign, 0), out)
    elif form.nan != "none":
        out = np.where(overflow, _nan_code(form, top), out)
    if form.nan == "none":
        out = np.where(np.isnan(values), sign, out)
    else:
        out = np.where(np.isnan(values), _nan_code(form, top), out)
        if not form.signed:
            out = np.where(values < 0, _nan_code(form, top), out)
    return out.astype(np.uint16)


def _nan_code(form: FloatFormat, top: int) -> int:
    if form.nan == "negative_zero":
        return 1 << (form.exponent_bits + form.mantissa_bits)
    if form.nan == "all_ones":
        return (1 << (form.exponent_bits + form.mantissa_bits)) - 1
    return top | (1 << (form.mantissa_bits - 1))


def _encode_bf16(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    with np.errstate(over="ignore", invalid="ignore"):
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = (bits >> 16) | 0x40
    return np.where(np.isnan(values), nan, rounded).astype(np.uint16)


def decode(name: str, codes: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Values of bit patterns.

    >>> decode("bf16", np.array([0x3F80, 0xC000], dtype=np.uint16)).tolist()
    [1.0, -2.0]
    """
    if name == "bf16":
        return (codes.astype(np.uint32) << 16).view(np.float32)
    return decode_table(name)[codes]


def round_to(name: str, values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Values rounded to a format and held as float32."""
    return decode(name, encode(name, np.asarray(values, dtype=np.float64)))
