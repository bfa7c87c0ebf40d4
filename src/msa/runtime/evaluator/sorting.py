"""Sort and top-k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.runtime.evaluator.applied import Applied, applied
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.elementwise import total_order_key
from msa.runtime.evaluator.registry import Kernel, kernel


@kernel("sort")
def _sort(instruction: Instruction, context: Context) -> Kernel:
    axis = instruction.attributes["dimensions"][0]
    function = applied(instruction.called_computations[0], context)
    direct = _direct_order(instruction)

    def run(*operands: Any) -> Any:
        rows = [np.moveaxis(np.asarray(x), axis, -1) for x in operands]
        if direct is not None:
            number, descending, total = direct
            order = _native_order(rows[number], descending, total)
        else:
            order = sort_order(function, rows)
        done = [
            np.moveaxis(np.take_along_axis(row, order, -1), -1, axis) for row in rows
        ]
        return done[0] if len(done) == 1 else tuple(done)

    return run


def _direct_order(instruction: Instruction) -> tuple[int, bool, bool] | None:
    """(operand, descending, total order) of a comparator that is one comparison."""
    callee = instruction.called_computations[0]
    root, parameters = callee.root, callee.parameters
    if root.opcode != "compare" or not all(x in parameters for x in root.operands):
        return None
    direction = root.attributes["direction"]
    left, right = (x.parameter_number for x in root.operands)
    if direction not in ("LT", "GT") or left // 2 != right // 2 or left == right:
        return None
    kind = root.operands[0].shape.element_type
    total = root.attributes.get("type") == "TOTALORDER"
    if kind.is_complex or (kind.is_floating and not total):
        return None  # unordered values need the comparator itself
    return left // 2, (direction == "GT") == (left < right), total and kind.is_floating


def _native_order(keys: Array, descending: bool, total: bool) -> Array:
    if total:
        keys = total_order_key(keys)
    if keys.dtype == np.bool_:
        keys = keys.view(np.int8)
    if descending:
        keys = ~keys  # reverses the order of integers and keeps ties stable
    return np.argsort(keys, axis=-1, kind="stable")


def sort_order(less: Applied, rows: Sequence[Array]) -> Array:
    """Stable order along the last axis by any strict weak order.

    A bottom-up merge sort in which all runs of all rows advance together: the place
    of a left run's element in the merged run is its own index plus the number of
    elements of the right run that go before it, found by binary search; the right
    run takes the places that remain. O(n log² n) comparisons, O(log² n) numpy passes.

    By anything else (such as `<` on floats with NaN) the result is still an order of
    all elements, and the same one for the same rows.
    """
    shape = rows[0].shape
    length = shape[-1]
    if not rows[0].size:
        return np.zeros(shape, dtype=np.intp)
    flat = [np.ascontiguousarray(row).reshape(-1, length) for row in rows]
    count = flat[0].shape[0]
    order = np.tile(np.arange(length), (count, 1))
    width = 1
    base = np.arange(count)[:, None]
    places = np.arange(length)
    while width < length:
        is_left = places // width % 2 == 0
        left = places[is_left]
        low = np.minimum(left - left % width + width, length)
        high = np.minimum(low + width, length)
        after = _places_of_left(less, flat, order, base, left, low, high)
        merged = np.empty_like(order)
        remaining = np.ones(order.shape, dtype=bool)
        np.put_along_axis(merged, after, order[:, is_left], axis=1)
        np.put_along_axis(remaining, after, False, axis=1)
        merged[remaining] = order[:, ~is_left].reshape(-1)
        order = merged
        width *= 2
    return order.reshape(shape)


def _places_of_left(
    less: Applied,
    flat: Sequence[Array],
    order: Array,
    base: Array,
    left: Array,
    low: Array,
    high: Array,
) -> Array:
    """Where the elements at `left` go when their runs and `[low, high)` are merged.

    They move behind the elements there that are strictly less; the places grow along
    each row, whatever the comparison says.
    """
    shape = (order.shape[0], len(left))
    first = np.broadcast_to(low, shape).copy()
    last = np.broadcast_to(high, shape).copy()
    mine = [row[base, order[:, left]] for row in flat]
    top = order.shape[1] - 1
    while True:
        open_ = first < last
        if not open_.any():
            return left + np.maximum.accumulate(first, axis=1) - low
        middle = (first + last) // 2
        other = order[base, np.minimum(middle, top)]
        theirs = [row[base, other] for row in flat]
        pairs = zip(theirs, mine, strict=True)
        (precedes,) = less(*(x for pair in pairs for x in pair))
        precedes = np.asarray(precedes, dtype=bool)
        first = np.where(open_ & precedes, middle + 1, first)
        last = np.where(open_ & ~precedes, middle, last)


@kernel("topk")
def _topk(instruction: Instruction, context: Context) -> Kernel:
    del context
    a = instruction.attributes
    return top_k(int(a["k"]), bool(a.get("largest", True)))


def top_k(k: int, largest: bool = True) -> Kernel:
    """The k first of each row in total order, with their places; ties by place."""

    def run(x: Any) -> tuple[Array, Array]:
        x = np.asarray(x)
        order = _native_order(x, largest, x.dtype.kind == "f")[..., :k]
        return np.take_along_axis(x, order, -1), order.astype(np.int32)

    return run
