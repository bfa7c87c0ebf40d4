"""Sort and top-k against Python's own stable sort."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from evaluator_support import run

LESS = "less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT p = pred[] compare(a, b), direction=LT }"
GREATER = LESS.replace("less", "greater").replace("LT", "GT")
BY_TENS = """tens {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ten = s32[] constant(10)
  x = s32[] divide(a, ten)
  y = s32[] divide(b, ten)
  ROOT p = pred[] compare(x, y), direction=LT
}"""


@pytest.mark.parametrize("length", [1, 2, 3, 7, 64, 101])
def test_sort_by_a_key_is_stable(length: int) -> None:
    chance = np.random.default_rng(length)
    x = chance.integers(0, 60, (3, length)).astype(np.int32)
    y = np.arange(3 * length, dtype=np.int32).reshape(3, length)
    body = (
        f"x = s32[3,{length}] parameter(0)\ny = s32[3,{length}] parameter(1)\n"
        f"ROOT z = (s32[3,{length}], s32[3,{length}]) sort(x, y), dimensions={{1}}, "
        "is_stable=true, to_apply=tens"
    )
    keys, values = run(body, x, y, before=BY_TENS)
    for row in range(3):
        pairs = list(zip(x[row].tolist(), y[row].tolist(), strict=True))
        expected = sorted(pairs, key=lambda pair: pair[0] // 10)
        assert (
            list(zip(keys[row].tolist(), values[row].tolist(), strict=True)) == expected
        )


@pytest.mark.parametrize(("name", "reverse"), [("less", False), ("greater", True)])
def test_sort_down_a_column(name: str, reverse: bool) -> None:
    x = np.random.default_rng(1).integers(-5, 5, (9, 2)).astype(np.int32)
    body = (
        "x = s32[9,2] parameter(0)\n"
        f"ROOT z = s32[9,2] sort(x), dimensions={{0}}, to_apply={name}"
    )
    got = run(body, x, before=f"{LESS}\n{GREATER}")
    for column in range(2):
        expected = sorted(x[:, column].tolist(), reverse=reverse)
        assert got[:, column].tolist() == expected


def test_total_order_of_floats() -> None:
    before = LESS.replace("s32", "f32").replace("LT", "LT, type=TOTALORDER")
    x = [1.0, -0.0, 0.0, float("nan"), -1.0, float("-inf")]
    body = "x = f32[6] parameter(0)\nROOT z = f32[6] sort(x), dimensions={0}, to_apply=less"
    got = run(body, x, before=before)
    assert got[:5].tolist() == [float("-inf"), -1.0, 0.0, 0.0, 1.0]
    assert np.signbit(got[2])
    assert not np.signbit(got[3])
    assert np.isnan(got[5])


def test_a_comparator_that_is_not_total() -> None:
    """Unordered floats: compared with `less`, NaN is equal to everything."""
    before = LESS.replace("s32", "f32")
    x = [3.0, 1.0, 2.0]
    body = "x = f32[3] parameter(0)\nROOT z = f32[3] sort(x), dimensions={0}, to_apply=less"
    order = functools.cmp_to_key(lambda a, b: -1 if a < b else int(b < a))
    assert run(body, x, before=before).tolist() == sorted(x, key=order)


def test_top_k_breaks_ties_by_place() -> None:
    body = """
      x = f32[2,5] parameter(0)
      ROOT t = (f32[2,3], s32[2,3]) topk(x), k=3, largest=true"""
    values, places = run(body, [[1, 3, 3, 2, 0], [5, 4, 5, 4, 5]])
    assert values.tolist() == [[3, 3, 2], [5, 5, 5]]
    assert places.tolist() == [[1, 2, 3], [0, 2, 4]]


@pytest.mark.parametrize("length", [2, 5, 8, 13, 64, 101])
def test_sort_by_no_weak_order_still_orders_all_elements(length: int) -> None:
    """NaN is neither less nor greater: nothing may be lost or given twice."""
    less = LESS.replace("s32", "f32")
    chance = np.random.default_rng(length)
    x = chance.integers(0, 9, (4, length)).astype(np.float32)
    x[chance.random((4, length)) < 0.4] = np.nan
    body = (
        f"x = f32[4,{length}] parameter(0)\n"
        f"ROOT z = f32[4,{length}] sort(x), dimensions={{1}}, to_apply=less"
    )
    first, second = (run(body, x, before=less) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert np.array_equal(np.sort(first), np.sort(x), equal_nan=True)
