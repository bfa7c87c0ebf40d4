"""Dot products and convolutions against einsum and loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from evaluator_support import run

DOTS = [
    ((3, 4), (4, 5), "ij,jk->ik", "", "1", "", "0"),
    ((2, 3, 4), (2, 5, 4), "bij,bkj->bik", "0", "2", "0", "2"),
    ((4, 2, 3), (5, 3, 2), "kab,jba->kj", "", "1,2", "", "2,1"),
    ((3,), (3,), "i,i->", "", "0", "", "0"),
    ((2, 3), (4,), "ij,k->ijk", "", "", "", ""),
]


@pytest.mark.parametrize("kind", ["f64", "s32", "s8", "pred"])
@pytest.mark.parametrize("row", DOTS, ids=[r[2] for r in DOTS])
def test_dot(row: Any, kind: str) -> None:
    left, right, formula, lb, lc, rb, rc = row
    chance = np.random.default_rng(0)
    a, b = chance.integers(-5, 6, left), chance.integers(-5, 6, right)
    expected = np.einsum(formula, a, b)
    if kind == "pred":
        a, b = a > 2, b > 2
        expected = np.einsum(formula, a.astype(int), b.astype(int)) > 0
    if kind == "s8":
        expected = expected.astype(np.int8)
    shapes = [
        f"{kind}{list(s)}".replace(" ", "") for s in (left, right, expected.shape)
    ]
    body = (
        f"x = {shapes[0]} parameter(0)\ny = {shapes[1]} parameter(1)\n"
        f"ROOT z = {shapes[2]} dot(x, y), lhs_batch_dims={{{lb}}}, "
        f"lhs_contracting_dims={{{lc}}}, rhs_batch_dims={{{rb}}}, "
        f"rhs_contracting_dims={{{rc}}}"
    )
    np.testing.assert_array_equal(run(body, a, b), expected)


def test_large_integers_wrap_exactly() -> None:
    a = np.full((1, 4), 2**31 - 1, dtype=np.int32)
    b = np.full((4, 1), 2**31 - 1, dtype=np.int32)
    body = (
        "x = s32[1,4] parameter(0)\ny = s32[4,1] parameter(1)\n"
        "ROOT z = s32[1,1] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    expected = (4 * (2**31 - 1) ** 2 + 2**31) % 2**32 - 2**31
    assert int(run(body, a, b)[0, 0]) == expected


CONVOLUTIONS: list[dict[str, Any]] = [
    {"x": (2, 5, 3), "w": (3, 3, 4), "labels": "b0f_0io->b0f", "window": "size=3"},
    {
        "x": (2, 7, 3), "w": (3, 3, 4), "labels": "b0f_0io->b0f",
        "window": "size=3 stride=2 pad=1_2 rhs_dilate=2",
    },
    {
        "x": (2, 3, 5, 6), "w": (4, 3, 3, 2), "labels": "bf01_oi01->bf01",
        "window": "size=3x2 pad=1_1x0_1 lhs_dilate=2x1",
    },
    {
        "x": (2, 3, 5, 6), "w": (4, 3, 3, 2), "labels": "bf01_oi01->01bf",
        "window": "size=3x2 rhs_reversal=1x0",
    },
    {
        "x": (2, 6, 8), "w": (3, 4, 6), "labels": "b0f_0io->b0f",
        "window": "size=3 pad=1_1", "groups": 2,
    },
    {
        "x": (6, 5, 4), "w": (3, 4, 6), "labels": "b0f_0io->b0f",
        "window": "size=3", "batch_groups": 3,
    },
    {"x": (2, 9, 3), "w": (8, 3, 4), "labels": "b0f_0io->b0f", "window": "size=8"},
    {"x": (2, 3), "w": (3, 4), "labels": "bf_io->bf", "window": ""},
]  # fmt: skip


def convolve_by_loop(x: np.ndarray, w: np.ndarray, body: str) -> np.ndarray:
    """From the definition, one multiplication at a time."""
    from evaluator_support import parse

    root = parse(body).entry.root
    a = root.attributes
    labels, window = a["dim_labels"], a.get("window")
    dims = window.dimensions if window else ()
    groups = a.get("feature_group_count", 1)
    batch_groups = a.get("batch_group_count", 1)
    out = np.zeros(root.shape.dimensions, dtype=x.dtype)
    features = w.shape[labels.kernel_output_feature]
    batches = x.shape[labels.input_batch] // batch_groups
    inputs = w.shape[labels.kernel_input_feature]
    for place in itertools.product(*map(range, out.shape)):
        b, o = place[labels.output_batch], place[labels.output_feature]
        group = o // (features // max(groups, batch_groups))
        for i in range(inputs):
            for taps in itertools.product(*(range(d.size) for d in dims)):
                at = [0] * x.ndim
                at[labels.input_batch] = b + (
                    group * batches if batch_groups > 1 else 0
                )
                at[labels.input_feature] = i + (group * inputs if groups > 1 else 0)
                kernel = [0] * w.ndim
                kernel[labels.kernel_output_feature] = o
                kernel[labels.kernel_input_feature] = i
                inside = True
                for n, (tap, d) in enumerate(zip(taps, dims, strict=True)):
                    position = place[labels.output_spatial[n]] * d.stride
                    position += tap * d.window_dilation - d.padding_low
                    element, rest = divmod(position, d.base_dilation)
                    size = x.shape[labels.input_spatial[n]]
                    inside = inside and not rest and 0 <= element < size
                    at[labels.input_spatial[n]] = element
                    place_in_kernel = d.size - 1 - tap if d.window_reversal else tap
                    kernel[labels.kernel_spatial[n]] = place_in_kernel
                if inside:
                    out[place] += x[tuple(at)] * w[tuple(kernel)]
    return out


@pytest.mark.parametrize("row", CONVOLUTIONS, ids=range(len(CONVOLUTIONS)))
def test_convolution(row: dict[str, Any]) -> None:
    chance = np.random.default_rng(6)
    x = chance.integers(-4, 5, row["x"]).astype(np.int32)
    w = chance.integers(-4, 5, row["w"]).astype(np.int32)
    extra = ""
    if "groups" in row:
        extra += f", feature_group_count={row['groups']}"
    if "batch_groups" in row:
        extra += f", batch_group_count={row['batch_groups']}"
    window = f"window={{{row['window']}}}, " if row["window"] else ""
    body = (
        f"x = s32{list(row['x'])} parameter(0)\ny = s32{list(row['w'])} parameter(1)\n"
        f"ROOT z = convolution(x, y), {window}dim_labels={row['labels']}{extra}"
    ).replace(", ", ",")
    np.testing.assert_array_equal(run(body, x, w), convolve_by_loop(x, w, body))
