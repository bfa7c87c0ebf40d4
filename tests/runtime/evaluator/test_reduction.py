"""Reductions and windows against loops."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from evaluator_support import ADD_S32, run
from msa.hlo.window import Window, WindowDimension

MAX_S32 = (
    "max { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] maximum(a, b) }"
)
ARGMAX = """argmax {
  v = s32[] parameter(0)
  i = s32[] parameter(1)
  w = s32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(v, w), direction=GT
  eq = pred[] compare(v, w), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  left = pred[] or(gt, tie)
  best = s32[] select(left, v, w)
  at = s32[] select(left, i, j)
  ROOT t = (s32[], s32[]) tuple(best, at)
}"""
LAST = "last { a = s32[] parameter(0) ROOT b = s32[] parameter(1) }"


def test_reduce_all_and_some() -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for axes, shape in (((0, 2), "[3]"), ((0, 1, 2), "[]"), ((), "[2,3,4]")):
        body = (
            "x = s32[2,3,4] parameter(0)\nz = s32[] constant(100)\n"
            f"ROOT y = s32{shape} reduce(x, z), dimensions="
            f"{{{','.join(map(str, axes))}}}, to_apply=add"
        )
        got = run(body, x, before=ADD_S32)
        np.testing.assert_array_equal(got, x.sum(axis=axes, dtype=np.int32) + 100)


def test_reduce_wraps_in_its_own_type() -> None:
    before = ADD_S32.replace("s32", "s8")
    body = (
        "x = s8[3] parameter(0)\nz = s8[] constant(0)\n"
        "ROOT y = s8[] reduce(x, z), dimensions={0}, to_apply=add"
    )
    assert int(run(body, [100, 100, 100], before=before)) == 300 - 256


def test_reduce_of_several_operands() -> None:
    x = np.array([[3, 9, 9, 1], [7, 7, 2, 0], [5, 6, 8, 8]], dtype=np.int32)
    body = """
      x = s32[3,4] parameter(0)
      i = s32[3,4] iota(), iota_dimension=1
      low = s32[] constant(-1000)
      top = s32[] constant(99)
      ROOT r = (s32[3], s32[3]) reduce(x, i, low, top), dimensions={1}, to_apply=argmax"""
    values, places = run(body, x, before=ARGMAX)
    assert values.tolist() == [9, 7, 8]
    assert places.tolist() == [1, 0, 2]


@pytest.mark.parametrize("length", [0, 1, 2, 5, 8, 13])
def test_reduce_keeps_the_order_of_elements(length: int) -> None:
    body = (
        f"x = s32[{length}] parameter(0)\nz = s32[] constant(7)\n"
        "ROOT y = s32[] reduce(x, z), dimensions={0}, to_apply=last"
    )
    x = np.arange(length, dtype=np.int32)
    assert int(run(body, x, before=LAST)) == (length - 1 if length else 7)


def test_map_with_a_nested_call() -> None:
    before = """
      twice { v = s32[] parameter(0) ROOT w = s32[] add(v, v) }
      f { a = s32[] parameter(0) b = s32[] parameter(1)
          c = s32[] call(a), to_apply=twice ROOT d = s32[] multiply(c, b) }"""
    body = (
        "x = s32[3] parameter(0)\ny = s32[3] parameter(1)\n"
        "ROOT z = s32[3] map(x, y), dimensions={0}, to_apply=f"
    )
    assert run(body, [1, 2, 3], [4, 5, 6], before=before).tolist() == [8, 20, 36]


def test_loop_inside_a_reducer() -> None:
    before = """
      more { s = (s32[], s32[]) parameter(0) n = s32[] get-tuple-element(s), index=0
             z = s32[] constant(0) ROOT p = pred[] compare(n, z), direction=GT }
      step { s = (s32[], s32[]) parameter(0) n = s32[] get-tuple-element(s), index=0
             v = s32[] get-tuple-element(s), index=1 one = s32[] constant(1)
             m = s32[] subtract(n, one) w = s32[] add(v, v)
             ROOT t = (s32[], s32[]) tuple(m, w) }
      f { a = s32[] parameter(0) s = (s32[], s32[]) tuple(a, a)
          w = (s32[], s32[]) while(s), condition=more, body=step
          ROOT v = s32[] get-tuple-element(w), index=1 }"""
    body = "x = s32[3] parameter(0)\nROOT y = s32[3] map(x), dimensions={0}, to_apply=f"
    assert run(body, [1, 2, 3], before=before).tolist() == [2, 8, 24]


# -- windows ---------------------------------------------------------------------------

WINDOWS = [
    WindowDimension(3),
    WindowDimension(3, 2),
    WindowDimension(3, 1, 1, 1),
    WindowDimension(2, 2, 1, 0, 2),
    WindowDimension(3, 1, 2, 1, 1, 2),
    WindowDimension(7, 1, 6, 0),
    WindowDimension(11, 2, 5, 5),
    WindowDimension(2, 3, 0, 2, 3, 3),
    WindowDimension(2, 1, -1, 0),
]


def covered(window: WindowDimension, size: int) -> list[list[int]]:
    """Elements of the operand in each window, padding and holes left out."""
    length = (size - 1) * window.base_dilation + 1
    length += window.padding_low + window.padding_high
    span = (window.size - 1) * window.window_dilation + 1
    count = 0 if length < span else (length - span) // window.stride + 1
    rows = []
    for i in range(count):
        row = []
        for k in range(window.size):
            place = i * window.stride + k * window.window_dilation - window.padding_low
            element, rest = divmod(place, window.base_dilation)
            if not rest and 0 <= element < size:
                row.append(element)
        rows.append(row)
    return rows


@pytest.mark.parametrize("init", [0, 5])
@pytest.mark.parametrize("op", ["add", "max"])
@pytest.mark.parametrize("d", WINDOWS, ids=str)
def test_reduce_window(d: WindowDimension, op: str, init: int) -> None:
    chance = np.random.default_rng(4)
    x = chance.integers(-9, 9, (9, 4)).astype(np.int32)
    window = Window((d, WindowDimension(2)))
    rows, columns = covered(d, 9), covered(WindowDimension(2), 4)
    expected: Any = []
    for row in rows:
        line = []
        for column in columns:
            values = [int(x[i, j]) for i, j in itertools.product(row, column)]
            line.append(sum(values, init) if op == "add" else max([init, *values]))
        expected.append(line)
    body = (
        f"x = s32[9,4] parameter(0)\nz = s32[] constant({init})\n"
        f"ROOT y = s32[{len(rows)},3] reduce-window(x, z), window={window}, to_apply={op}"
    )
    got = run(body, x, before=f"{ADD_S32}\n{MAX_S32}")
    assert got.tolist() == expected


def test_select_and_scatter() -> None:
    before = (
        """
      ge { a = s32[] parameter(0) b = s32[] parameter(1)
           ROOT c = pred[] compare(a, b), direction=GE }"""
        + ADD_S32
    )
    body = """
      x = s32[2,6] parameter(0)
      s = s32[2,3] parameter(1)
      z = s32[] constant(0)
      ROOT y = s32[2,6] select-and-scatter(x, s, z), window={size=1x3 stride=1x2 pad=0_0x0_1},
        select=ge, scatter=add"""
    x = [[7, 2, 5, 3, 10, 10], [1, 9, 9, 0, 2, 4]]
    s = [[2, 6, 1], [3, 5, 8]]
    # windows cover columns 0-2, 2-4, 4-5; the first of equal maxima wins
    expected = [[2, 0, 0, 0, 6 + 1, 0], [0, 3, 5, 0, 0, 8]]
    assert run(body, x, s, before=before).tolist() == expected


@pytest.mark.parametrize("length", [0, 1, 3])
@pytest.mark.parametrize("backwards", [False, True])
def test_scan_hands_the_carry_on(length: int, backwards: bool) -> None:
    step = (
        "step { x = s32[] parameter(0) c = s32[] parameter(1) s = s32[] add(x, c)\n"
        "ROOT t = (s32[], s32[]) tuple(s, s) }"
    )
    body = f"""
      p = s32[{length}] parameter(0)
      i = s32[] constant(10)
      ROOT s = (s32[{length}], s32[]) scan(p, i), dimensions={{0}}, num_carries=1,
        is_reverse={str(backwards).lower()}, to_apply=step"""
    given = list(range(1, length + 1))
    order = given[::-1] if backwards else given
    sums = list(itertools.accumulate(order, initial=10))
    outs, carry = run(body, np.array(given, np.int32), before=step)
    assert outs.tolist() == (sums[1:][::-1] if backwards else sums[1:])
    assert carry == sums[-1]


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize(
    ("axes", "moved"), [((0,), (0, 1)), ((1,), (1, 0)), ((0, 1), (0, 1))]
)
def test_long_sums_are_rounded_once(
    kind: str, axes: tuple[int, ...], moved: tuple[int, int]
) -> None:
    """Adding one after the other in the type itself would lose digits."""
    dtype = np.dtype({"f16": np.float16, "f32": np.float32}[kind])
    rows = np.random.default_rng(7).uniform(0, 1, (40_000, 3)) / 4096
    x = rows.astype(dtype).transpose(moved)
    sizes = [n for d, n in enumerate(x.shape) if d not in axes]
    add = f"add {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1)"
    body = (
        f"x = {kind}[{x.shape[0]},{x.shape[1]}] parameter(0)\n"
        f"z = {kind}[] constant(0)\n"
        f"ROOT y = {kind}[{','.join(map(str, sizes))}] reduce(x, z), dimensions="
        f"{{{','.join(map(str, axes))}}}, to_apply=add"
    )
    got = run(body, x, before=f"{add} ROOT c = {kind}[] add(a, b) }}")
    lines = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *sizes)
    columns = lines.reshape(len(lines), -1).T
    exact = [dtype.type(math.fsum(map(float, column))) for column in columns]
    np.testing.assert_array_equal(np.reshape(got, -1), np.array(exact, dtype=dtype))
