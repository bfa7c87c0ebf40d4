"""Values during execution: numpy arrays, tuples of values, and None for tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from msa.errors import ExecutionError, shown
from msa.hlo.literal import numpy_dtype
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.elements import (
    Array,
    code_dtype,
    fitter,
    from_codes,
    to_codes,
)

_RANKS: Final = {"c": 1, "m": 2, "M": 2, "S": 2, "U": 2}
"""Kinds of numpy types; numbers of a higher rank are none of a lower one."""

Value = Any
"""An array, a (nested) tuple of values, or None for a token or opaque value."""


def leaves_of(shape: Shape, value: Value) -> Iterator[tuple[ShapeIndex, Shape, Value]]:
    """Leaf index, leaf shape and leaf value, in the order of `Shape.leaves`."""
    for index, leaf in shape.leaves():
        item = value
        for i in index:
            item = item[i]
        yield index, leaf, item


def map_leaves(shape: Shape, make: Callable[[ShapeIndex, Shape], Value]) -> Value:
    """A value of `shape` whose leaves are made by `make`; iterative.

    >>> from msa.hlo.primitive import F32
    >>> leaf = Shape.array(F32, (2,))
    >>> map_leaves(Shape.tuple_of(leaf, leaf), lambda index, _: index)
    ((0,), (1,))
    """
    if not shape.is_tuple:
        return make((), shape)
    stack: list[tuple[Shape, ShapeIndex, list[Value]]] = [(shape, (), [])]
    while True:
        node, index, done = stack[-1]
        if len(done) == len(node.children):
            stack.pop()
            if not stack:
                return tuple(done)
            stack[-1][2].append(tuple(done))
            continue
        child = node.children[len(done)]
        place = (*index, len(done))
        if child.is_tuple:
            stack.append((child, place, []))
        else:
            done.append(make(place, child))


def coerce(shape: Shape, value: Any, where: str) -> Value:
    """User input as a value of `shape`: type, rounding and dimensions checked.

    Raises:
        ExecutionError: the structure, the dimensions or the kind of number differ.
    """

    def leaf(index: ShapeIndex, node: Shape) -> Value:
        item, whole = value, shape
        for i in index:
            if not isinstance(item, tuple | list) or len(item) != len(whole.children):
                raise ExecutionError(f"a tuple of shape {shape} is needed", where=where)
            item, whole = item[i], whole.children[i]
        if not node.is_array:
            return None
        return coerce_array(node.as_array, item, where)

    return map_leaves(shape, leaf)


def coerce_array(shape: Shape, item: Any, where: str) -> Array:
    """One array of user input as an array of `shape`.

    Floats may be rounded to the type; whole numbers and truth values must be of it.
    """
    kind = shape.element_type
    try:
        given = _given(item)
        array = _typed(given, numpy_dtype(kind))
    except (TypeError, ValueError, OverflowError) as error:
        raise ExecutionError(f"not an array of {shape}: {error}", where=where) from None
    dimensions = array.shape
    fits = len(dimensions) == len(shape.dimensions) and all(
        size == bound or (size <= bound and bool(shape.dynamic) and shape.dynamic[i])
        for i, (size, bound) in enumerate(
            zip(dimensions, shape.dimensions, strict=True)
        )
    )
    if not fits:
        raise ExecutionError(
            f"an array of shape {list(dimensions)} was given for {shape}", where=where
        )
    fit = fitter(kind)
    array = array if fit is None else np.asarray(fit(array))
    if given is not array and array.dtype.kind in "bui" and given.dtype.kind in "buifO":
        changed = np.flatnonzero(np.asarray(given != array))
        if len(changed):
            wrong = shown(given.reshape(-1)[changed[:1]].tolist()[0])
            raise ExecutionError(
                f"not an array of {shape}: it holds {wrong}", where=where
            )
    return array


def _given(item: Any) -> Array:
    """User input as an array; whole numbers never go by way of float64."""
    array = np.asarray(item)
    if array.dtype.kind == "f" and array.size and not isinstance(item, np.ndarray):
        numbers = np.array(item, dtype=object)
        if all(type(n) is int for n in numbers.reshape(-1)):
            return numbers
    return array


def _typed(given: Array, dtype: np.dtype[Any]) -> Array:
    """The array in another type of numbers, if that is no lesser kind of numbers."""
    if given.dtype == dtype:
        return given
    if given.size and _RANKS.get(given.dtype.kind, 0) > _RANKS.get(dtype.kind, 0):
        raise TypeError(f"it holds numbers of type {given.dtype}")
    if given.dtype.kind == "O" and dtype.kind in "ui":
        return np.array(given.tolist(), dtype=dtype)  # refuses what does not fit
    with np.errstate(invalid="ignore"):
        return given.astype(dtype)


def physical(shape: Shape, array: Array) -> Array:
    """The array with its dimensions in memory order, most major first (a view)."""
    layout = shape.layout
    if layout is None or array.ndim < 2:
        return array
    return array.transpose(layout.minor_to_major[::-1])


def logical(shape: Shape, array: Array) -> Array:
    """Inverse of `physical`: memory order back to the shape's dimensions (a view)."""
    layout = shape.layout
    if layout is None or len(shape.dimensions) < 2:
        return array.reshape(shape.dimensions)
    order = layout.minor_to_major[::-1]
    inverse = np.argsort(order)
    return array.reshape([shape.dimensions[d] for d in order]).transpose(inverse)


def to_bytes(shape: Shape, array: Array) -> Array:
    """The array as it lies in memory: flat uint8, in layout order, packed by `E(n)`.

    Tiles are not modelled: elements lie row by row in layout order, which takes no
    more bytes than the tiled form.
    """
    kind = shape.element_type
    codes = to_codes(kind, physical(shape, np.asarray(array)))
    flat = np.ascontiguousarray(codes).reshape(-1)
    bits = shape.layout.element_size_in_bits if shape.layout else 0
    if bits and bits < 8:
        return packed(flat.view(np.uint8), bits)
    return flat.view(np.uint8)


def from_bytes(shape: Shape, data: Array) -> Array:
    """Inverse of `to_bytes`; a view of `data` where type and layout allow."""
    kind = shape.element_type
    bits = shape.layout.element_size_in_bits if shape.layout else 0
    if bits and bits < 8:
        data = unpacked(data, bits, shape.element_count)
    codes = data.view(code_dtype(kind))
    return logical(shape, from_codes(kind, codes))


def packed(codes: Array, bits: int) -> Array:
    """Codes of a few bits each as bytes, the first in the lowest bits."""
    per = 8 // bits
    padded = np.zeros(-(-len(codes) // per) * per, dtype=np.uint8)
    padded[: len(codes)] = codes & np.uint8((1 << bits) - 1)
    rows = padded.reshape(-1, per)
    out = np.zeros(len(rows), dtype=np.uint8)
    for i in range(per):
        out |= rows[:, i] << np.uint8(bits * i)
    return out


def unpacked(data: Array, bits: int, count: int) -> Array:
    """Inverse of `packed`: the first `count` codes."""
    per = 8 // bits
    mask = np.uint8((1 << bits) - 1)
    columns = [(data >> np.uint8(bits * i)) & mask for i in range(per)]
    return np.stack(columns, axis=1).reshape(-1)[:count]


def coded_view(shape: Shape, data: Array) -> Array | None:
    """A writable view of bytes as bit patterns in logical order; None if packed."""
    bits = shape.layout.element_size_in_bits if shape.layout else 0
    if bits and bits < 8:
        return None
    return logical(shape, data.view(code_dtype(shape.element_type)))


def zeros(index: ShapeIndex, shape: Shape) -> Any:
    """What an array is when nobody sends another; for `map_leaves`."""
    del index
    if not shape.is_array:
        return None
    return np.zeros(shape.dimensions, dtype=numpy_dtype(shape.element_type))
