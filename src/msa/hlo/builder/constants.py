"""Literals from numpy arrays and Python numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from msa.errors import HloError, shown
from msa.hlo.literal import Literal
from msa.hlo.primitive import PRIMITIVE_TYPES, PrimitiveType
from msa.hlo.shape import Shape

_TYPE_NAMES: Final = {
    "bool": "pred",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
    "bfloat16": "bf16",
    **{f"int{n}": f"s{n}" for n in (1, 2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (1, 2, 4, 8, 16, 32, 64)},
}


def element_type_of(dtype: np.dtype[Any]) -> PrimitiveType:
    """The element type of a numpy type; extension types go by their name.

    >>> element_type_of(np.dtype("int16"))
    s16
    """
    name = _TYPE_NAMES.get(dtype.name, "")
    if not name:
        name = dtype.name.replace("float", "f", 1).replace("_", "", 1)
    if name not in PRIMITIVE_TYPES:
        raise HloError(f"numpy type {dtype.name} has no element type")
    return PRIMITIVE_TYPES[name]


def to_literal(value: Any, shape: Shape | None = None) -> Literal:
    """A literal from a number, a numpy array or (nested) tuples of them.

    Args:
        value: Python ints and floats count as `s32` and `f32` unless `shape` says
            otherwise; arrays keep their type.
        shape: shape of the literal; a scalar value fills an array.

    Raises:
        HloError: the value has another shape, or a type without literals.

    >>> str(to_literal(np.array([[1, 2], [3, 4]], dtype="int8")))
    '{{1, 2}, {3, 4}}'
    """
    if isinstance(value, Literal):
        return value
    if isinstance(value, tuple):
        return _tuple_literal(value, shape)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise HloError(f"no array can be made of {shown(value)}: {error}") from error
    if shape is None:
        shape = Shape.array(_element_type(value, array), array.shape)
    elif shape.element_type.family == "special":
        raise HloError(f"cannot make {shape} from an array")
    elif array.shape != shape.dimensions:
        if array.shape:
            raise HloError(f"an array of shape {array.shape} is not {shape}")
        array = np.broadcast_to(array, shape.dimensions)
    try:
        return Literal(shape, _dense(array, shape.element_type))
    except (TypeError, ValueError, OverflowError) as error:
        raise HloError(f"no {shape.element_type} is in {shown(value)}") from error


def _element_type(value: Any, array: np.ndarray[Any, Any]) -> PrimitiveType:
    if not isinstance(value, np.ndarray | np.generic) and array.dtype.kind in "if":
        return PRIMITIVE_TYPES["s32" if array.dtype.kind == "i" else "f32"]
    return element_type_of(array.dtype)


def _tuple_literal(values: tuple[Any, ...], shape: Shape | None) -> Literal:
    if shape is not None and (not shape.is_tuple or len(shape.children) != len(values)):
        raise HloError(f"{len(values)} elements are not {shape}")
    shapes = [None] * len(values) if shape is None else list(shape.children)
    parts = [to_literal(v, s) for v, s in zip(values, shapes, strict=True)]
    whole = Shape.tuple_of(*(part.shape for part in parts))
    text = ", ".join(part.text for part in parts)
    return Literal(shape or whole, f"( {text} )" if parts else "()")


def _dense(array: np.ndarray[Any, Any], kind: PrimitiveType) -> str:
    words = [_word(x, kind) for x in array.ravel().tolist()]
    for size in reversed(array.shape):
        if not words:
            return _empty(array.shape)
        words = [
            "{" + ", ".join(words[i : i + size]) + "}"
            for i in range(0, len(words), size)
        ]
    return words[0]


def _empty(dimensions: tuple[int, ...]) -> str:
    text = "{}"
    outer = dimensions[: dimensions.index(0)]
    for size in reversed(outer):
        text = "{" + ", ".join([text] * size) + "}"
    return text


def _word(value: Any, kind: PrimitiveType) -> str:
    if kind.family == "pred":
        return "true" if value else "false"
    if kind.is_integral:
        return str(int(value))
    if kind.is_complex:
        number = complex(value)
        return f"({_float(number.real)}, {_float(number.imag)})"
    return _float(float(value))


def _float(value: float) -> str:
    if math.isnan(value):
        return "nan" if math.copysign(1.0, value) > 0 else "-nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = repr(value)
    return text.removesuffix(".0")
