"""`python -m oracle.compare_module FILE`: errors of the evaluator against XLA, as JSON."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import msa
from msa.hlo.shape import Shape
from msa.runtime.evaluator.values import leaves_of
from msa.runtime.proving.inputs import elided_contents, random_inputs
from oracle.portable import fill_constants, manual, portable
from oracle.tolerance import distance, is_close
from oracle.wider import WIDER, can_widen, wider
from oracle.xla import run_text

SCALES = {"cond_switch": 0.02, "gpt36_train": 0.02, "nbody": 1000}
"""Inputs that keep a module away from chaos.

Weights near one make attention pick one place out of many, and rounding decides which.
"""

TOO_LARGE_TO_WIDEN = {"gpt36_train"}
"""In double precision it takes more than 17 GB."""


def main(path: Path) -> None:
    name = path.name.split(".")[0]
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    module = fill_constants(msa.parse(text), elided_contents(0))
    count = module.num_partitions * module.replica_count
    inputs = [scaled(random_inputs(module, d), SCALES.get(name)) for d in range(count)]
    mine = msa.execute(module, inputs, per_device=True)
    plain = portable(module)
    if count > 1:
        manual(plain)
    theirs = run_text(plain.to_text(), module, inputs, devices=count)
    rows = compare(module.entry.root.shape, mine, theirs)
    widens = name not in TOO_LARGE_TO_WIDEN and can_widen(plain)
    if widens and not all(map(is_close, rows)):
        exact = msa.execute(wider(plain), inputs, per_device=True)
        add_distances(rows, module.entry.root.shape, mine, theirs, exact)
    sys.stdout.write(json.dumps(rows) + "\n")


def compare(shape: Shape, mine: list[Any], theirs: list[Any]) -> list[dict[str, Any]]:
    """A row for each output of each device."""
    rows = []
    for device in range(len(mine)):
        for (index, leaf, a), b in zip(
            leaves_of(shape, mine[device]), theirs[device], strict=True
        ):
            error = difference(leaf, a, np.asarray(b))
            kind = leaf.element_type.name
            rows.append({"output": index, "type": kind, "error": error})
    return rows


def add_distances(
    rows: list[dict[str, Any]],
    shape: Shape,
    mine: list[Any],
    theirs: list[Any],
    exact: list[Any],
) -> None:
    """How far both results are from the exact one, for floats (see `tolerance`)."""
    remaining = iter(rows)
    for device in range(len(mine)):
        for (_, leaf, a), b, (_, _, e) in zip(
            leaves_of(shape, mine[device]),
            theirs[device],
            leaves_of(shape, exact[device]),
            strict=True,
        ):
            row = next(remaining)
            if leaf.element_type.name in WIDER:
                row["ours"] = distance(a, e)
                row["theirs"] = distance(b, e)


def scaled(inputs: list[Any], scale: float | None) -> list[Any]:
    if scale is None:
        return inputs
    return [(x * scale).astype(x.dtype) if x.dtype.kind == "f" else x for x in inputs]


def difference(shape: Shape, a: np.ndarray, b: np.ndarray) -> float:
    """Integers: how many differ. Floats: error relative to the largest magnitude.

    Eigenvectors (columns of a square matrix) may come with either sign.
    """
    kind = shape.element_type
    if kind.is_integral or kind.name == "pred":
        return float((a != b.astype(a.dtype)).sum())
    b = b.astype(a.dtype)
    if (np.isnan(a) != np.isnan(b)).any():
        return float("inf")
    finite = np.isfinite(a) & np.isfinite(b)
    if (a[~finite & ~np.isnan(a)] != b[~finite & ~np.isnan(a)]).any():
        return float("inf")
    a, b = np.where(finite, a, 0), np.where(finite, b, 0)
    scale = float(np.abs(b).max(initial=0)) or 1.0
    error = float(np.abs(a - b).max(initial=0)) / scale
    if a.ndim == 2 and a.shape[0] == a.shape[1] and error > 1:
        signs = np.sign((a * b).sum(axis=0))
        error = float(np.abs(a * signs - b).max()) / scale
    return error


if __name__ == "__main__":
    main(Path(sys.argv[1]))
