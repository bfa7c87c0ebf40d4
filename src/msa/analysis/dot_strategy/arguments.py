"""Products from outside: shapes and dimension numbers that fit together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msa.errors import OptionsError, UnsupportedError, shown
from msa.heap.whole_number import read_whole
from msa.hlo.arguments import expect
from msa.hlo.shape import Shape


class Product(NamedTuple):
    """A checked product.

    Attributes:
        lhs, rhs, result: arrays.
        lhs_contracting, rhs_contracting, lhs_batch, rhs_batch: dimension numbers.
    """

    lhs: Shape
    rhs: Shape
    result: Shape
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]


def read_product(
    shapes: tuple[Any, Any, Any], contracting: tuple[Any, Any], batch: tuple[Any, Any]
) -> Product:
    """The product of two arrays, checked.

    Raises:
        HloError: a shape is none.
        OptionsError: the numbers do not fit the shapes.
        UnsupportedError: a shape is no array, or a size is not known.
    """
    lhs, rhs, result = (
        _array(shape, side)
        for shape, side in zip(shapes, ("lhs", "rhs", "result"), strict=True)
    )
    numbers = [
        _dimensions(given, shape, f"{side}_{kind}")
        for kind, pair in (("contracting", contracting), ("batch", batch))
        for side, given, shape in (("lhs", pair[0], lhs), ("rhs", pair[1], rhs))
    ]
    product = Product(lhs, rhs, result, *numbers)
    _check_sizes(product)
    return product


def _array(shape: Any, side: str) -> Shape:
    where = "choose_strategy"
    array = expect(shape, Shape, where=where, what=f"a Shape as {side}")
    if not array.is_array and not array.as_array.is_array:
        raise UnsupportedError(
            f"{side} is {shown(str(array))}, no array", subject="dot", where=where
        )
    array = array.as_array
    if any(size < 0 for size in array.dimensions):
        raise UnsupportedError(
            f"a size of {side} {shown(str(array))} is not known",
            subject="dot",
            where=where,
        )
    return array


def _dimensions(given: Any, shape: Shape, name: str) -> tuple[int, ...]:
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise OptionsError(f"{name} is a sequence of numbers, not {shown(given)}")
    numbers = tuple(
        read_whole(d, f"a dimension of {name}", at_least=0, below=max(shape.rank, 1))
        for d in given
    )
    if len(set(numbers)) != len(numbers) or (numbers and not shape.rank):
        raise OptionsError(f"{name} {shown(numbers)} does not fit {shape}")
    return numbers


def _check_sizes(product: Product) -> None:
    lhs, rhs, result, *numbers = product
    left, right, left_batch, right_batch = numbers
    if {*left} & {*left_batch} or {*right} & {*right_batch}:
        raise OptionsError("a dimension is both batch and contracting")
    for what, a, b in (
        ("contracting", left, right),
        ("batch", left_batch, right_batch),
    ):
        sizes = [lhs.dimensions[d] for d in a], [rhs.dimensions[d] for d in b]
        if sizes[0] != sizes[1]:
            raise OptionsError(
                f"{what} sizes differ: {shown(sizes[0])} and {shown(sizes[1])}"
            )
    expected = [lhs.dimensions[d] for d in left_batch]
    for shape, taken in ((lhs, left + left_batch), (rhs, right + right_batch)):
        expected += [d for i, d in enumerate(shape.dimensions) if i not in taken]
    if list(result.dimensions) != expected:
        raise OptionsError(
            f"the result is {result}, but its sizes should be {shown(expected)}"
        )
