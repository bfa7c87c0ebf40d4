"""Conversions and narrow types, against rounding done with exact fractions."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest

from evaluator_support import run

TO_INTEGER = [
    ("f32", "s32", [1.9, -1.9, 3e9, -3e9, math.nan], [1, -1, 2**31 - 1, -(2**31), 0]),
    ("f32", "u8", [-5.0, 255.9, 300.0], [0, 255, 255]),
    ("f32", "s4", [7.9, 8.0, -9.0], [7, 7, -8]),
    ("f64", "s64", [1e19, -1e19, 2.0**53], [2**63 - 1, -(2**63), 2**53]),
    ("f64", "u64", [2.0**63, 1e20, -1.0], [2**63, 2**64 - 1, 0]),
    ("s32", "s8", [300, -129], [44, 127]),
    ("s32", "u4", [17, -1], [1, 15]),
    ("f32", "pred", [0.0, -0.0, 0.5, math.nan], [0, 0, 1, 1]),
    ("pred", "s32", [1, 0], [1, 0]),
]


@pytest.mark.parametrize(("source", "target", "given", "expected"), TO_INTEGER)
def test_to_integer(
    source: str, target: str, given: list[float], expected: list[int]
) -> None:
    n = len(given)
    body = f"x = {source}[{n}] parameter(0)\nROOT y = {target}[{n}] convert(x)"
    assert run(body, given).tolist() == expected


def grid(exponent_bits: int, mantissa_bits: int, bias: int) -> list[Fraction]:
    """Non-negative numbers of a format without infinities, ascending."""
    values = set()
    for code in range(1 << (exponent_bits + mantissa_bits)):
        exponent, mantissa = divmod(code, 1 << mantissa_bits)
        scale = Fraction(1, 1 << mantissa_bits)
        if exponent:
            value = (1 + mantissa * scale) * Fraction(2) ** (exponent - bias)
        else:
            value = mantissa * scale * Fraction(2) ** (1 - bias)
        values.add(value)
    return sorted(values)


def nearest(x: float, values: list[Fraction]) -> Fraction:
    """Round to nearest, ties to the even code (its place among all values)."""
    exact = abs(Fraction(x))
    best = min(range(len(values)), key=lambda i: (abs(values[i] - exact), i % 2))
    return values[best] * (-1 if x < 0 else 1)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("f8e4m3fn", (4, 3, 7)), ("f8e5m2", (5, 2, 15)), ("f4e2m1fn", (2, 1, 1))],
)
def test_rounding_to_small_floats(kind: str, shape: tuple[int, int, int]) -> None:
    values = grid(*shape)
    chance = np.random.default_rng(3)
    given = (chance.normal(size=200) * 2.0 ** chance.integers(-6, 3, 200)).tolist()
    given = [x for x in given if abs(x) <= 4] + [float(v) for v in values[:12]]
    given = [float(np.float32(x)) for x in given]
    body = (
        f"x = f32[{len(given)}] parameter(0)\nROOT y = {kind}[{len(given)}] convert(x)"
    )
    got = run(body, given)
    assert [Fraction(float(y)) for y in got] == [nearest(x, values) for x in given]


def bf16_by_hand(x: float) -> float:
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    low, high = bits & 0xFFFF, bits >> 16
    if low > 0x8000 or (low == 0x8000 and high & 1):
        high += 1
    (value,) = struct.unpack("<f", struct.pack("<I", (high << 16) & 0xFFFFFFFF))
    return float(value)


def test_bf16_rounds_after_each_operation() -> None:
    x = np.linspace(-3, 3, 301, dtype=np.float32)
    y = np.linspace(1, 2, 301, dtype=np.float32)
    body = """
      x = bf16[301] parameter(0)
      y = bf16[301] parameter(1)
      s = bf16[301] add(x, y)
      ROOT p = bf16[301] multiply(s, y)"""
    expected = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        a, b = bf16_by_hand(a), bf16_by_hand(b)
        total = bf16_by_hand(float(np.float32(a) + np.float32(b)))
        expected.append(bf16_by_hand(float(np.float32(total) * np.float32(b))))
    assert run(body, x, y).tolist() == expected


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 16) + 1, 200_000])
def test_bf16_of_arrays_of_any_size(size: int) -> None:
    """Specials are among them at both ends; one row of many is also a broadcast."""
    bits = np.random.default_rng(5).integers(0, 1 << 32, size, dtype=np.uint32)
    x = bits.view(np.float32)
    specials = np.array([np.nan, np.inf, -np.inf, -0.0], dtype=np.float32)
    few = min(4, size)
    x[:few], x[size - few :] = specials[:few], specials[4 - few :]
    got = run(f"x = f32[{size}] parameter(0)\nROOT y = bf16[{size}] convert(x)", x)
    chosen = np.flatnonzero(np.arange(size) % 97 == 0)
    there = np.concatenate((chosen, np.arange(size)[-5:]))
    expected = [v if v != v else bf16_by_hand(v) for v in x[there].tolist()]
    np.testing.assert_array_equal(got[there], np.array(expected, dtype=np.float32))
    assert np.isnan(got).tolist() == np.isnan(x).tolist()


def test_bf16_of_a_broadcast_and_of_a_scalar() -> None:
    body = """
      x = f32[] parameter(0)
      s = bf16[] convert(x)
      w = f32[3,2] broadcast(x), dimensions={}
      b = bf16[3,2] convert(w)
      ROOT t = (bf16[], bf16[3,2]) tuple(s, b)"""
    scalar, wide = run(body, 1.01)
    assert scalar.tolist() == bf16_by_hand(1.01)
    assert wide.tolist() == [[bf16_by_hand(1.01)] * 2] * 3


def test_bitcast_convert_between_widths() -> None:
    body = """
      x = u32[2] parameter(0)
      b = u8[2,4] bitcast-convert(x)
      f = f32[2] bitcast-convert(x)
      back = u32[2] bitcast-convert(b)
      ROOT t = (u8[2,4], f32[2], u32[2]) tuple(b, f, back)"""
    words = [0x3F800000, 0x01020304]
    octets, floats, back = run(body, words)
    assert octets.tolist() == [[0, 0, 0x80, 0x3F], [4, 3, 2, 1]]
    assert floats[0] == 1.0
    assert back.tolist() == words


def test_bitcast_follows_layouts() -> None:
    body = """
      x = f32[2,3]{0,1} parameter(0)
      ROOT y = f32[3,2]{1,0} bitcast(x)"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(body, x), x.T)


REDUCED = [
    (8, 7, 1.00390625, 1.0),
    (8, 7, 1.01171875, 1.015625),
    (5, 10, 70000.0, math.inf),
    (5, 10, 1e-8, 0.0),
    (2, 1, 1.25, 1.0),
]


@pytest.mark.parametrize(("exponent", "mantissa", "given", "expected"), REDUCED)
def test_reduce_precision(
    exponent: int, mantissa: int, given: float, expected: float
) -> None:
    body = (
        "x = f32[1] parameter(0)\nROOT y = f32[1] reduce-precision(x), "
        f"exponent_bits={exponent}, mantissa_bits={mantissa}"
    )
    assert run(body, [given]).tolist() == [expected]


@pytest.mark.parametrize("kind", ["u1", "u2", "s2", "u4", "s4"])
def test_bitcast_convert_splits_and_joins_bytes(kind: str) -> None:
    """The lowest bits of a byte are the first narrow element."""
    sign, bits = kind[0], int(kind[1])
    count = 8 // bits
    whole = np.array([0x00, 0x12, 0xF8, 0x7F, 0xFF], dtype=np.uint8)
    rows = []
    for byte in whole.tolist():
        parts = [byte >> (bits * n) & ((1 << bits) - 1) for n in range(count)]
        top = 1 << (bits - 1) if sign == "s" else 0
        rows.append([(part ^ top) - top for part in parts])
    body = f"x = u8[5] parameter(0)\nROOT y = {kind}[5,{count}] bitcast-convert(x)"
    narrow = run(body, whole)
    assert narrow.tolist() == rows
    body = f"x = {kind}[5,{count}] parameter(0)\nROOT y = u8[5] bitcast-convert(x)"
    assert run(body, narrow).tolist() == whole.tolist()


# The magnitude is rounded up when the random word is below its fraction, then signed.
HALF, QUARTER = 1 << 31, 1 << 30
STOCHASTIC = [
    (1.5, HALF - 1, 2),
    (1.5, HALF, 1),
    (-1.5, 1, -2),
    (-1.5, HALF - 1, -2),
    (-1.5, HALF, -1),
    (-0.25, QUARTER - 1, -1),
    (-0.25, QUARTER, 0),
    (-3.0, 0, -3),
    (127.5, 0, 127),
    (-127.5, 0, -128),
    (-128.5, 0, -128),
    (300.0, 5, 127),
    (-300.0, 5, -128),
    (float("nan"), 0, 0),
    (float("inf"), 0, 127),
    (float("-inf"), 0, -128),
    # A fraction of 2^-33 is no multiple of 2^-32: nothing is below it.
    (2.0**-33, 0, 0),
]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_stochastic_convert(kind: str) -> None:
    values, words, expected = zip(*STOCHASTIC, strict=True)
    count = len(values)
    bits = 32 if kind == "f32" else 64
    body = f"""
      x = {kind}[{count}] parameter(0)
      r = u{bits}[{count}] parameter(1)
      ROOT y = s8[{count}] stochastic-convert(x, r)"""
    word = np.dtype(f"u{bits // 8}")
    random = np.array(words, dtype=word) << word.type(bits - 32)
    numbers = np.array(values, dtype=f"f{bits // 8}")
    got = run(body, numbers, random).tolist()
    if kind == "f64":  # 2^-33 is a multiple of 2^-64
        expected = (*expected[:-1], 1)
    assert got == list(expected)
