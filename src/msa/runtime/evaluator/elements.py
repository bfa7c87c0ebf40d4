"""Element types on numpy: storage types, rounding to narrow types, bytes in memory.

Values of `pred`, native integers, `f16`, `f32`, `f64`, `c64` and `c128` are numpy's
own. Sub-byte integers live in the 8-bit type of their sign and wrap after each
operation; `bf16` and narrower floats live in float32, rounded to their type after
each operation (float32 holds all their values exactly).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from msa.hlo.float_formats import FORMATS, decode, encode, round_to
from msa.hlo.literal import numpy_dtype
from msa.hlo.primitive import PrimitiveType

Array = NDArray[Any]
Fit = Callable[[Any], Any]

ROUNDED_BF16: Final = np.uint32(0xFFFF0000)


_BLOCK: Final = 1 << 16
"""Elements that are rounded at a time, few enough to stay in the cache."""


def round_bf16(values: Any) -> Array:
    """Float32 values rounded to bf16, ties to even; NaN stays NaN.

    >>> round_bf16(np.float32([1.00390625, 3.0e38])).tolist()
    [1.0, 3.00405527047391e+38]
    """
    values = np.asarray(values, dtype=np.float32)
    bits = np.ascontiguousarray(values).view(np.uint32).reshape(-1)
    out = np.empty_like(bits)
    for start in range(0, len(bits), _BLOCK):
        end = start + _BLOCK
        _round_block(bits[start:end], out[start:end])
    return out.view(np.float32).reshape(values.shape)


def _round_block(bits: Array, out: Array) -> None:
    """Round the bit patterns of float32 values into `out`; at least one of them."""
    np.right_shift(bits, np.uint32(16), out=out)
    out &= np.uint32(1)
    out += np.uint32(0x7FFF)
    out += bits
    out &= ROUNDED_BF16
    values = bits.view(np.float32)
    if np.isnan(values.max()):
        quiet = (bits | np.uint32(0x00400000)) & ROUNDED_BF16
        np.copyto(out, quiet, where=np.isnan(values))


def _round_small(name: str) -> Fit:
    def fit(values: Any) -> Array:
        return round_to(name, np.asarray(values))

    return fit


def _wrap(bits: int, signed: bool) -> Fit:
    mask = (1 << bits) - 1
    half = 1 << (bits - 1)
    dtype = np.int8 if signed else np.uint8

    def fit(values: Any) -> Array:
        wide = np.asarray(values).astype(np.int64) & mask
        if signed:
            wide = (wide ^ half) - half
        return wide.astype(dtype)

    return fit


@lru_cache(maxsize=64)
def fitter(kind: PrimitiveType) -> Fit | None:
    """What brings a result back into its type; None when numpy's type is exact."""
    if kind.name == "bf16":
        return round_bf16
    if kind.name in FORMATS:
        return _round_small(kind.name)
    if kind.is_integral and kind.bits < 8:
        return _wrap(kind.bits, kind.family == "signed")
    return None


def fitted(kind: PrimitiveType, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` followed by the rounding of its result type."""
    fit = fitter(kind)
    if fit is None:
        return function
    known = fit

    def rounded(*operands: Any) -> Any:
        return known(function(*operands))

    return rounded


# -- bytes ---------------------------------------------------------------------


def code_dtype(kind: PrimitiveType) -> np.dtype[Any]:
    """Type of the bit patterns of one unpacked element in memory."""
    if kind.name == "bf16":
        return np.dtype(np.uint16)
    if kind.name in FORMATS or kind.name == "pred":
        return np.dtype(np.uint8)
    return numpy_dtype(kind)


def to_codes(kind: PrimitiveType, values: Array) -> Array:
    """Values as bit patterns, same dimensions (no copy where the type is native)."""
    if kind.name == "bf16":
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        return (bits >> np.uint32(16)).astype(np.uint16).reshape(values.shape)
    if kind.name in FORMATS:
        return encode(kind.name, np.asarray(values, dtype=np.float64)).astype(np.uint8)
    if kind.name == "pred":
        return np.asarray(values, dtype=bool).view(np.uint8)
    return values


def from_codes(kind: PrimitiveType, codes: Array) -> Array:
    """Values of bit patterns (a view where the type is native)."""
    if kind.name == "bf16":
        wide = codes.astype(np.uint32) << np.uint32(16)
        return np.asarray(wide).view(np.float32).reshape(codes.shape)
    if kind.name in FORMATS:
        return decode(kind.name, codes & np.uint8((1 << kind.bits) - 1))
    if kind.name == "pred":
        return codes.astype(bool)
    fit = fitter(kind)
    return codes if fit is None else np.asarray(fit(codes))
