"""Debug tables: buffers, allocations and schedule, as CSV that can be read back.

The columns are those that XLA dumps. A buffer is named by the number of its alias
buffer; scratch of an instruction gets negative numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from msa.assignment.allocation import Allocation, ScopedAllocation
from msa.assignment.problem import Problem
from msa.errors import FileFormatError

if TYPE_CHECKING:
    from msa.assignment.state import State


@dataclass(frozen=True, slots=True)
class BufferInfo:
    """A buffer that was considered; `use_times` and `use_names` are `;`-joined."""

    buffer_id: int
    buffer_name: str
    alt_mem_benefit: float
    size: int
    definition_time: int
    use_times: str
    use_names: str
    is_scoped: int


@dataclass(frozen=True, slots=True)
class AllocationInfo:
    """A stay in alternate memory; inclusive steps."""

    buffer_id: int
    size: int
    offset: int
    start_time: int
    end_time: int


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """An instruction of the flattened schedule."""

    time: int
    instruction_name: str


Row = TypeVar("Row", BufferInfo, AllocationInfo, ScheduleInfo)


def to_csv(kind: type[Row], rows: Iterable[Row]) -> str:
    """The table as text, the header first.

    >>> print(to_csv(ScheduleInfo, [ScheduleInfo(0, "p")]), end="")
    time,instruction_name
    0,p
    """
    names = [field.name for field in fields(kind)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in rows)
    return text.getvalue()


def from_csv(kind: type[Row], text: str) -> list[Row]:
    """The inverse of `to_csv`.

    Raises:
        FileFormatError: the header or a row is not that of the table.
    """
    names = [field.name for field in fields(kind)]
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or rows[0] != names:
        raise FileFormatError(f"expected the columns {','.join(names)}", where="line 1")
    found: list[Row] = []
    for number, row in enumerate(rows[1:], 2):
        try:
            values: list[Any] = [
                _CONVERT[str(field.type)](cell)
                for field, cell in zip(fields(kind), row, strict=True)
            ]
        except ValueError as error:
            raise FileFormatError(str(error), where=f"line {number}") from None
        found.append(kind(*values))
    return found


_CONVERT: dict[str, Any] = {"int": int, "float": float, "str": str}


def schedule_info(problem: Problem) -> list[ScheduleInfo]:
    """One row per step."""
    return [ScheduleInfo(step, name) for step, name in enumerate(problem.names)]


def buffer_info(state: State) -> list[BufferInfo]:
    """One row per buffer that is allocated on its own, and per scratch."""
    problem = state.problem
    rows = []
    for interval in state.intervals:
        if interval is None or not interval.need_allocation:
            continue
        value = problem.values[interval.value]
        uses = sorted(
            (use.step, problem.describe_use(use))
            for member in problem.buffers[value.buffer]
            for use in problem.values[member].uses
        )
        benefit = 0.0
        if state.costs is not None:
            benefit = state.costs.memory_boundedness(value, interval.size)
        rows.append(
            BufferInfo(
                value.buffer,
                problem.describe(value.position),
                benefit,
                interval.size,
                value.position.step,
                ";".join(str(step) for step, _ in uses),
                ";".join(text for _, text in uses),
                0,
            )
        )
    for number, scratch in enumerate(_scratch(state.allocations), 1):
        step = scratch.position.step
        name = f"scoped allocation for {problem.names[step]}"
        assert scratch.chunk is not None
        rows.append(BufferInfo(-number, name, 0.0, scratch.chunk.size, step, "", "", 1))
    return rows


def allocation_info(
    problem: Problem, allocations: Sequence[Allocation]
) -> list[AllocationInfo]:
    """One row per stay in alternate memory."""
    rows = []
    scratch = 0
    for a in allocations:
        if a.chunk is None:
            continue
        if isinstance(a, ScopedAllocation):
            scratch += 1
            buffer = -scratch
        else:
            buffer = problem.values[a.value].buffer
        rows.append(
            AllocationInfo(buffer, a.chunk.size, a.chunk.offset, a.start, a.end)
        )
    return rows


def _scratch(allocations: Iterable[Allocation]) -> list[ScopedAllocation]:
    return [a for a in allocations if isinstance(a, ScopedAllocation)]


def dump(state: State) -> None:
    """Give all three tables to the option `dump_fn`, if there is one."""
    function = state.options.dump_fn
    if function is None:
        return
    problem = state.problem
    function("bufferinfo", to_csv(BufferInfo, buffer_info(state)))
    rows = allocation_info(problem, state.allocations)
    function("allocinfo", to_csv(AllocationInfo, rows))
    function("scheduleinfo", to_csv(ScheduleInfo, schedule_info(problem)))
