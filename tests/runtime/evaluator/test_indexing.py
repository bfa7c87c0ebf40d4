"""Gather and scatter against element loops written from their definition."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from evaluator_support import ADD_S32, run

GATHERS: list[dict[str, Any]] = [
    {
        "operand": (5, 3), "indices": (4, 1), "out": (4, 3), "offset_dims": (1,),
        "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1,
        "slice_sizes": (1, 3),
    },
    {
        "operand": (5, 6), "indices": (2, 4), "out": (3, 4), "offset_dims": (0,),
        "collapsed_slice_dims": (1,), "start_index_map": (1, 0), "index_vector_dim": 0,
        "slice_sizes": (3, 1),
    },
    {
        "operand": (4, 5), "indices": (3,), "out": (2, 3), "offset_dims": (0,),
        "collapsed_slice_dims": (1,), "start_index_map": (1,), "index_vector_dim": 1,
        "slice_sizes": (2, 1),
    },
    {
        "operand": (2, 5, 3), "indices": (2, 4, 1), "out": (2, 4, 3),
        "offset_dims": (2,), "collapsed_slice_dims": (1,), "start_index_map": (1,),
        "operand_batching_dims": (0,), "start_indices_batching_dims": (0,),
        "index_vector_dim": 2, "slice_sizes": (1, 1, 3),
    },
]  # fmt: skip


def braces(values: Any) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def sizes(values: Any) -> str:
    return "[" + ",".join(map(str, values)) + "]"


def gather_by_loop(
    x: np.ndarray, indices: np.ndarray, row: dict[str, Any]
) -> np.ndarray:
    rank = x.ndim
    vector = row["index_vector_dim"]
    batching = row.get("operand_batching_dims", ())
    index_batching = row.get("start_indices_batching_dims", ())
    hidden = {*row["collapsed_slice_dims"], *batching}
    kept = [d for d in range(rank) if d not in hidden]
    batch_dims = [d for d in range(len(row["out"])) if d not in row["offset_dims"]]
    out = np.zeros(row["out"], dtype=x.dtype)
    for place in itertools.product(*map(range, row["out"])):
        batch = [place[d] for d in batch_dims]
        start = [0] * rank
        for k, d in enumerate(row["start_index_map"]):
            at = list(batch)
            if vector < indices.ndim:
                at.insert(vector, k)
            start[d] = int(indices[tuple(at)])
        for d, axis in zip(batching, index_batching, strict=True):
            start[d] = batch[axis - (axis > vector)]
        start = [
            min(max(s, 0), n - w)
            for s, n, w in zip(start, x.shape, row["slice_sizes"], strict=True)
        ]
        for d, offset in zip(kept, [place[d] for d in row["offset_dims"]], strict=True):
            start[d] += offset
        out[place] = x[tuple(start)]
    return out


@pytest.mark.parametrize("row", GATHERS, ids=range(len(GATHERS)))
def test_gather(row: dict[str, Any]) -> None:
    chance = np.random.default_rng(1)
    x = chance.integers(0, 100, row["operand"]).astype(np.int32)
    indices = chance.integers(-2, 8, row["indices"]).astype(np.int32)
    named = ["offset_dims", "collapsed_slice_dims", "start_index_map", "slice_sizes"]
    named += ["operand_batching_dims", "start_indices_batching_dims"]
    attributes = ", ".join(f"{n}={braces(row[n])}" for n in named if n in row)
    body = (
        f"x = s32{sizes(row['operand'])} parameter(0)\n"
        f"i = s32{sizes(row['indices'])} parameter(1)\n"
        f"ROOT y = s32{sizes(row['out'])} gather(x, i), {attributes}, "
        f"index_vector_dim={row['index_vector_dim']}"
    )
    expected = gather_by_loop(x, indices, row)
    np.testing.assert_array_equal(run(body, x, indices), expected)


SCATTERS: list[dict[str, Any]] = [
    {
        "operand": (5, 3), "indices": (6, 1), "updates": (6, 3),
        "update_window_dims": (1,), "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1,
    },
    {
        "operand": (7,), "indices": (9,), "updates": (2, 9),
        "update_window_dims": (0,), "inserted_window_dims": (),
        "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1,
    },
    {
        "operand": (4, 5), "indices": (2, 6), "updates": (6,),
        "update_window_dims": (), "inserted_window_dims": (0, 1),
        "scatter_dims_to_operand_dims": (1, 0), "index_vector_dim": 0,
    },
]  # fmt: skip


def scatter_by_loop(
    x: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    row: dict[str, Any],
    op: str,
) -> np.ndarray:
    out = x.copy()
    rank = x.ndim
    kept = [d for d in range(rank) if d not in row["inserted_window_dims"]]
    window = row["update_window_dims"]
    batch_dims = [d for d in range(updates.ndim) if d not in window]
    extent = [1] * rank
    for d, axis in zip(kept, window, strict=True):
        extent[d] = updates.shape[axis]
    order = [*batch_dims, *window]
    for in_order in itertools.product(*(range(updates.shape[d]) for d in order)):
        place = tuple(in_order[order.index(d)] for d in range(updates.ndim))
        start = [0] * rank
        for k, d in enumerate(row["scatter_dims_to_operand_dims"]):
            at = [place[b] for b in batch_dims]
            if row["index_vector_dim"] < indices.ndim:
                at.insert(row["index_vector_dim"], k)
            start[d] = int(indices[tuple(at)])
        ends = zip(start, extent, x.shape, strict=True)
        if any(s < 0 or s + e > n for s, e, n in ends):
            continue
        for d, axis in zip(kept, window, strict=True):
            start[d] += place[axis]
        at = tuple(start)
        out[at] = (
            out[at] * 3 + updates[place] if op == "mix" else out[at] + updates[place]
        )
    return out


MIX = """mix {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  three = s32[] constant(3)
  c = s32[] multiply(a, three)
  ROOT d = s32[] add(c, b)
}"""


@pytest.mark.parametrize("op", ["add", "mix"])
@pytest.mark.parametrize("row", SCATTERS, ids=range(len(SCATTERS)))
def test_scatter(row: dict[str, Any], op: str) -> None:
    """`mix` depends on the order of updates to one place: it must be theirs."""
    chance = np.random.default_rng(2)
    x = chance.integers(0, 9, row["operand"]).astype(np.int32)
    indices = chance.integers(-1, 7, row["indices"]).astype(np.int32)
    updates = chance.integers(0, 9, row["updates"]).astype(np.int32)
    named = "update_window_dims inserted_window_dims scatter_dims_to_operand_dims"
    attributes = ", ".join(f"{n}={braces(row[n])}" for n in named.split())
    body = (
        f"x = s32{sizes(row['operand'])} parameter(0)\n"
        f"i = s32{sizes(row['indices'])} parameter(1)\n"
        f"u = s32{sizes(row['updates'])} parameter(2)\n"
        f"ROOT y = s32{sizes(row['operand'])} scatter(x, i, u), {attributes}, "
        f"index_vector_dim={row['index_vector_dim']}, to_apply={op}"
    )
    expected = scatter_by_loop(x, indices, updates, row, op)
    got = run(body, x, indices, updates, before=f"{ADD_S32}\n{MIX}")
    np.testing.assert_array_equal(got, expected)
