"""Elementwise operations: the result has the operands' dimensions.

Source of the type rules: `xla/service/shape_inference.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msa.hlo.primitive import PRED, PRIMITIVE_TYPES, PrimitiveType
from msa.hlo.shape import UNBOUNDED, Shape
from msa.hlo.shape_inference.operation import (
    Operation,
    Rule,
    dims_text,
    flags,
    higher_precision,
    resized,
    retyped,
    same_dims,
    same_type,
)

_COMPONENT: Final = {"c64": PRIMITIVE_TYPES["f32"], "c128": PRIMITIVE_TYPES["f64"]}
_COMPLEX_OF: Final = {"f32": PRIMITIVE_TYPES["c64"], "f64": PRIMITIVE_TYPES["c128"]}

# -- one operand -------------------------------------------------------------


def _component(kind: PrimitiveType) -> PrimitiveType:
    return _COMPONENT.get(kind.name, kind)


def _same(kind: PrimitiveType) -> PrimitiveType:
    return kind


def _predicate(kind: PrimitiveType) -> PrimitiveType:
    del kind
    return PRED


def _unary(
    *families: str, result: Callable[[PrimitiveType], PrimitiveType] = _same
) -> Rule:
    def rule(op: Operation) -> Shape:
        shape = op.array(0)
        kind = shape.element_type
        if kind.family not in families:
            op.fail(
                f"takes elements of type {', '.join(families)}, got {dims_text(shape)}"
            )
        return retyped(shape, result(kind))

    return rule


_FLOATING: Final = _unary("float")
_ANALYTIC: Final = _unary("float", "complex")
_BITS: Final = _unary("signed", "unsigned")

# -- two operands ------------------------------------------------------------


def broadcast_dimensions(op: Operation, a: Shape, b: Shape) -> Shape:
    """`a` with the dimensions that both have; a scalar or a 1 stretches.

    Stretching is a courtesy of text without result shapes; the verifier rejects it.
    """
    if a.dimensions == b.dimensions and a.dynamic == b.dynamic:
        return a
    if not a.dimensions or not b.dimensions:
        return retyped(b, a.element_type) if b.dimensions else a
    if len(a.dimensions) != len(b.dimensions):
        op.fail(f"operands differ in rank: {dims_text(a)} and {dims_text(b)}")
    sizes, dynamic = [], []
    for x, y, p, q in zip(a.dimensions, b.dimensions, flags(a), flags(b), strict=True):
        if x == y:
            size, flag = x, p or q
        elif UNBOUNDED in (x, y):
            size, flag = (y, q) if x == UNBOUNDED else (x, p)
        elif 1 in (x, y):
            size, flag = (y, q) if x == 1 else (x, p)
        else:
            op.fail(f"operands differ in size: {dims_text(a)} and {dims_text(b)}")
        sizes.append(size)
        dynamic.append(flag)
    return resized(a, sizes, dynamic)


def _pair(op: Operation) -> Shape:
    a, b = op.array(0), op.array(1)
    if a.element_type is not b.element_type:
        if not same_type(a.element_type, b.element_type):
            op.fail(f"operands differ in type: {dims_text(a)} and {dims_text(b)}")
        kind = higher_precision(a.element_type, b.element_type)
        return retyped(broadcast_dimensions(op, a, b), kind)
    return broadcast_dimensions(op, a, b)


def _binary(*families: str) -> Rule:
    def rule(op: Operation) -> Shape:
        shape = _pair(op)
        if families and shape.element_type.family not in families:
            op.fail(
                f"takes elements of type {', '.join(families)}, got {dims_text(shape)}"
            )
        return shape

    return rule


_ANY_PAIR: Final = _binary()
_NUMERIC_PAIR: Final = _binary("signed", "unsigned", "float", "complex")
_BIT_PAIR: Final = _binary("pred", "signed", "unsigned")


def _compare(op: Operation) -> Shape:
    op.attribute("direction")
    return retyped(_pair(op), PRED)


def _complex(op: Operation) -> Shape:
    a, b = op.array(0), op.array(1)
    kind = _COMPLEX_OF.get(a.element_type.name)
    if kind is None or a.element_type is not b.element_type:
        op.fail(f"takes two f32 or two f64, got {dims_text(a)} and {dims_text(b)}")
    return retyped(broadcast_dimensions(op, a, b), kind)


# -- three operands ----------------------------------------------------------


def _select(op: Operation) -> Shape | None:
    if op.operands[1].is_tuple or op.operands[1].is_token:
        return op.operands[1]  # legacy: selection between tuples
    chooser, a, b = op.arrays()
    if chooser.element_type is not PRED:
        op.fail(f"operand 0 must be of type pred, got {dims_text(chooser)}")
    if not same_type(a.element_type, b.element_type) or not same_dims(
        a.dimensions, b.dimensions
    ):
        op.fail(f"the two choices differ: {dims_text(a)} and {dims_text(b)}")
    kind = higher_precision(a.element_type, b.element_type)
    result = retyped(broadcast_dimensions(op, a, b), kind)
    if not chooser.dimensions:
        return result
    if not same_dims(chooser.dimensions, a.dimensions):
        op.fail(
            f"predicate {dims_text(chooser)} does not fit the choices {dims_text(a)}"
        )
    laid_out = broadcast_dimensions(op, retyped(chooser, kind), result)
    return laid_out if chooser.layout is not None else result


def _clamp(op: Operation) -> Shape:
    low, value, high = op.arrays()
    for bound in (low, high):
        if not same_type(bound.element_type, value.element_type):
            op.fail(f"bound {dims_text(bound)} differs in type from {dims_text(value)}")
        if bound.dimensions and not same_dims(bound.dimensions, value.dimensions):
            op.fail(f"bound {dims_text(bound)} does not fit {dims_text(value)}")
    return value


# -- result stated by the text -----------------------------------------------


def _stated_dims(op: Operation) -> Shape | None:
    """`convert` and the like: the text states the type, the operand the sizes."""
    shape, stated = op.array(0), op.stated
    if stated is None:
        return None
    if stated.element_type.family == "special" or not same_dims(
        shape.dimensions, stated.dimensions
    ):
        op.fail(f"cannot turn {dims_text(shape)} into {dims_text(stated)}")
    return retyped(shape, stated.element_type)


def _convert(op: Operation) -> Shape | None:
    shape, result = op.array(0), _stated_dims(op)
    if (
        result is not None
        and shape.element_type.is_complex
        and not result.element_type.is_complex
    ):
        op.fail(f"complex {dims_text(shape)} cannot become {dims_text(result)}")
    return result


def _stochastic_convert(op: Operation) -> Shape | None:
    value, noise = op.array(0), op.array(1)
    if not value.element_type.is_floating:
        op.fail(f"operand 0 must be floating, got {dims_text(value)}")
    if noise.element_type.family != "unsigned":
        op.fail(f"random operand must be unsigned, got {dims_text(noise)}")
    if noise.element_type.bits != value.element_type.bits:
        op.fail(f"{dims_text(noise)} is not as wide as {dims_text(value)}")
    if not same_dims(value.dimensions, noise.dimensions):
        op.fail(f"operands differ: {dims_text(value)} and {dims_text(noise)}")
    return _stated_dims(op)


def _reduce_precision(op: Operation) -> Shape:
    shape = op.array(0)
    if not shape.element_type.is_floating:
        op.fail(f"takes floating elements, got {dims_text(shape)}")
    if op.integer("exponent_bits") < 1:
        op.fail("exponent_bits must be at least 1")
    if op.integer("mantissa_bits") < 0:
        op.fail("mantissa_bits must not be negative")
    return shape


_ANALYTIC_OPCODES: Final = (
    "acos acosh asin asinh atanh cosine cosh exponential exponential-minus-one log "
    "log-plus-one logistic rsqrt sine sinh sqrt tan tanh"
)
_NUMERIC_OPCODES: Final = (
    "divide power remainder subtract shift-left shift-right-arithmetic "
    "shift-right-logical"
)

RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(
        ("round-nearest-afz", "round-nearest-even", "ceil", "floor", "erf", "cbrt"),
        _FLOATING,
    ),
    **dict.fromkeys(_ANALYTIC_OPCODES.split(), _ANALYTIC),
    "abs": _unary("signed", "float", "complex", result=_component),
    "real": _unary("float", "complex", result=_component),
    "imag": _unary("float", "complex", result=_component),
    "sign": _unary("signed", "float", "complex"),
    "negate": _unary("signed", "unsigned", "float", "complex"),
    "not": _unary("pred", "signed", "unsigned"),
    "count-leading-zeros": _BITS,
    "popcnt": _BITS,
    "is-finite": _unary("float", result=_predicate),
    **dict.fromkeys(("add", "maximum", "minimum", "mulhi", "multiply"), _ANY_PAIR),
    **dict.fromkeys(_NUMERIC_OPCODES.split(), _NUMERIC_PAIR),
    "atan2": _binary("float", "complex"),
    **dict.fromkeys(("and", "or", "xor"), _BIT_PAIR),
    "compare": _compare,
    "complex": _complex,
    "select": _select,
    "clamp": _clamp,
    "convert": _convert,
    "stochastic-convert": _stochastic_convert,
    "reduce-precision": _reduce_precision,
}
