"""The rule by which results are judged, and the double precision that it asks for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import msa
from oracle.tolerance import distance, holds
from oracle.wider import can_widen, wider


@pytest.mark.parametrize(
    ("kind", "error", "distances", "good"),
    [
        ("s32", 0.0, None, True),
        ("s32", 1.0, None, False),
        ("f32", 9e-5, None, True),
        ("f32", 2e-4, None, False),
        ("f32", 9e-5, (1.0, 1e-9), True),
        ("f32", 2e-4, (1.5e-4, 1e-4), True),
        ("f32", 2e-4, (1.5e-4, 1e-7), False),
        ("f32", math.inf, (math.inf, math.inf), False),
        ("f32", math.inf, (math.nan, 1e-7), False),
        ("bf16", 1.9e-2, None, True),
    ],
)
def test_far_results_must_be_as_near_to_the_exact_one(
    kind: str, error: float, distances: tuple[float, float] | None, good: bool
) -> None:
    row: dict[str, Any] = {"type": kind, "error": error}
    if distances is not None:
        row["ours"], row["theirs"] = distances
    assert holds(row) is good


@pytest.mark.parametrize(
    ("a", "exact", "expected"),
    [
        (np.float32(3.0), np.float64(1.0), 2.0),
        ([1.0, 4.0], [1.0, 1.0], 3.0 / math.sqrt(2.0)),
        (math.nan, math.nan, 0.0),
        ([math.inf, 1.0], [math.inf, 1.0], 0.0),
        (math.nan, 1.0, math.inf),
    ],
)
def test_distances_of_arrays_and_single_numbers(
    a: object, exact: object, expected: float
) -> None:
    assert distance(a, exact) == pytest.approx(expected)


def test_wide_modules_round_in_double_precision_and_keep_bits() -> None:
    module = msa.parse("""HloModule m
      ENTRY e {
        x = f32[3] parameter(0)
        big = f32[] constant(100000000)
        b = f32[3] broadcast(big), dimensions={}
        sum = f32[3] add(x, b)
        back = f32[3] subtract(sum, b)
        bits = s32[3] bitcast-convert(x)
        again = f32[3] bitcast-convert(bits)
        narrow = bf16[3] convert(x)
        ROOT t = (f32[3], s32[3], f32[3], bf16[3]) tuple(back, bits, again, narrow)
      }""")
    x = np.array([0.5, -1.25, 3.001], dtype=np.float32)
    narrow = msa.execute(module, [x])
    assert narrow[0].tolist() == [0, 0, 0]
    wide = wider(module)
    assert can_widen(module)
    back, bits, again, unrounded = msa.execute(wide, [x])
    assert [a.dtype for a in (back, again, unrounded)] == [np.float64] * 3
    np.testing.assert_allclose(back, x, rtol=0, atol=2e-8)
    assert bits.tolist() == x.view(np.int32).tolist()
    assert again.tolist() == unrounded.tolist() == x.astype(np.float64).tolist()


def test_what_exists_in_one_type_only_is_not_widened() -> None:
    module = msa.parse("""HloModule m
      ENTRY e {
        x = f32[3] parameter(0)
        ROOT y = f32[3] reduce-precision(x), exponent_bits=5, mantissa_bits=10
      }""")
    assert not can_widen(module)
