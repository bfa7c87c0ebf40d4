"""Dynamic slices and updates, gather and scatter."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.runtime.evaluator.applied import Applied, applied
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported


def clamped_starts(
    starts: tuple[Any, ...], sizes: tuple[int, ...], limits: tuple[int, ...]
) -> tuple[int, ...]:
    """Start indices moved so that the slice lies inside the array.

    `starts` is one scalar per dimension or a single rank-1 array.
    """
    if len(starts) == 1 and np.ndim(starts[0]) == 1:
        starts = tuple(starts[0])
    return tuple(
        min(max(int(start), 0), limit - size)
        for start, size, limit in zip(starts, sizes, limits, strict=True)
    )


@kernel("dynamic-slice")
def _dynamic_slice(instruction: Instruction, context: Context) -> Kernel:
    del context
    sizes = instruction.attributes["dynamic_slice_sizes"]
    limits = instruction.operands[0].shape.dimensions

    def run(x: Any, *starts: Any) -> Array:
        places = clamped_starts(starts, sizes, limits)
        cut = tuple(slice(s, s + n) for s, n in zip(places, sizes, strict=True))
        return np.asarray(x)[cut]

    return run


@kernel("dynamic-update-slice")
def _dynamic_update_slice(instruction: Instruction, context: Context) -> Kernel:
    del context
    limits = instruction.operands[0].shape.dimensions
    sizes = instruction.operands[1].shape.dimensions

    def run(x: Any, update: Any, *starts: Any) -> Array:
        places = clamped_starts(starts, sizes, limits)
        out = np.array(x)
        cut = tuple(slice(s, s + n) for s, n in zip(places, sizes, strict=True))
        out[cut] = update
        return out

    return run


# -- gather --------------------------------------------------------------------


def _batched_indices(
    indices: Array,
    vector_dim: int,
    index_map: tuple[int, ...],
    operand_batching: tuple[int, ...],
    indices_batching: tuple[int, ...],
    rank: int,
) -> tuple[Array, tuple[int, ...]]:
    """Start index per operand dimension, `int64[batch, rank]`, and the batch sizes."""
    if vector_dim == indices.ndim:
        indices = indices[..., None]
    indices = np.moveaxis(indices, vector_dim, -1)
    batch = indices.shape[:-1]
    starts = np.zeros((*batch, rank), dtype=np.int64)
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**62))
    for place, dimension in enumerate(index_map):
        starts[..., dimension] = indices[..., place]
    for dimension, axis in zip(operand_batching, indices_batching, strict=True):
        # Numbering of batch axes skips the index vector.
        axis -= axis > vector_dim
        sizes = [1] * len(batch)
        sizes[axis] = batch[axis]
        starts[..., dimension] = np.arange(batch[axis]).reshape(sizes)
    return starts.reshape(math.prod(batch), rank), batch


@kernel("gather")
def _gather(instruction: Instruction, context: Context) -> Kernel:
    del context
    a = instruction.attributes
    operand = instruction.operands[0].shape.dimensions
    rank = len(operand)
    sizes = a["slice_sizes"]
    batching = a.get("operand_batching_dims", ())
    collapsed = {*a["collapsed_slice_dims"], *batching}
    kept = [d for d in range(rank) if d not in collapsed]
    offset_dims = a["offset_dims"]
    out_rank = len(instruction.shape.dimensions)
    batch_dims = [d for d in range(out_rank) if d not in offset_dims]
    limit = np.array(operand, dtype=np.int64) - np.array(sizes, dtype=np.int64)

    def run(x: Any, indices: Any) -> Array:
        starts, batch = _batched_indices(
            np.asarray(indices),
            a["index_vector_dim"],
            a["start_index_map"],
            batching,
            a.get("start_indices_batching_dims", ()),
            rank,
        )
        starts = np.clip(starts, 0, limit)
        # One open mesh: batch first, then the kept dimensions of the slice.
        mesh: list[Array] = []
        for d in range(rank):
            index = starts[:, d].reshape((-1,) + (1,) * len(kept))
            if d in kept:
                window = [1] * (len(kept) + 1)
                window[1 + kept.index(d)] = sizes[d]
                index = index + np.arange(sizes[d]).reshape(window)
            mesh.append(index)
        picked = np.asarray(x)[tuple(mesh)] if rank else np.asarray(x)[None]
        if not rank:
            picked = np.broadcast_to(picked, (len(starts),))
        picked = picked.reshape((*batch, *(sizes[d] for d in kept)))
        order = np.argsort([*batch_dims, *offset_dims], kind="stable")
        return picked.transpose(order)

    return run


# -- scatter -------------------------------------------------------------------


@kernel("scatter")
def _scatter(instruction: Instruction, context: Context) -> Kernel:
    a = instruction.attributes
    count = (len(instruction.operands) - 1) // 2
    operand = instruction.operands[0].shape.dimensions
    rank = len(operand)
    batching = a.get("input_batching_dims", ())
    skipped = {*a["inserted_window_dims"], *batching}
    kept = [d for d in range(rank) if d not in skipped]
    window_dims = a["update_window_dims"]
    updates = instruction.operands[count + 1].shape.dimensions
    scatter_dims = [d for d in range(len(updates)) if d not in window_dims]
    windows = tuple(updates[d] for d in window_dims)
    function = applied(instruction.called_computations[0], context)
    strides = [math.prod(operand[d + 1 :]) for d in range(rank)]
    extent = np.ones(rank, dtype=np.int64)
    for d, size in zip(kept, windows, strict=True):
        extent[d] = size
    limit = np.array(operand, dtype=np.int64) - extent
    if len(kept) != len(windows):
        raise unsupported(instruction, "window dimensions do not fit the operand")
    offsets = np.zeros(windows, dtype=np.int64)
    for axis, d in enumerate(kept):
        sizes = [1] * len(windows)
        sizes[axis] = windows[axis]
        offsets = offsets + np.arange(windows[axis]).reshape(sizes) * strides[d]

    def run(*operands: Any) -> Any:
        starts, _ = _batched_indices(
            np.asarray(operands[count]),
            a["index_vector_dim"],
            a["scatter_dims_to_operand_dims"],
            batching,
            a.get("scatter_indices_batching_dims", ()),
            rank,
        )
        inside = ((starts >= 0) & (starts <= limit)).all(axis=1)
        base = starts[inside] @ np.array(strides, dtype=np.int64)
        targets = (base[:, None] + offsets.reshape(1, -1)).reshape(-1)
        outs = [np.array(x, order="C").reshape(-1) for x in operands[:count]]
        new = []
        for update in operands[count + 1 :]:
            rows = np.transpose(update, [*scatter_dims, *window_dims])
            rows = rows.reshape(len(starts), math.prod(windows))
            new.append(rows[inside].reshape(-1))
        apply_at(function, outs, targets, new)
        shaped = [out.reshape(operand) for out in outs]
        return shaped[0] if count == 1 else tuple(shaped)

    return run


def apply_at(
    function: Applied, outs: list[Array], targets: Array, new: list[Array]
) -> None:
    """`out[t] = function(out[t], new)` for each target in order, repeats included.

    Repeated targets are applied in rounds: the n-th update of every place at once.
    """
    if not len(targets):
        return
    if len(outs) == 1 and _combine_repeats(function, outs[0], targets, new[0]):
        return
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    fresh = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    first = np.maximum.accumulate(np.where(fresh, np.arange(len(ordered)), 0))
    turn = np.arange(len(ordered)) - first
    for n in range(int(turn.max()) + 1):
        chosen = order[turn == n]
        places = targets[chosen]
        results = function(*(out[places] for out in outs), *(u[chosen] for u in new))
        for out, result in zip(outs, results, strict=True):
            out[places] = result


def _combine_repeats(function: Applied, out: Array, targets: Array, new: Array) -> bool:
    """Fast paths for one output: overwrite, and exact or native accumulation."""
    if function.takes == 1:
        # numpy keeps the last of repeated assignments, as updates in order do.
        out[targets] = new
        return True
    accumulate: Callable[..., Any] | None = getattr(function.ufunc, "at", None)
    if accumulate is None or function.rounds:
        return False
    accumulate(out, targets, new)
    return True
