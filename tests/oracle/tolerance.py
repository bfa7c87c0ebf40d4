"""How far the evaluator's results may be from XLA's.

Integers must be equal, floats close to each other by the tolerance of their type.
Where a module magnifies rounding (a softmax of large numbers, a sine of one), no such
tolerance means anything: two right evaluations differ by any amount. There the module
is evaluated in double precision too, and the evaluator may be no farther from that
than XLA is.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

TOLERANCES: Final = {
    "f64": 1e-9, "f32": 1e-4, "c64": 1e-4, "bf16": 2e-2, "f16": 2e-3
}  # fmt: skip
"""Largest error allowed, relative to the largest magnitude of the array."""

AS_FAR: Final = 2.0
"""Two ways of rounding are at distances of one size, not at the same distance."""


def is_close(row: dict[str, Any]) -> bool:
    """Whether both results are equal, but for rounding."""
    return bool(row["error"] <= TOLERANCES.get(row["type"], 0))


def holds(row: dict[str, Any]) -> bool:
    """Whether the evaluator's result is as good as XLA's.

    `ours` and `theirs` are distances (root mean square over the array) from the
    result in double precision, if that was needed and can be had.
    """
    if is_close(row) or "ours" not in row:
        return is_close(row)
    return bool(row["ours"] <= AS_FAR * row["theirs"] < math.inf)


def distance(a: Any, exact: Any) -> float:
    """Root mean square of the differences; infinite for a NaN that does not belong."""
    exact = np.asarray(exact)
    a = np.asarray(a).astype(exact.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (a == exact) | (np.isnan(a) & np.isnan(exact))
        gap = np.where(same, 0, np.abs(a - exact))
        return float(np.nan_to_num(np.sqrt(np.mean(gap**2)), nan=np.inf))
