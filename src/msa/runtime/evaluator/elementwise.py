"""Elementwise opcodes. Their kernels work on arrays of any dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.literal import numpy_dtype
from msa.hlo.primitive import F32, PRIMITIVE_TYPES, PrimitiveType
from msa.runtime.evaluator import special_functions as special
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import fitted
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported

PRIMITIVE_PARTS: Final = {"c64": F32, "c128": PRIMITIVE_TYPES["f64"]}
"""Component types of complex numbers."""


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _sign(x: Any) -> Any:
    return np.where(np.abs(x) > 0, np.copysign(np.ones_like(x), x), x)


_SMOOTH: Final[dict[str, Callable[..., Any]]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cosine": np.cos,
    "cosh": np.cosh,
    "erf": special.erf,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": _logistic,
    "sine": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
}
"""Unary functions on floats and complex numbers.

Their operands are made contiguous: numpy picks vector or scalar code by stride, and
the two may differ in the last bit.
"""


def _smooth(function: Callable[..., Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        return function(np.asarray(x, order="C") if np.ndim(x) else x)

    return run


@kernel(*_SMOOTH)
def _smooth_unary(instruction: Instruction, context: Context) -> Kernel:
    del context
    return fitted(instruction.shape.element_type, _smooth(_SMOOTH[instruction.opcode]))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


_FLOAT_UNARY: Final[dict[str, Callable[..., Any]]] = {
    "rsqrt": _rsqrt,
    "ceil": np.ceil,
    "floor": np.floor,
    "round-nearest-afz": special.round_away,
    "round-nearest-even": np.rint,
    "is-finite": np.isfinite,
    "negate": np.negative,
    "real": np.real,
    "imag": np.imag,
}


@kernel(*_FLOAT_UNARY)
def _unary(instruction: Instruction, context: Context) -> Kernel:
    del context
    return fitted(instruction.shape.element_type, _FLOAT_UNARY[instruction.opcode])


@kernel("copy", "opt-barrier", "domain")
def _identity(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return _same


def _same(x: Any) -> Any:
    return x


@kernel("abs")
def _abs(instruction: Instruction, context: Context) -> Kernel:
    del context
    return fitted(instruction.shape.element_type, np.abs)


@kernel("sign")
def _signs(instruction: Instruction, context: Context) -> Kernel:
    del context
    kind = instruction.shape.element_type
    if kind.is_floating:
        return _sign
    if kind.is_complex:
        return _complex_sign
    return fitted(kind, np.sign)


def _complex_sign(x: Any) -> Any:
    size = np.abs(x)
    zero = size == 0
    return np.where(zero, x, x / np.where(zero, 1, size)).astype(x.dtype)


@kernel("not")
def _not(instruction: Instruction, context: Context) -> Kernel:
    del context
    kind = instruction.shape.element_type
    if kind.name == "pred":
        return np.logical_not
    return fitted(kind, np.invert)


@kernel("popcnt", "count-leading-zeros")
def _bit_counts(instruction: Instruction, context: Context) -> Kernel:
    del context
    bits = instruction.shape.element_type.bits
    if instruction.opcode == "popcnt":
        return lambda x: special.popcount(x, bits)
    return lambda x: special.leading_zeros(x, bits)


# -- binary --------------------------------------------------------------------


def _divide(kind: PrimitiveType) -> Callable[..., Any]:
    return special.truncated_divide if kind.is_integral else np.divide


def _power(kind: PrimitiveType) -> Callable[..., Any]:
    return special.integer_power if kind.is_integral else _float_power


def _float_power(a: Any, b: Any) -> Any:
    if np.ndim(a) and np.ndim(b):
        a, b = np.asarray(a, order="C"), np.asarray(b, order="C")
    return np.power(a, b)


def _complex(a: Any, b: Any) -> Any:
    dtype = np.complex64 if np.asarray(a).dtype == np.float32 else np.complex128
    out = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), dtype=dtype)
    out.real = a
    out.imag = b
    return out


def _arithmetic(opcode: str, kind: PrimitiveType) -> Callable[..., Any] | None:
    pred = kind.name == "pred"
    table: dict[str, Callable[..., Any]] = {
        "add": np.logical_or if pred else np.add,
        "subtract": np.logical_xor if pred else np.subtract,
        "multiply": np.logical_and if pred else np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "divide": _divide(kind),
        "remainder": special.truncated_remainder,
        "power": _power(kind),
        "atan2": np.arctan2,
        "complex": _complex,
    }
    return table.get(opcode)


@kernel(
    *[
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "and",
        "or",
        "xor",
        "divide",
        "remainder",
        "power",
        "atan2",
    ],
    "complex",
)
def _binary(instruction: Instruction, context: Context) -> Kernel:
    del context
    kind = instruction.shape.element_type
    operand = instruction.operands[0].shape.element_type
    function = _arithmetic(instruction.opcode, operand)
    if function is None or (instruction.opcode == "atan2" and kind.is_complex):
        raise unsupported(instruction, f"not defined for {kind.name}")
    return fitted(kind, function)


@kernel("mulhi")
def _mulhi(instruction: Instruction, context: Context) -> Kernel:
    del context
    bits = instruction.shape.element_type.bits
    return lambda a, b: special.multiply_high(a, b, bits)


@kernel("shift-left", "shift-right-arithmetic", "shift-right-logical")
def _shift(instruction: Instruction, context: Context) -> Kernel:
    del context
    kind = instruction.shape.element_type
    how = instruction.opcode.removeprefix("shift-").removeprefix("right-")
    return fitted(kind, lambda a, b: special.shift(a, b, kind.bits, how))


_COMPARE: Final[dict[str, Callable[..., Any]]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def total_order_key(x: Any) -> Any:
    """Integers whose order is the total order of floats: -NaN < … < -0 < 0 < … < NaN."""
    x = np.asarray(x, order="C")
    bits = x.view(f"i{x.dtype.itemsize}").reshape(np.shape(x))
    top = np.iinfo(bits.dtype).max
    return np.where(bits < 0, bits ^ bits.dtype.type(top), bits)


@kernel("compare")
def _compare(instruction: Instruction, context: Context) -> Kernel:
    del context
    function = _COMPARE[instruction.attributes["direction"]]
    kind = instruction.operands[0].shape.element_type
    if instruction.attributes.get("type") == "TOTALORDER" and kind.is_floating:
        return lambda a, b: function(total_order_key(a), total_order_key(b))
    return function


# -- ternary -------------------------------------------------------------------


@kernel("select")
def _select(instruction: Instruction, context: Context) -> Kernel:
    del context
    if instruction.shape.is_tuple:
        return lambda p, a, b: a if p else b
    return np.where


@kernel("clamp")
def _clamp(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda low, x, high: np.minimum(np.maximum(x, low), high)


# -- conversions ---------------------------------------------------------------


def converter(source: PrimitiveType, target: PrimitiveType) -> Callable[[Any], Any]:
    """Numeric conversion between two element types."""
    dtype = numpy_dtype(target)
    if target.name == "pred":
        return lambda x: np.not_equal(x, 0)
    if target.is_integral and source.is_floating:
        signed = target.family == "signed"
        low = -(1 << (target.bits - 1)) if signed else 0
        high = (1 << (target.bits - (1 if signed else 0))) - 1
        return lambda x: special.saturating_integer(x, low, high, dtype)
    if source.is_complex and not target.is_complex:
        inner = PRIMITIVE_PARTS[source.name]
        real = converter(inner, target)
        return lambda x: real(np.real(x))
    if target.name in ("bf16", "f8e8m0fnu") or not target.is_floating:
        # Wide values must be rounded once, straight to the narrow type.
        return fitted(target, lambda x: np.asarray(x).astype(dtype))
    if numpy_dtype(target) == np.float32 and target.name != "f32":
        return fitted(target, lambda x: np.asarray(x, dtype=np.float64))
    return fitted(target, lambda x: np.asarray(x).astype(dtype))


@kernel("convert")
def _convert(instruction: Instruction, context: Context) -> Kernel:
    del context
    source = instruction.operands[0].shape.element_type
    target = instruction.shape.element_type
    return _same if source is target else converter(source, target)


@kernel("stochastic-convert")
def _stochastic(instruction: Instruction, context: Context) -> Kernel:
    """Round away from zero when the random operand is below the fraction."""
    del context
    source = instruction.operands[0].shape.element_type
    target = instruction.shape.element_type
    if not (source.is_floating and target.is_integral):
        raise unsupported(instruction, f"{source.name} to {target.name}")
    convert = converter(source, target)
    bits = instruction.operands[1].shape.element_type.bits

    word = np.dtype(f"u{bits // 8}")

    def run(x: Any, random: Any) -> Any:
        x = np.asarray(x, dtype=np.float64)
        size = np.abs(x)
        whole = np.floor(size)
        fraction = np.where(np.isfinite(size), size - whole, 0.0)
        up = np.asarray(random).astype(word) < np.ldexp(fraction, bits).astype(word)
        return convert(np.copysign(whole + up, x))

    return run


@kernel("reduce-precision")
def _reduce_precision(instruction: Instruction, context: Context) -> Kernel:
    del context
    kind = instruction.shape.element_type
    exponent = int(instruction.attributes["exponent_bits"])
    mantissa = int(instruction.attributes["mantissa_bits"])
    widths = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52), "bf16": (8, 23)}
    if kind.name not in widths:
        raise unsupported(instruction, f"not defined for {kind.name}")
    own_exponent, own_mantissa = widths[kind.name]

    def run(x: Any) -> Any:
        return reduce_precision(x, exponent, mantissa, own_exponent, own_mantissa)

    return run


def reduce_precision(
    x: Any, exponent: int, mantissa: int, own_exponent: int, own_mantissa: int
) -> Any:
    """Round to fewer mantissa bits; exponents out of the smaller range overflow.

    Results below the smallest normal number of the smaller format become zero.
    """
    x = np.asarray(x, order="C")
    kind = np.dtype(f"u{x.dtype.itemsize}")
    word = kind.type
    bits = x.view(kind)
    rounded = bits
    if mantissa < own_mantissa:
        drop = own_mantissa - mantissa
        odd = (bits >> word(drop)) & word(1)
        half = word((1 << (drop - 1)) - 1)
        mask = word(~((1 << drop) - 1) & ((1 << (8 * x.dtype.itemsize)) - 1))
        rounded = (bits + odd + half) & mask
    if exponent < own_exponent:
        bias = (1 << (own_exponent - 1)) - 1
        small = (1 << (exponent - 1)) - 1
        sign = bits & word(1 << (8 * x.dtype.itemsize - 1))
        field = (rounded & ~word(1 << (8 * x.dtype.itemsize - 1))) >> word(own_mantissa)
        infinity = word(((1 << own_exponent) - 1) << own_mantissa)
        rounded = np.where(field > word(bias + small), sign | infinity, rounded)
        rounded = np.where(field <= word(bias - small), sign, rounded)
    out = rounded.astype(kind).view(x.dtype)
    return np.where(np.isnan(x), x, out).reshape(x.shape)
