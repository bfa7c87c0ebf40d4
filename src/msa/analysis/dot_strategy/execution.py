"""Executing a tiling in numpy, tile by tile, counting what it loads and stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msa.analysis.dot_strategy.gemv import GemvPlan, Kernel, Traffic
from msa.errors import OptionsError
from msa.hlo.arguments import expect

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class GemvRun:
    """A result and the bytes that it took.

    Attributes:
        result: m elements.
        traffic: counted while running.
        loads: per element of the matrix, how often it was loaded.

    >>> from msa.analysis.dot_strategy import plan_gemv
    >>> run = run_gemv(np.eye(2), np.ones(2), None, plan_gemv(2, 2, 1, element_bytes=8))
    >>> run.traffic.matrix_read, int(run.loads.max())
    (32, 1)
    """

    result: Array
    traffic: Traffic
    loads: NDArray[np.int64]


def run_gemv(
    matrix: Array, vector: Array, addend: Array | None, plan: GemvPlan
) -> GemvRun:
    """`matrix @ vector + addend` by the plan's tiles.

    Args:
        matrix: m × k elements.
        vector: k elements.
        addend: m elements, or None.
        plan: tiles and tasks.

    Raises:
        HloError: that is no plan.
        OptionsError: sizes do not fit the plan, or these are no numbers.

    O(m k / tile) numpy operations.

    >>> from msa.analysis.dot_strategy import plan_gemv
    >>> a = np.arange(6.0).reshape(2, 3)
    >>> run_gemv(a, np.ones(3), None, plan_gemv(2, 3, 1, element_bytes=8)).result
    array([ 3., 12.])
    """
    plan = expect(plan, GemvPlan, where="run_gemv", what="a GemvPlan")
    matrix, vector = _numbers(matrix, "matrix"), _numbers(vector, "vector")
    if addend is not None:
        addend = _numbers(addend, "addend")
    if matrix.shape != (plan.m, plan.k) or vector.shape != (plan.k,):
        raise OptionsError(
            f"the plan is for {plan.m} × {plan.k}, not {matrix.shape} by {vector.shape}"
        )
    if addend is not None and addend.shape != (plan.m,):
        raise OptionsError(f"an addend has {plan.m} elements, not {addend.shape}")
    run = _Run(matrix, vector, addend, plan)
    for start, end in plan.task_rows:
        if plan.kernel is Kernel.COLUMN:
            run.columns(start, end)
        else:
            run.rows(start, end)
    size = plan.element_bytes
    moved = Traffic(*(count * size for count in run.counts))
    return GemvRun(run.result, moved, run.loads)


def _numbers(values: Any, what: str) -> Array:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise OptionsError(f"the {what} is no array: {error}") from None
    if array.dtype.kind in "OSUMm" or array.dtype.fields is not None:
        raise OptionsError(f"the {what} is an array of numbers, not of {array.dtype}")
    return array


@dataclass(slots=True, eq=False)
class _Run:
    """Counts: matrix, vector, addend, result read, result written (elements)."""

    matrix: Array
    vector: Array
    addend: Array | None
    plan: GemvPlan
    kind: np.dtype[Any] = field(init=False)
    result: Array = field(init=False)
    loads: NDArray[np.int64] = field(init=False)
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])

    def __post_init__(self) -> None:
        given = [x for x in (self.matrix, self.vector, self.addend) if x is not None]
        self.kind = np.result_type(*given)
        self.result = np.zeros(self.plan.m, self.kind)
        self.loads = np.zeros(self.matrix.shape, np.int64)

    def _load(self, rows: slice, columns: slice) -> Array:
        tile = self.matrix[rows, columns]
        self.loads[rows, columns] += 1
        self.counts[0] += tile.size
        return tile

    def _load_vector(self, columns: slice) -> Array:
        part = self.vector[columns]
        self.counts[1] += part.size
        return part

    def _initial(self, rows: slice) -> Array:
        if self.addend is None:
            return np.zeros(rows.stop - rows.start, self.kind)
        self.counts[2] += rows.stop - rows.start
        return self.addend[rows].astype(self.kind)

    def _store(self, rows: slice, values: Array) -> None:
        self.result[rows] = values
        self.counts[4] += rows.stop - rows.start

    def columns(self, start: int, end: int) -> None:
        """Column tiles outside, row tiles inside; the result waits in memory."""
        plan = self.plan
        for first in range(0, plan.k, plan.tile_columns):
            columns = slice(first, min(plan.k, first + plan.tile_columns))
            vector = self._load_vector(columns)
            for rows in _tiles(start, end, plan.tile_rows):
                if first == 0:
                    total = self._initial(rows)
                else:
                    total = self.result[rows].copy()
                    self.counts[3] += total.size
                tile = self._load(rows, columns)
                for column in range(len(vector)):
                    total = total + tile[:, column] * vector[column]
                self._store(rows, total)
        if not plan.k:
            rows = slice(start, end)
            self._store(rows, self._initial(rows))

    def rows(self, start: int, end: int) -> None:
        """Row tiles outside; each row's sum waits in a vector register."""
        plan = self.plan
        whole = plan.k - plan.k % plan.tile_columns
        for rows in _tiles(start, end, plan.tile_rows):
            count = rows.stop - rows.start
            sums = np.zeros((count, plan.tile_columns), self.kind)
            for first in range(0, whole, plan.tile_columns):
                columns = slice(first, first + plan.tile_columns)
                vector = self._load_vector(columns)
                sums = sums + self._load(rows, columns) * vector
            total = sums.sum(axis=1, dtype=self.kind)
            for column in range(whole, plan.k):
                scalar = slice(column, column + 1)
                vector = self._load_vector(scalar)
                total = total + self._load(rows, scalar)[:, 0] * vector[0]
            self._store(rows, total + self._initial(rows))


def _tiles(start: int, end: int, size: int) -> list[slice]:
    return [slice(i, min(end, i + size)) for i in range(start, end, size)]
