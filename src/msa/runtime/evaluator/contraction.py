"""Dot products: dense, ragged and scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.literal import numpy_dtype
from msa.hlo.primitive import PrimitiveType
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array, fitter
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported

_EXACT_FLOAT: Final = 2**53


def multiply_matrices(a: Any, b: Any) -> Any:
    """Batched matrix product `[…, m, k] · [k, n]`, exact (wrapping) for integers.

    Integers go through float64 when no sum can exceed 2**53, else through int64.
    """
    if a.dtype.kind == "f" and a.dtype.itemsize == 2:
        return np.matmul(a.astype(np.float32), b.astype(np.float32))
    if a.dtype.kind in "fc":
        return np.matmul(a, b)
    if a.dtype.kind == "b":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)) > 0
    bound = _magnitude(a) * _magnitude(b) * a.shape[-1]
    if bound < _EXACT_FLOAT:
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return product.astype(np.int64)
    return np.matmul(a.astype(np.int64), b.astype(np.int64))


def _magnitude(x: Array) -> int:
    return max(abs(int(x.max())), abs(int(x.min()))) if x.size else 0


def _widened(x: Array, result: PrimitiveType, kind: PrimitiveType) -> Array:
    """An operand in the type in which sums are taken."""
    if result.is_floating and kind.is_integral:
        return x.astype(np.float64)
    if result.is_complex or kind.is_complex:
        return x.astype(numpy_dtype(result))
    if result.name == "f64" and x.dtype == np.float32:
        return x.astype(np.float64)
    return x


class DotAxes:
    """Axes of a dot product, split into batch, free and contracted."""

    __slots__ = ("lhs_order", "lhs_sizes", "rhs_order", "rhs_sizes")

    def __init__(
        self,
        lhs: tuple[int, ...],
        rhs: tuple[int, ...],
        batch: tuple[Sequence[int], Sequence[int]],
        contracted: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        lhs_free = [d for d in range(len(lhs)) if d not in (*batch[0], *contracted[0])]
        rhs_free = [d for d in range(len(rhs)) if d not in (*batch[1], *contracted[1])]
        self.lhs_order = (*batch[0], *lhs_free, *contracted[0])
        self.rhs_order = (*batch[1], *contracted[1], *rhs_free)
        groups = math.prod(lhs[d] for d in batch[0])
        inner = math.prod(lhs[d] for d in contracted[0])
        self.lhs_sizes = (groups, math.prod(lhs[d] for d in lhs_free), inner)
        self.rhs_sizes = (groups, inner, math.prod(rhs[d] for d in rhs_free))

    def product(self, lhs: Array, rhs: Array) -> Any:
        """The product as `[batch, lhs free, rhs free]`, each flattened."""
        a = np.asarray(lhs.transpose(self.lhs_order), order="C")
        b = np.asarray(rhs.transpose(self.rhs_order), order="C")
        return multiply_matrices(a.reshape(self.lhs_sizes), b.reshape(self.rhs_sizes))


def dot_axes(instruction: Instruction, rhs: tuple[int, ...]) -> DotAxes:
    """Axes of a dot from the attributes of the instruction."""
    a = instruction.attributes
    return DotAxes(
        instruction.operands[0].shape.dimensions,
        rhs,
        (a.get("lhs_batch_dims", ()), a.get("rhs_batch_dims", ())),
        (a.get("lhs_contracting_dims", ()), a.get("rhs_contracting_dims", ())),
    )


@kernel("dot")
def _dot(instruction: Instruction, context: Context) -> Kernel:
    del context
    axes = dot_axes(instruction, instruction.operands[1].shape.dimensions)
    kinds = [x.shape.element_type for x in instruction.operands]
    finish = finisher(instruction)

    def run(lhs: Any, rhs: Any) -> Array:
        a = _widened(np.asarray(lhs), finish.kind, kinds[0])
        b = _widened(np.asarray(rhs), finish.kind, kinds[1])
        return finish(axes.product(a, b))

    return run


class finisher:  # noqa: N801  # used as a function that keeps its type
    """Shape and round a product to the result of an instruction."""

    __slots__ = ("dimensions", "dtype", "fit", "kind")

    def __init__(self, instruction: Instruction) -> None:
        self.kind = instruction.shape.element_type
        self.dimensions = instruction.shape.dimensions
        self.dtype = numpy_dtype(self.kind)
        self.fit = fitter(self.kind)

    def __call__(self, product: Any) -> Array:
        """The product in the shape and type of the result."""
        shaped = np.reshape(product, self.dimensions)
        if self.fit is not None:
            return np.asarray(self.fit(shaped))
        return shaped.astype(self.dtype, copy=False)


@kernel("scaled-dot")
def _scaled_dot(instruction: Instruction, context: Context) -> Kernel:
    """Each operand is multiplied by its scale, repeated over blocks, before the dot."""
    del context
    left, _, right, _ = (x.shape.dimensions for x in instruction.operands)
    axes = dot_axes(instruction, right)
    finish = finisher(instruction)

    def run(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Array:
        a = np.asarray(lhs) * _blocks(np.asarray(lhs_scale), left)
        b = np.asarray(rhs) * _blocks(np.asarray(rhs_scale), right)
        return finish(axes.product(a, b))

    return run


def _blocks(scale: Array, target: tuple[int, ...]) -> Array:
    if scale.ndim != len(target):
        return scale
    for axis, size in enumerate(target):
        if scale.shape[axis] not in (1, size):
            scale = np.repeat(scale, size // scale.shape[axis], axis)
    return scale


@kernel("ragged-dot")
def _ragged_dot(instruction: Instruction, context: Context) -> Kernel:
    """Rows of the left side, in runs of given lengths, meet one matrix per run."""
    del context
    a = instruction.attributes
    ragged = a.get("lhs_ragged_dims", ())
    groups = a.get("rhs_group_dims", ())
    contracted = a.get("lhs_contracting_dims", ())
    if len(ragged) != 1 or len(groups) != 1 or ragged[0] in contracted:
        raise unsupported(instruction, "only with one ragged free dimension")
    if a.get("lhs_batch_dims", ()):
        raise unsupported(instruction, "batch dimensions")
    (axis,), (group_axis,) = ragged, groups
    rhs = instruction.operands[1].shape.dimensions
    one = tuple(n for d, n in enumerate(rhs) if d != group_axis)
    shifted = [d - (d > group_axis) for d in a.get("rhs_contracting_dims", ())]
    lhs = instruction.operands[0].shape.dimensions
    axes = DotAxes(lhs, one, ((), ()), (contracted, shifted))
    finish = finisher(instruction)
    free = [d for d in range(len(lhs)) if d not in contracted]
    sizes = [lhs[d] for d in free]
    place = free.index(axis)

    def run(x: Any, y: Any, lengths: Any) -> Array:
        x, y = np.asarray(x), np.asarray(y)
        out: Array | None = None
        start = 0
        for number, length in enumerate(np.asarray(lengths).reshape(-1).tolist()):
            product = axes.product(x, np.take(y, number, group_axis))
            shaped = product.reshape((*sizes, -1))
            if out is None:
                out = np.zeros_like(shaped)
            cut = (slice(None),) * place + (slice(start, start + length),)
            out[cut] = shaped[cut]
            start += length
        return finish(np.zeros(finish.dimensions) if out is None else out)

    return run
