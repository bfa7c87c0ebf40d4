"""Fourier transforms, Cholesky factors, triangular solves and batch normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.literal import numpy_dtype
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.registry import Kernel, kernel


@kernel("fft")
def _fft(instruction: Instruction, context: Context) -> Kernel:
    """Transforms over the last dimensions; inverse ones divide by the count."""
    del context
    kind = instruction.attributes["fft_type"]
    lengths = instruction.attributes["fft_length"]
    axes = tuple(range(-len(lengths), 0))
    dtype = numpy_dtype(instruction.shape.element_type)
    functions: dict[str, Callable[..., Any]] = {
        "FFT": np.fft.fftn,
        "IFFT": np.fft.ifftn,
        "RFFT": np.fft.rfftn,
        "IRFFT": np.fft.irfftn,
    }
    function = functions[kind]

    def run(x: Any) -> Array:
        x = np.asarray(x, order="C")
        return np.asarray(function(x, s=lengths, axes=axes)).astype(dtype)

    return run


def cholesky_factor(a: Array) -> Array:
    """Lower factors of a batch; NaN where a matrix is not positive definite.

    Only the lower triangles are read.
    """
    a = np.asarray(a, order="C")
    flat = a.reshape((-1, *a.shape[-2:]))
    out = np.empty_like(flat)
    for place, matrix in enumerate(flat):
        try:
            out[place] = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            out[place] = np.nan
    return np.tril(out).reshape(a.shape)


@kernel("cholesky")
def _cholesky(instruction: Instruction, context: Context) -> Kernel:
    del context
    lower = instruction.attributes.get("lower", False)

    def run(a: Any) -> Array:
        a = np.asarray(a)
        if lower:
            return cholesky_factor(a)
        return np.conj(
            np.swapaxes(cholesky_factor(np.conj(np.swapaxes(a, -1, -2))), -1, -2)
        )

    return run


def solve_triangular(a: Array, b: Array, *, lower: bool, unit: bool) -> Array:
    """`x` with `a x = b` for batches; only one triangle of `a` is read."""
    a, b = np.asarray(a, order="C"), np.asarray(b, order="C")
    size = a.shape[-1]
    x = np.zeros_like(b)
    for step in range(size):
        row = step if lower else size - 1 - step
        done = slice(0, row) if lower else slice(row + 1, size)
        known = np.matmul(a[..., row : row + 1, done], x[..., done, :])
        value = b[..., row : row + 1, :] - known
        if not unit:
            value = value / a[..., row : row + 1, row : row + 1]
        x[..., row : row + 1, :] = value
    return x


def solve(
    a: Array, b: Array, *, left: bool, lower: bool, unit: bool, transpose: str
) -> Array:
    """Solve `op(a) x = b` or `x op(a) = b`; `transpose` is N, T or C."""
    if transpose != "N":
        a = np.swapaxes(a, -1, -2)
        lower = not lower
        if transpose == "C":
            a = np.conj(a)
    if left:
        return solve_triangular(a, b, lower=lower, unit=unit)
    # x a = b  is  aᵀ xᵀ = bᵀ
    flipped = solve_triangular(
        np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), lower=not lower, unit=unit
    )
    return np.swapaxes(flipped, -1, -2)


@kernel("triangular-solve")
def _triangular_solve(instruction: Instruction, context: Context) -> Kernel:
    del context
    a = instruction.attributes
    transposes = {"TRANSPOSE": "T", "ADJOINT": "C"}
    transpose = transposes.get(str(a.get("transpose_a", "NO_TRANSPOSE")), "N")
    left, lower = a.get("left_side", False), a.get("lower", False)
    unit = a.get("unit_diagonal", False)

    def run(matrix: Any, rhs: Any) -> Array:
        return solve(
            np.asarray(matrix),
            np.asarray(rhs),
            left=left,
            lower=lower,
            unit=unit,
            transpose=transpose,
        )

    return run


# -- batch normalisation -------------------------------------------------------------------


def _feature_axes(instruction: Instruction) -> tuple[tuple[int, ...], list[int]]:
    """Axes to reduce, and the shape that lines a feature vector up."""
    dimensions = instruction.operands[0].shape.dimensions
    feature = instruction.attributes["feature_index"]
    axes = tuple(d for d in range(len(dimensions)) if d != feature)
    return axes, [n if d == feature else 1 for d, n in enumerate(dimensions)]


@kernel("batch-norm-inference")
def _batch_norm_inference(instruction: Instruction, context: Context) -> Kernel:
    del context
    _, line = _feature_axes(instruction)
    epsilon = instruction.attributes["epsilon"]

    def run(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Array:
        parts = [np.reshape(v, line) for v in (scale, offset, mean, variance)]
        scale, offset, mean, variance = parts
        dtype = np.asarray(x).dtype
        factor = scale / np.sqrt(variance + dtype.type(epsilon))
        return np.asarray((x - mean) * factor + offset, dtype=dtype)

    return run


@kernel("batch-norm-training")
def _batch_norm_training(instruction: Instruction, context: Context) -> Kernel:
    del context
    axes, line = _feature_axes(instruction)
    epsilon = instruction.attributes["epsilon"]

    def run(x: Any, scale: Any, offset: Any) -> tuple[Array, ...]:
        x = np.asarray(x, order="C")
        mean = x.mean(axis=axes)
        variance = np.square(x - mean.reshape(line)).mean(axis=axes)
        factor = np.reshape(scale, line) / np.sqrt(
            variance.reshape(line) + x.dtype.type(epsilon)
        )
        out = (x - mean.reshape(line)) * factor + np.reshape(offset, line)
        return out.astype(x.dtype), mean, variance

    return run


@kernel("batch-norm-grad")
def _batch_norm_grad(instruction: Instruction, context: Context) -> Kernel:
    del context
    axes, line = _feature_axes(instruction)
    epsilon = instruction.attributes["epsilon"]

    def run(
        x: Any, scale: Any, mean: Any, variance: Any, grad: Any
    ) -> tuple[Array, ...]:
        x, grad = np.asarray(x, order="C"), np.asarray(grad, order="C")
        inverse = 1 / np.sqrt(np.reshape(variance, line) + x.dtype.type(epsilon))
        centred = x - np.reshape(mean, line)
        offset_grad = grad.sum(axis=axes)
        scale_grad = (grad * centred * inverse).sum(axis=axes)
        mean_grad = grad.mean(axis=axes).reshape(line)
        mean_product = (grad * centred).mean(axis=axes).reshape(line)
        factor = np.reshape(scale, line) * inverse
        x_grad = factor * (
            grad - mean_grad - centred * inverse * inverse * mean_product
        )
        return x_grad.astype(x.dtype), scale_grad, offset_grad

    return run
