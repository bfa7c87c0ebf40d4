"""Custom calls: a registry by target, with the common library calls of the CPU.

LAPACK results follow its conventions: reflectors below the diagonal, pivots counted
from 1, `info` 0 on success.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from msa.errors import UnsupportedError
from msa.hlo.instruction import Instruction
from msa.runtime.evaluator.context import Context, CustomCall
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.linear_algebra import cholesky_factor, solve
from msa.runtime.evaluator.registry import Kernel, kernel
from msa.runtime.evaluator.sorting import top_k
from msa.runtime.evaluator.values import to_bytes

_OPTION: Final = re.compile(r"(\w+)\s*=\s*(-?\d+)\s*:")


def options_of(instruction: Instruction) -> dict[str, int]:
    """Integers of a typed backend config, such as `{uplo = 76 : ui8}`."""
    text = instruction.backend_config or ""
    return {name: int(value) for name, value in _OPTION.findall(text)}


def letter(instruction: Instruction, name: str, default: str) -> str:
    """An option that is a character code."""
    value = options_of(instruction).get(name)
    return default if value is None else chr(value)


@kernel("custom-call")
def _custom_call(instruction: Instruction, context: Context) -> Kernel:
    target = str(instruction.attributes.get("custom_call_target", ""))
    handler = context.custom_calls.get(target) or _find(target) or context.stand_in
    if handler is None and target in _HOST_CALLS:
        raise UnsupportedError(
            f"custom-call to {target!r} runs code of its host program",
            subject="custom-call",
            where=instruction.name,
            hint="give a replacement in `custom_calls`",
        )
    if handler is None:
        raise UnsupportedError(
            f"custom-call to {target!r} has no handler",
            subject="custom-call",
            where=instruction.name,
            hint="give one in `custom_calls`",
        )
    return handler(instruction)


def _find(target: str) -> CustomCall | None:
    if target in _HANDLERS:
        return _HANDLERS[target]
    match = re.fullmatch(r"lapack_[sdcz](\w+?)(?:_ffi)?", target)
    if match is None:
        return None
    name = match[1]
    # Complex types have their own names for the same routines.
    name = {"ungqr": "orgqr", "heevd": "syevd"}.get(name, name)
    return _LAPACK.get(name)


def _identity(instruction: Instruction) -> Kernel:
    del instruction
    return lambda *operands: operands[0] if len(operands) == 1 else operands


def _top_k(instruction: Instruction) -> Kernel:
    return top_k(instruction.shape.children[0].dimensions[-1])


def _join(instruction: Instruction) -> Kernel:
    """Slices that lie next to each other, under one name."""
    sizes = instruction.shape.dimensions
    first = instruction.operands[0].shape.dimensions
    cut = [d for d, (a, b) in enumerate(zip(first, sizes, strict=True)) if a != b]
    axis = cut[0] if cut else 0
    return lambda *parts: np.concatenate(parts, axis)


def _window(instruction: Instruction) -> Kernel:
    """The first bytes of the operand, and flags that say they are there."""
    window, flags = instruction.shape.children
    source = instruction.operands[0].shape

    def run(x: Any) -> tuple[Array, Array]:
        data = np.zeros(window.dimensions, dtype=np.uint8)
        found = to_bytes(source.as_array, np.asarray(x))[: data.size]
        data[: len(found)] = found
        return data, np.ones(flags.dimensions, dtype=np.int32)

    return run


# -- lapack -----------------------------------------------------------------------


def _batched(
    function: Callable[[Array], tuple[Any, ...]], instruction: Instruction
) -> Kernel:
    """Apply to each matrix of a batch; results take the types of the instruction."""
    from msa.hlo.literal import numpy_dtype

    shapes = instruction.shape.children

    def run(a: Any) -> tuple[Array, ...]:
        a = np.asarray(a, order="C")
        flat = a.reshape((-1, *a.shape[-2:]))
        rows = [function(matrix) for matrix in flat]
        out = []
        for i, shape in enumerate(shapes):
            dtype = numpy_dtype(shape.element_type)
            stacked = np.array([row[i] for row in rows], dtype=dtype)
            out.append(stacked.reshape(shape.dimensions))
        return tuple(out)

    return run


def _potrf(instruction: Instruction) -> Kernel:
    lower = letter(instruction, "uplo", "L") == "L"

    def factor(a: Array) -> tuple[Any, ...]:
        source = a if lower else np.conj(a.T)
        found = cholesky_factor(source)
        info = int(np.isnan(found).any())
        # The other triangle is not touched.
        if info:
            return a, info
        merged = np.tril(found) + np.triu(source, 1)
        return (merged if lower else np.conj(merged.T)), info

    return _batched(factor, instruction)


def _trsm(instruction: Instruction) -> Kernel:
    left = letter(instruction, "side", "L") == "L"
    lower = letter(instruction, "uplo", "L") == "L"
    unit = letter(instruction, "diag", "N") == "U"
    transpose = letter(instruction, "trans_x", "N")

    def run(a: Any, b: Any, *_: Any) -> Array:
        return solve(
            np.asarray(a),
            np.asarray(b),
            left=left,
            lower=lower,
            unit=unit,
            transpose=transpose,
        )

    return run


def _getrf(instruction: Instruction) -> Kernel:
    return _batched(factor_lu, instruction)


def factor_lu(a: Array) -> tuple[Array, Array, int]:
    """LU with partial pivoting: both factors in one matrix, pivots from 1, info."""
    lu = a.copy()
    rows, columns = lu.shape
    steps = min(rows, columns)
    pivots = np.zeros(steps, dtype=np.int32)
    info = 0
    for k in range(steps):
        p = k + int(np.argmax(np.abs(lu[k:, k])))
        pivots[k] = p + 1
        if lu[p, k] == 0:
            info = info or k + 1
            continue
        if p != k:
            lu[[k, p]] = lu[[p, k]]
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu, pivots, info


def _geqrf(instruction: Instruction) -> Kernel:
    return _batched(factor_qr, instruction)


def factor_qr(a: Array) -> tuple[Array, Array]:
    """Householder QR: R on and above the diagonal, reflectors below, and their τ."""
    r = a.copy()
    rows, columns = r.shape
    steps = min(rows, columns)
    tau = np.zeros(steps, dtype=r.dtype)
    for k in range(steps):
        x = r[k:, k]
        tail = np.linalg.norm(x[1:])
        alpha = x[0]
        if tail == 0 and np.imag(alpha) == 0:
            continue
        size = np.hypot(np.abs(alpha), tail)
        beta = -np.copysign(size, np.real(alpha))
        tau[k] = (beta - alpha) / beta
        v = x / (alpha - beta)
        v[0] = 1
        if k + 1 < columns:
            product = np.conj(tau[k]) * (np.conj(v) @ r[k:, k + 1 :])
            r[k:, k + 1 :] -= np.outer(v, product)
        r[k, k] = beta
        r[k + 1 :, k] = v[1:]
    return r, tau


def _orgqr(instruction: Instruction) -> Kernel:
    dimensions = instruction.shape.dimensions

    def run(a: Any, tau: Any) -> Array:
        a, tau = np.asarray(a), np.asarray(tau)
        flat = a.reshape((-1, *a.shape[-2:]))
        taus = tau.reshape((len(flat), -1))
        found = [form_q(m, t) for m, t in zip(flat, taus, strict=True)]
        return np.array(found).reshape(dimensions)

    return run


def form_q(reflectors: Array, tau: Array) -> Array:
    """The first columns of the product of Householder reflectors."""
    rows, columns = reflectors.shape
    q = np.eye(rows, columns, dtype=reflectors.dtype)
    for k in range(len(tau) - 1, -1, -1):
        v = reflectors[k:, k].copy()
        v[0] = 1
        q[k:, k:] -= tau[k] * np.outer(v, np.conj(v) @ q[k:, k:])
    return q


def _gesdd(instruction: Instruction) -> Kernel:
    mode = letter(instruction, "mode", "S")

    def factor(a: Array) -> tuple[Any, ...]:
        if mode == "N":
            values = np.linalg.svd(a, compute_uv=False)
            empty = [
                np.zeros(s.dimensions[-2:], dtype=a.dtype)
                for s in instruction.shape.children[2:4]
            ]
            return a, values, *empty, 0
        u, values, v = np.linalg.svd(a, full_matrices=mode == "A")
        return a, values, u, v, 0

    return _batched(factor, instruction)


def _syevd(instruction: Instruction) -> Kernel:
    uplo: Literal["L", "U"] = "U" if letter(instruction, "uplo", "L") == "U" else "L"

    def factor(a: Array) -> tuple[Any, ...]:
        values, vectors = np.linalg.eigh(a, UPLO=uplo)
        return vectors, values, 0

    return _batched(factor, instruction)


_LAPACK: Final[dict[str, CustomCall]] = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "gesdd": _gesdd,
    "syevd": _syevd,
}

_HANDLERS: Final[dict[str, CustomCall]] = {
    "ConcatBitcast": _join,
    "TopK": _top_k,
    "WindowPrefetch": _window,
    "Sharding": _identity,
    "SPMDFullToShardShape": _identity,
    "SPMDShardToFullShape": _identity,
    "xla.sdy.FuncResultSharding": _identity,
}

_HOST_CALLS: Final = frozenset(
    {"xla_ffi_python_cpu_callback", "xla_python_cpu_callback"}
)
