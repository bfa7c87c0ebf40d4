"""Factorisations and transforms, checked by what defines them."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator_support import run
from msa.runtime.evaluator.custom_calls import factor_lu, factor_qr, form_q


def spd(size: int, seed: int = 0) -> np.ndarray:
    a = np.random.default_rng(seed).normal(size=(size, size))
    return a @ a.T + size * np.eye(size)


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle(lower: bool) -> None:
    a = spd(5)
    given = np.tril(a) if lower else np.triu(a)
    body = f"a = f64[5,5] parameter(0)\nROOT l = f64[5,5] cholesky(a), lower={str(lower).lower()}"
    factor = run(body, given)
    product = factor @ factor.T if lower else factor.T @ factor
    np.testing.assert_allclose(product, a)
    assert (
        (np.triu(factor, 1) == 0).all() if lower else (np.tril(factor, -1) == 0).all()
    )


def test_cholesky_of_an_indefinite_matrix_is_nan() -> None:
    body = "a = f64[2,2] parameter(0)\nROOT l = f64[2,2] cholesky(a), lower=true"
    assert np.isnan(run(body, [[1, 0], [0, -1]])[1, 1])


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(left: bool, lower: bool, transpose: str, unit: bool) -> None:
    a = spd(4)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        np.fill_diagonal(triangle, 1)
    shape = (4, 3) if left else (3, 4)
    b = np.random.default_rng(1).normal(size=shape)
    dims = f"f64[{shape[0]},{shape[1]}]"
    flags = f"left_side={left}, lower={lower}, unit_diagonal={unit}".lower()
    body = (
        f"a = f64[4,4] parameter(0)\nb = {dims} parameter(1)\n"
        f"ROOT x = {dims} triangular-solve(a, b), {flags}, transpose_a={transpose}"
    )
    x = run(body, a, b)
    full = triangle.T if transpose == "TRANSPOSE" else triangle
    np.testing.assert_allclose(full @ x if left else x @ full, b)


FFTS = [
    ("FFT", "c128", (4, 6), "c128", (4, 6), "4,6"),
    ("IFFT", "c128", (4, 6), "c128", (4, 6), "6"),
    ("RFFT", "f64", (3, 6), "c128", (3, 4), "6"),
    ("IRFFT", "c128", (3, 4), "f64", (3, 6), "6"),
    ("IRFFT", "c128", (3, 4), "f64", (3, 7), "7"),
]


@pytest.mark.parametrize(
    ("name", "kind", "shape", "out", "out_shape", "length"), FFTS, ids=range(len(FFTS))
)
def test_fft_is_a_sum_of_waves(
    name: str,
    kind: str,
    shape: tuple[int, ...],
    out: str,
    out_shape: tuple[int, ...],
    length: str,
) -> None:
    chance = np.random.default_rng(0)
    x = chance.normal(size=shape) + (
        1j * chance.normal(size=shape) if kind == "c128" else 0
    )
    if name == "IRFFT":
        x[:, 0] = x[:, 0].real
        if out_shape[-1] % 2 == 0:
            x[:, -1] = x[:, -1].real
    body = (
        f"x = {kind}{list(shape)} parameter(0)\n"
        f"ROOT y = {out}{list(out_shape)} fft(x), fft_type={name}, fft_length={{{length}}}"
    ).replace(", ", ",")
    got = run(body, x)
    expected = x
    count = len(length.split(","))
    for axis in range(-count, 0):
        n = out_shape[axis] if name == "IRFFT" else shape[axis]
        if name == "IRFFT":
            tail = np.conj(expected[..., 1 : n - expected.shape[-1] + 1][..., ::-1])
            expected = np.concatenate((expected, tail), -1)
        k = np.arange(n)
        sign = -1 if name in ("FFT", "RFFT") else 1
        waves = np.exp(sign * 2j * np.pi * np.outer(k, k) / n)
        expected = np.moveaxis(np.moveaxis(expected, axis, -1) @ waves, -1, axis)
        if sign > 0:
            expected = expected / n
    if name == "RFFT":
        expected = expected[..., : out_shape[-1]]
    np.testing.assert_allclose(
        got, expected.real if out == "f64" else expected, atol=1e-12
    )


def test_lu() -> None:
    a = np.random.default_rng(0).normal(size=(5, 4))
    lu, pivots, info = factor_lu(a)
    lower = np.tril(lu, -1)[:, :4] + np.eye(5, 4)
    product = lower @ np.triu(lu[:4])
    rows = list(range(5))
    for k, p in enumerate(pivots.tolist()):
        rows[k], rows[p - 1] = rows[p - 1], rows[k]
    np.testing.assert_allclose(product, a[rows])
    assert info == 0
    assert factor_lu(np.zeros((2, 2)))[2] == 1


def test_qr() -> None:
    a = np.random.default_rng(0).normal(size=(6, 4))
    packed, tau = factor_qr(a)
    q = form_q(packed, tau)
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(q @ np.triu(packed[:4]), a)


def test_svd_and_eigenvalues_through_custom_calls() -> None:
    a = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    body = """
      a = f32[5,3] parameter(0)
      ROOT s = (f32[5,3], f32[3], f32[5,3], f32[3,3], s32[]) custom-call(a),
        custom_call_target="lapack_sgesdd_ffi", backend_config={mode = 83 : ui8}"""
    _, values, u, v, info = run(body, a)
    np.testing.assert_allclose((u * values) @ v, a, atol=1e-5)
    assert int(info) == 0
    m = spd(4).astype(np.float32)
    body = """
      a = f32[4,4] parameter(0)
      ROOT s = (f32[4,4], f32[4], s32[]) custom-call(a),
        custom_call_target="lapack_ssyevd_ffi", backend_config={mode = 86 : ui8, uplo = 76 : ui8}"""
    vectors, values, _ = run(body, np.tril(m))
    np.testing.assert_allclose((vectors * values) @ vectors.T, m, rtol=1e-4, atol=1e-4)
