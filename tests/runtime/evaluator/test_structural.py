"""Opcodes that move data, against values by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator_support import run

M = [[1, 2, 3], [4, 5, 6]]

ROWS: list[tuple[str, str, list[Any], Any]] = [
    ("iota", "ROOT y = s32[2,3] iota(), iota_dimension=1", [], [[0, 1, 2], [0, 1, 2]]),
    (
        "broadcast",
        "x = s32[2] parameter(0)\nROOT y = s32[2,3] broadcast(x), dimensions={0}",
        [[7, 8]],
        [[7, 7, 7], [8, 8, 8]],
    ),
    (
        "broadcast-swapped",
        "x = s32[2,3] parameter(0)\nROOT y = s32[3,2] broadcast(x), dimensions={1,0}",
        [M],
        [[1, 4], [2, 5], [3, 6]],
    ),
    (
        "transpose",
        "x = s32[2,3] parameter(0)\nROOT y = s32[3,2] transpose(x), dimensions={1,0}",
        [M],
        [[1, 4], [2, 5], [3, 6]],
    ),
    (
        "reshape",
        "x = s32[2,3] parameter(0)\nROOT y = s32[3,2] reshape(x)",
        [M],
        [[1, 2], [3, 4], [5, 6]],
    ),
    (
        "reverse",
        "x = s32[2,3] parameter(0)\nROOT y = s32[2,3] reverse(x), dimensions={0,1}",
        [M],
        [[6, 5, 4], [3, 2, 1]],
    ),
    (
        "slice",
        "x = s32[6] parameter(0)\nROOT y = s32[2] slice(x), slice={[1:5:3]}",
        [[0, 1, 2, 3, 4, 5]],
        [1, 4],
    ),
    (
        "concatenate",
        "x = s32[2,3] parameter(0)\ny = s32[2,1] parameter(1)\nROOT z = s32[2,4] concatenate(x, y), dimensions={1}",
        [M, [[9], [8]]],
        [[1, 2, 3, 9], [4, 5, 6, 8]],
    ),
    (
        "pad-interior",
        "x = s32[3] parameter(0)\nv = s32[] constant(-1)\nROOT y = s32[8] pad(x, v), padding=1_2_1",
        [[1, 2, 3]],
        [-1, 1, -1, 2, -1, 3, -1, -1],
    ),
    (
        "pad-negative",
        "x = s32[4] parameter(0)\nv = s32[] constant(0)\nROOT y = s32[3] pad(x, v), padding=-2_1",
        [[1, 2, 3, 4]],
        [3, 4, 0],
    ),
    (
        "pad-negative-interior",
        "x = s32[3] parameter(0)\nv = s32[] constant(9)\nROOT y = s32[4] pad(x, v), padding=-1_-2_2",
        [[1, 2, 3]],
        [9, 9, 2, 9],
    ),
    (
        "pad-nothing-left",
        "x = s32[2] parameter(0)\nv = s32[] constant(9)\nROOT y = s32[1] pad(x, v), padding=-3_2",
        [[1, 2]],
        [9],
    ),
    (
        "dynamic-slice-clamps",
        "x = s32[5] parameter(0)\ni = s32[] parameter(1)\nROOT y = s32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}",
        [[0, 1, 2, 3, 4], 9],
        [2, 3, 4],
    ),
    (
        "dynamic-slice-negative",
        "x = s32[5] parameter(0)\ni = s32[] parameter(1)\nROOT y = s32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}",
        [[0, 1, 2, 3, 4], -2],
        [0, 1, 2],
    ),
    (
        "dynamic-slice-vector-index",
        "x = s32[2,3] parameter(0)\ni = s32[2] parameter(1)\nROOT y = s32[1,2] dynamic-slice(x, i), dynamic_slice_sizes={1,2}",
        [M, [1, 1]],
        [[5, 6]],
    ),
    (
        "dynamic-update-slice",
        "x = s32[5] parameter(0)\nu = s32[2] parameter(1)\ni = s32[] parameter(2)\nROOT y = s32[5] dynamic-update-slice(x, u, i)",
        [[0, 1, 2, 3, 4], [8, 9], 7],
        [0, 1, 2, 8, 9],
    ),
    (
        "get-dimension-size",
        "x = s32[2,3] parameter(0)\nROOT y = s32[] get-dimension-size(x), dimensions={1}",
        [M],
        3,
    ),
]


@pytest.mark.parametrize(
    ("body", "inputs", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_rows(body: str, inputs: list[Any], expected: Any) -> None:
    assert run(body, *inputs).tolist() == expected


def test_pad_everywhere_against_a_loop() -> None:
    chance = np.random.default_rng(0)
    for _ in range(60):
        size = int(chance.integers(1, 6))
        low, high = (int(v) for v in chance.integers(-4, 4, 2))
        interior = int(chance.integers(0, 3))
        length = size + (size - 1) * interior + low + high
        if length < 0:
            continue
        x = chance.integers(1, 9, size)
        expected = [0] * length
        for i, value in enumerate(x.tolist()):
            place = low + i * (interior + 1)
            if 0 <= place < length:
                expected[place] = value
        body = (
            f"x = s32[{size}] parameter(0)\nv = s32[] constant(0)\n"
            f"ROOT y = s32[{length}] pad(x, v), padding={low}_{high}_{interior}"
        )
        assert run(body, x).tolist() == expected


def test_tuples_and_barriers() -> None:
    body = """
      x = (s32[2], (f32[], pred[])) parameter(0)
      b = (s32[2], (f32[], pred[])) opt-barrier(x)
      inner = (f32[], pred[]) get-tuple-element(b), index=1
      p = pred[] get-tuple-element(inner), index=1
      ROOT t = (pred[], (f32[], pred[])) tuple(p, inner)"""
    flag, (number, again) = run(body, ([1, 2], (2.5, True)))
    assert (bool(flag), float(number), bool(again)) == (True, 2.5, True)
