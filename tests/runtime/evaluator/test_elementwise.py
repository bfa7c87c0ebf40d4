"""Elementwise opcodes: rows of opcode, type, operands and the value by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaluator_support import run

INF, NAN = math.inf, math.nan

UNARY = [
    ("abs", "s32", [-3, 0, 3, -(2**31)], [3, 0, 3, -(2**31)]),
    ("abs", "f32", [-1.5, -0.0, -INF], [1.5, 0.0, INF]),
    ("negate", "u8", [1, 0, 255], [255, 0, 1]),
    ("negate", "s4", [1, -8, 7], [-1, -8, -7]),
    ("not", "pred", [True, False], [False, True]),
    ("not", "s32", [0, -1, 5], [-1, 0, -6]),
    ("not", "u4", [0, 15, 5], [15, 0, 10]),
    ("sign", "s32", [-7, 0, 9], [-1, 0, 1]),
    ("sign", "f32", [-2.5, -0.0, 3.0, NAN], [-1.0, -0.0, 1.0, NAN]),
    ("ceil", "f32", [1.2, -1.2, 2.0], [2.0, -1.0, 2.0]),
    ("floor", "f32", [1.8, -1.2, 2.0], [1.0, -2.0, 2.0]),
    ("round-nearest-afz", "f32", [0.5, -0.5, 2.5, 0.49999997], [1.0, -1.0, 3.0, 0.0]),
    ("round-nearest-even", "f32", [0.5, 1.5, 2.5, -2.5], [0.0, 2.0, 2.0, -2.0]),
    ("popcnt", "u32", [0, 1, 255, 2**32 - 1], [0, 1, 8, 32]),
    ("popcnt", "s8", [-1, 1, -128], [8, 1, 1]),
    ("popcnt", "s4", [-1, 7], [4, 3]),
    ("count-leading-zeros", "u32", [0, 1, 2**31], [32, 31, 0]),
    ("count-leading-zeros", "s16", [0, 1, -1], [16, 15, 0]),
    ("count-leading-zeros", "u64", [0, 1, 2**63], [64, 63, 0]),
    ("rsqrt", "f32", [4.0, 0.25], [0.5, 2.0]),
    ("logistic", "f32", [0.0, -200.0, 200.0], [0.5, 0.0, 1.0]),
]


@pytest.mark.parametrize(
    ("opcode", "kind", "given", "expected"),
    UNARY,
    ids=[f"{r[0]}-{r[1]}" for r in UNARY],
)
def test_unary(opcode: str, kind: str, given: list[Any], expected: list[Any]) -> None:
    shape = f"{kind}[{len(given)}]"
    got = run(f"x = {shape} parameter(0)\nROOT y = {shape} {opcode}(x)", given)
    np.testing.assert_array_equal(got, np.array(expected, dtype=got.dtype))


SMOOTH = {
    "acos": math.acos,
    "asin": math.asin,
    "asinh": math.asinh,
    "atanh": math.atanh,
    "cbrt": math.cbrt,
    "cosine": math.cos,
    "cosh": math.cosh,
    "erf": math.erf,
    "exponential": math.exp,
    "exponential-minus-one": math.expm1,
    "log-plus-one": math.log1p,
    "sine": math.sin,
    "sinh": math.sinh,
    "tan": math.tan,
    "tanh": math.tanh,
}


@pytest.mark.parametrize("opcode", SMOOTH)
def test_smooth_functions(opcode: str) -> None:
    given = [-0.9, -0.5, -1e-5, 0.0, 1e-9, 0.25, 0.75]
    body = f"x = f64[7] parameter(0)\nROOT y = f64[7] {opcode}(x)"
    expected = [SMOOTH[opcode](x) for x in given]
    np.testing.assert_allclose(run(body, given), expected, rtol=1e-14)


@pytest.mark.parametrize("opcode", ["log", "sqrt", "acosh"])
def test_smooth_functions_above_one(opcode: str) -> None:
    given = [1.0, 1.5, 10.0, 1e10]
    function = getattr(math, opcode)
    body = f"x = f64[4] parameter(0)\nROOT y = f64[4] {opcode}(x)"
    np.testing.assert_allclose(run(body, given), [function(x) for x in given])


def test_erf_over_its_range() -> None:
    given = np.linspace(-7, 7, 5001)
    body = "x = f64[5001] parameter(0)\nROOT y = f64[5001] erf(x)"
    expected = [math.erf(x) for x in given]
    np.testing.assert_allclose(run(body, given), expected, rtol=0, atol=2e-15)


BINARY = [
    ("add", "s8", [127, -128], [1, -1], [-128, 127]),
    ("add", "s4", [7, -8], [1, -1], [-8, 7]),
    ("add", "pred", [True, False], [False, False], [True, False]),
    ("subtract", "u32", [0], [1], [2**32 - 1]),
    ("multiply", "s32", [2**30], [4], [0]),
    ("multiply", "pred", [True, True], [True, False], [True, False]),
    ("divide", "s32", [7, -7, 7, -7], [2, 2, -2, -2], [3, -3, -3, 3]),
    ("divide", "s32", [5, -(2**31)], [0, -1], [-1, -(2**31)]),
    ("divide", "u32", [5, 7], [0, 2], [2**32 - 1, 3]),
    ("divide", "f32", [1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [INF, -INF, NAN]),
    ("remainder", "s32", [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
    ("remainder", "s32", [5, -(2**31)], [0, -1], [5, 0]),
    ("remainder", "f32", [5.5, -5.5], [2.0, 2.0], [1.5, -1.5]),
    ("power", "s32", [2, -2, 3, 0], [10, 3, 0, 0], [1024, -8, 1, 1]),
    ("power", "s32", [1, -1, -1, 5], [-3, -3, -2, -1], [1, -1, 1, 0]),
    ("power", "f32", [2.0, 4.0], [3.0, 0.5], [8.0, 2.0]),
    ("maximum", "f32", [1.0, NAN], [2.0, 1.0], [2.0, NAN]),
    ("minimum", "s32", [-1, 5], [3, -5], [-1, -5]),
    ("and", "s32", [12], [10], [8]),
    ("or", "s32", [12], [10], [14]),
    ("xor", "s32", [12], [10], [6]),
    ("xor", "pred", [True, True], [True, False], [False, True]),
    ("shift-left", "s32", [1, 1, 1], [3, 31, 32], [8, -(2**31), 0]),
    ("shift-right-logical", "s32", [-1, -1, 8], [28, 32, 1], [15, 0, 4]),
    ("shift-right-arithmetic", "s32", [-8, -8, 8], [1, 40, 1], [-4, -1, 4]),
    ("shift-right-logical", "s4", [-8], [1], [4]),
    ("atan2", "f64", [1.0, -1.0], [0.0, 0.0], [math.pi / 2, -math.pi / 2]),
    ("mulhi", "u32", [2**31], [4], [2]),
    ("mulhi", "s64", [-(2**62)], [8], [-2]),
]


@pytest.mark.parametrize(
    ("opcode", "kind", "left", "right", "expected"),
    BINARY,
    ids=[f"{r[0]}-{r[1]}-{i}" for i, r in enumerate(BINARY)],
)
def test_binary(
    opcode: str, kind: str, left: list[Any], right: list[Any], expected: list[Any]
) -> None:
    shape = f"{kind}[{len(left)}]"
    body = (
        f"x = {shape} parameter(0)\ny = {shape} parameter(1)\n"
        f"ROOT z = {shape} {opcode}(x, y)"
    )
    got = run(body, left, right)
    np.testing.assert_array_equal(got, np.array(expected, dtype=got.dtype))


COMPARES = [
    ("EQ", "FLOAT", [False, True, False, True]),
    ("NE", "FLOAT", [True, False, True, False]),
    ("LT", "FLOAT", [True, False, False, False]),
    ("LT", "TOTALORDER", [True, False, False, True]),
    ("GE", "TOTALORDER", [False, True, True, False]),
]


@pytest.mark.parametrize(("direction", "order", "expected"), COMPARES)
def test_compare(direction: str, order: str, expected: list[bool]) -> None:
    body = (
        "x = f32[4] parameter(0)\ny = f32[4] parameter(1)\n"
        f"ROOT z = pred[4] compare(x, y), direction={direction}, type={order}"
    )
    left, right = [1.0, 2.0, NAN, -0.0], [2.0, 2.0, 1.0, 0.0]
    assert run(body, left, right).tolist() == expected


def test_select_clamp_and_complex() -> None:
    body = """
      p = pred[3] parameter(0)
      a = f32[3] parameter(1)
      b = f32[3] parameter(2)
      lo = f32[] constant(-1)
      hi = f32[] constant(2)
      s = f32[3] select(p, a, b)
      c = f32[3] clamp(lo, s, hi)
      z = c64[3] complex(c, b)
      re = f32[3] real(z)
      im = f32[3] imag(z)
      ROOT t = (f32[3], f32[3], f32[3]) tuple(c, re, im)"""
    clamped, real, imaginary = run(body, [True, False, True], [5, 5, -5], [1, 1.5, 3])
    assert clamped.tolist() == real.tolist() == [2.0, 1.5, -1.0]
    assert imaginary.tolist() == [1.0, 1.5, 3.0]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_rounding_away_keeps_the_sign_of_zero(kind: str) -> None:
    types = {"f16": np.float16, "f64": np.float64}
    x = np.array([0.0, -0.0, 0.25, -0.25, 0.5, -0.5, -2.5], types.get(kind, np.float32))
    body = f"x = {kind}[7] parameter(0)\nROOT y = {kind}[7] round-nearest-afz(x)"
    y = run(body, x)
    assert y.tolist() == [0, 0, 0, 0, 1, -1, -3]
    assert np.signbit(y).tolist() == [False, True, False, True, False, True, True]


@pytest.mark.parametrize("kind", ["u4", "s4", "u8", "s8"])
def test_arithmetic_shift_repeats_the_highest_bit(kind: str) -> None:
    """Against Python: the bits as a signed number, shifted, as bits again."""
    bits = int(kind[1:])
    low = -(1 << (bits - 1)) if kind[0] == "s" else 0
    values = [low + n for n in range(1 << bits) for _ in range(bits + 1)]
    counts = [n for _ in range(1 << bits) for n in range(bits + 1)]
    dtype = np.int8 if kind[0] == "s" else np.uint8

    def expected(value: int, count: int) -> int:
        sign = 1 << (bits - 1)
        moved = ((value & (2 * sign - 1)) ^ sign) - sign >> min(count, bits - 1)
        return moved if low else moved & (2 * sign - 1)

    shape = f"{kind}[{len(values)}]"
    body = f"x = {shape} parameter(0)\ny = {shape} parameter(1)\nROOT z = {shape} shift-right-arithmetic(x, y)"
    got = run(body, np.array(values, dtype), np.array(counts, dtype))
    assert got.tolist() == [expected(v, n) for v, n in zip(values, counts, strict=True)]
