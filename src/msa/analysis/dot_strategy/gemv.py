"""Tiling a matrix–vector product, and how many bytes the tiling moves.

The reuse of such products is so low that memory bandwidth bounds them: what counts is
reading the matrix once, in the order in which it is stored.

Source: `xla/service/cpu/dot_op_emitter.cc`, `tiled_dot_emitter.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from msa.errors import OptionsError
from msa.heap.whole_number import read_whole

TILING_FACTOR: Final = 8
UNKNOWN_WIDTH: Final = 4
_TASK_ELEMENTS: Final = 1 << 19
_DEBUG_TASK_ELEMENTS: Final = 1 << 12
_MOST_TASKS: Final = 8
_LONG_VECTOR_BYTES: Final = 32


class Kernel(StrEnum):
    """The order in which a matrix is walked.

    >>> [str(kernel) for kernel in Kernel]
    ['column', 'row']
    """

    COLUMN = "column"
    ROW = "row"


@dataclass(frozen=True, slots=True)
class GemvPlan:
    """A matrix of m × k elements times a vector of k.

    Attributes:
        kernel: columns or rows first.
        m, k: size of the matrix.
        tile_rows, tile_columns: elements of a tile.
        tasks: how many run side by side, each on consecutive rows.
        element_bytes: bytes of an element.
        swapped: the vector is the left operand; the matrix is the right one,
            transposed.

    >>> plan_gemv(16, 32, 1).task_rows
    ((0, 16),)
    """

    kernel: Kernel
    m: int
    k: int
    tile_rows: int
    tile_columns: int
    tasks: int
    element_bytes: int
    swapped: bool = False

    @property
    def task_rows(self) -> tuple[tuple[int, int], ...]:
        """Half-open ranges of rows, one per task, none empty unless m is 0."""
        size = -(-self.m // self.tasks) if self.m else 0
        ranges = [(i * size, min(self.m, (i + 1) * size)) for i in range(self.tasks)]
        return tuple(r for r in ranges if r[0] < r[1])


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a plan moves, by operand.

    Attributes:
        matrix_read, vector_read, addend_read, result_read, result_written: bytes.

    >>> Traffic(128, 32, 0, 0, 16).total
    176
    """

    matrix_read: int
    vector_read: int
    addend_read: int
    result_read: int
    result_written: int

    @property
    def total(self) -> int:
        """All bytes."""
        return (
            self.matrix_read
            + self.vector_read
            + self.addend_read
            + self.result_read
            + self.result_written
        )


def plan_gemv(
    m: int,
    k: int,
    n: int,
    *,
    column_major: bool = False,
    canonical: bool = True,
    element_bytes: int = 4,
    vector_bytes: int = 0,
    tiling_factor: int = TILING_FACTOR,
    parallel: bool = True,
    debug: bool = False,
) -> GemvPlan:
    """Kernel, tiles and tasks of an m × k by k × n product with m or n equal to 1.

    Args:
        m, k, n: sizes.
        column_major: the matrix is stored column by column.
        canonical: the left side is contracted over its columns, the right side over
            its rows.
        element_bytes: bytes of an element.
        vector_bytes: of a vector register; 0 if unknown (4 elements are assumed).
        tiling_factor: tiles in the direction that is not vectorised.
        parallel: use several tasks.
        debug: small tasks, so that small products use several too.

    Raises:
        OptionsError: neither m nor n is 1, a size is negative, or elements or tiles
            have no size.

    >>> plan_gemv(4096, 4096, 1).tasks, plan_gemv(256, 4096, 1).tasks
    (8, 2)
    >>> str(plan_gemv(1, 64, 128).kernel), str(plan_gemv(128, 64, 1).kernel)
    ('column', 'row')
    """
    m, k, n = (
        read_whole(size, name, at_least=0)
        for size, name in ((m, "m"), (k, "k"), (n, "n"))
    )
    element_bytes = read_whole(element_bytes, "element_bytes", at_least=1)
    vector_bytes = read_whole(vector_bytes, "vector_bytes", at_least=0)
    tiling_factor = read_whole(tiling_factor, "tiling_factor", at_least=1)
    if 1 not in (m, n):
        raise OptionsError(
            f"{m} × {k} by {k} × {n} is no matrix–vector product",
            hint="one of m and n must be 1",
        )
    effective = column_major != (not canonical)
    swapped = n != 1
    if swapped:
        m = n
        kernel = Kernel.ROW if effective else Kernel.COLUMN
    else:
        kernel = Kernel.COLUMN if effective else Kernel.ROW
    width = max(1, vector_bytes // element_bytes) if vector_bytes else UNKNOWN_WIDTH
    tiles = (width, tiling_factor)
    if kernel is Kernel.ROW:
        tiles = (tiling_factor, width)
    limit = _DEBUG_TASK_ELEMENTS if debug else _TASK_ELEMENTS
    tasks = 1
    if parallel and m and k:
        tasks = min(-(-m // rows_per_task(k, limit)), _MOST_TASKS)
    return GemvPlan(kernel, m, k, *tiles, tasks, element_bytes, swapped)


def rows_per_task(k: int, elements: int = _TASK_ELEMENTS) -> int:
    """Rows that make a task worth its overhead.

    >>> rows_per_task(4096), rows_per_task(16)
    (128, 32768)
    """
    return -(-elements // k)


def traffic(plan: GemvPlan, *, addend: bool = False) -> Traffic:
    """Bytes that a plan moves, by formula.

    The matrix is read once. Columns first: each task reads the vector once and the
    result again for every further column tile, which it writes each time. Rows first:
    the vector is read for every row tile, the result written once.

    >>> traffic(plan_gemv(16, 32, 1)).vector_read  # 2 row tiles × 32 × 4 bytes
    256
    """
    size, m, k = plan.element_bytes, plan.m, plan.k
    tasks = plan.task_rows
    column_tiles = -(-k // plan.tile_columns)
    if plan.kernel is Kernel.COLUMN:
        vector = k * len(tasks)
        passes = max(1, column_tiles)
        result_read, written = m * (passes - 1), m * passes
    else:
        row_tiles = sum(-(-(end - start) // plan.tile_rows) for start, end in tasks)
        vector = k * row_tiles
        result_read, written = 0, m
    return Traffic(
        m * k * size,
        vector * size,
        m * size if addend else 0,
        result_read * size,
        written * size,
    )


def reuse(plan: GemvPlan) -> float:
    """Operations per byte moved; below 2 / element bytes: memory always bounds it.

    >>> reuse(plan_gemv(4096, 4096, 1)) < 0.5  # two operations for each f32 at best
    True
    """
    total = traffic(plan).total
    return 2 * plan.m * plan.k / total if total else 0.0


def recommend_layout(
    m: int, k: int, n: int, *, element_bytes: int = 4, vector_bytes: int = 0
) -> GemvPlan:
    """The plan of the storage order of the matrix that moves fewer bytes.

    A vector on the left of at least 32 bytes prefers its matrix column by column: each
    result is then one contiguous product. Ties go to row by row.

    >>> str(recommend_layout(1, 4096, 4096).kernel)
    'row'
    """
    rows, columns = (
        plan_gemv(
            m,
            k,
            n,
            column_major=column_major,
            element_bytes=element_bytes,
            vector_bytes=vector_bytes,
        )
        for column_major in (False, True)
    )
    if n != 1 and k * element_bytes >= _LONG_VECTOR_BYTES:
        return columns
    return columns if traffic(columns).total < traffic(rows).total else rows
