"""Reading saved allocations with every number checked."""

from __future__ import annotations

from typing import Any

from msa.analysis.buffer_assignment.allocation import BufferAllocation
from msa.errors import FileFormatError, PlanError

_FLAGS = (
    "aliased_with_output",
    "is_constant",
    "is_tuple",
    "is_thread_local",
    "maybe_live_out",
    "preset",
)


def read_allocations(data: Any) -> list[BufferAllocation]:
    """Allocations from plain data.

    Raises:
        FileFormatError: a field is missing, of the wrong type, negative or out of
            range.
    """
    try:
        rows = data["allocations"]
        return [_read(row, number) for number, row in enumerate(rows)]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FileFormatError(f"not a buffer assignment: {error}") from None


def _read(row: Any, number: int) -> BufferAllocation:
    where = f"allocation {number}"
    if row["index"] != number:
        raise FileFormatError(f"index {row['index']} is unknown here", where=where)
    size = _count(row["size"], "size", where)
    allocation = BufferAllocation(number, size, _count(row["color"], "color", where))
    allocation.page = int(row.get("page", -1))
    parameter = row.get("parameter")
    if parameter is not None:
        allocation.parameter = (
            _count(parameter[0], "parameter", where),
            tuple(_count(i, "index", where) for i in parameter[1]),
        )
    for name in _FLAGS:
        setattr(allocation, name, bool(row.get(name, False)))
    for value, offset, extent in row["assigned"]:
        _count(offset, "offset", where)
        _count(extent, "size of a slice", where)
        try:
            allocation.assign(_count(value, "value", where), offset, extent)
        except PlanError as error:
            raise FileFormatError(error.message, where=where) from None
    allocation.peak = tuple(_count(v, "value", where) for v in row.get("peak", ()))
    allocation.cross_color = list(row.get("cross_color", ()))
    return allocation


def _count(value: Any, what: str, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FileFormatError(f"{what} is {value!r}, not a count", where=where)
    return value
