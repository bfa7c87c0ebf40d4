"""Buffers and plans as files: minimalloc CSV, plain CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from msa.errors import FileFormatError, PackingError, shown
from msa.files import no_such_file, read_unpacked
from msa.heap.packing.buffer import Buffer, read_buffers
from msa.heap.packing.plan import HeapPlan
from msa.heap.packing.reservation import Reservation, read_reservations
from msa.heap.whole_number import read_whole

_GAP = re.compile(r"(-?[0-9]+)-(-?[0-9]+)")
_NUMBERS = ("start", "end", "size", "alignment", "offset")
_PLAN_FIELDS = (
    "offsets",
    "height",
    "lower_bound",
    "optimal",
    "capacity",
    "alignment",
    "reserved",
    "method",
)
_HEADS = {
    "id": "id",
    "buffer": "id",
    "name": "id",
    "lower": "start",
    "start": "start",
    "begin": "start",
    "upper": "end",
    "end": "end",
    "size": "size",
    "bytes": "size",
    "alignment": "alignment",
    "offset": "offset",
    "pin": "offset",
    "group": "group",
    "gaps": "gaps",
}


def load_csv(path: str | Path) -> list[Buffer]:
    """Buffers of a CSV file; see `parse_csv`.

    Raises:
        FileFormatError: the file cannot be read as such.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/b.csv"
    ...     _ = Path(path).write_text("id,lower,upper,size\\na,0,2,64\\n")
    ...     load_csv(path)[0].size
    64
    """
    return parse_csv(_text(path), name=str(path))


def load_buffers(path: str | Path) -> list[Buffer]:
    """Buffers of a CSV or JSON file, told apart by what is in it.

    Raises:
        FileFormatError: the file cannot be read as either.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/b.csv"
    ...     _ = Path(path).write_text("id,lower,upper,size\\na,0,2,64\\n")
    ...     [b.id for b in load_buffers(path)]
    ['a']
    """
    return parse_buffers(_text(path), name=str(path))


def parse_buffers(text: str, *, name: str = "text") -> list[Buffer]:
    """Buffers from JSON (it begins with a bracket or brace) or CSV text.

    Raises:
        FileFormatError: with the place.

    >>> parse_buffers('[["x", 0, 2, 64]]') == parse_buffers("x,0,2,64")
    True
    """
    if not isinstance(text, str):
        raise FileFormatError(f"not text: {shown(text)}")
    if text.lstrip().startswith("HloModule"):
        raise FileFormatError(
            "this is an HLO module, not a list of buffers",
            where=name,
            hint="`msa plan` plans it, `msa report` shows its buffers",
        )
    if text.lstrip()[:1] not in ("[", "{"):
        return parse_csv(text, name=name)
    try:
        return buffers_from_json(text)
    except FileFormatError as error:
        where = f"{name}, {error.where}" if error.where else name
        raise FileFormatError(error.message, where=where, hint=error.hint) from None


def _text(path: str | Path) -> str:
    try:
        return read_unpacked(Path(path)).decode("utf-8-sig")
    except FileNotFoundError:
        raise no_such_file(Path(path)) from None
    except (OSError, EOFError, TypeError, ValueError, zlib.error) as error:
        # A path with a zero byte or a lone surrogate is a ValueError.
        raise FileFormatError(f"cannot read {shown(path)}: {error}") from None


def parse_csv(text: str, *, name: str = "csv") -> list[Buffer]:
    """Buffers from CSV text with a head line.

    Columns, in any order: `id`, `lower` or `start`, `upper` or `end`, `size`, and
    optionally `alignment`, `offset` (pins), `group`, `gaps` (minimalloc's form:
    `3-5 8-9`, half-open). A column `offset` in which every row has a value is a
    solution, as minimalloc writes it, and pins nothing; a column `pin` always pins,
    and an `offset` beside it is a solution. Without a head line the
    columns are `id,start,end,size`. Empty lines are skipped.

    Raises:
        FileFormatError: with the line.

    >>> parse_csv("id,lower,upper,size\\nx,0,2,64\\n")
    [Buffer('x', [0, 2), 64 B)]
    """
    try:
        lines = [
            (number, row)
            for number, row in enumerate(csv.reader(io.StringIO(text)), 1)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise FileFormatError(f"not CSV: {error}", where=name) from None
    if not lines:
        return []
    first = [cell.strip().lower() for cell in lines[0][1]]
    if "size" in first or "bytes" in first:
        columns = [_HEADS.get(head, "") for head in first]
        if "pin" in first and "offset" in first:
            columns[first.index("offset")] = ""
        lines = lines[1:]
    else:
        columns = ["id", "start", "end", "size"]
    missing = [c for c in ("id", "start", "end", "size") if c not in columns]
    if missing:
        raise FileFormatError(
            f"no column {', '.join(missing)}",
            where=f"{name}:1",
            hint="a head line such as id,lower,upper,size",
        )
    rows = [_csv_row(columns, row, f"{name}:{number}") for number, row in lines]
    if (
        "pin" not in first
        and rows
        and all(row.get("offset") is not None for row in rows)
    ):
        rows = [row | {"offset": None} for row in rows]
    try:
        return read_buffers(rows)
    except PackingError as error:
        raise FileFormatError(error.message, where=f"{name}, {error.where}") from None


def _csv_row(columns: list[str], cells: list[str], where: str) -> dict[str, Any]:
    if len(cells) > len(columns):
        raise FileFormatError(
            f"{len(cells)} cells for {len(columns)} columns",
            where=where,
            hint=f"rows as the head line says: {','.join(c or '?' for c in columns)}",
        )
    row: dict[str, Any] = {}
    for column, cell in zip(columns, cells, strict=False):
        text = cell.strip()
        if not column or (not text and column not in ("id", *_NUMBERS[:3])):
            continue
        if column in _NUMBERS:
            try:
                row[column] = int(text)
            except ValueError:
                raise FileFormatError(
                    f"{column} must be a whole number, got {text!r}", where=where
                ) from None
        elif column == "gaps":
            row[column] = _gaps(text, where)
        else:
            row[column] = text
    return row


def _gaps(text: str, where: str) -> tuple[tuple[int, int], ...]:
    gaps = []
    for part in text.split():
        # minimalloc may add a window ("3-5@0:8"); only whole gaps are meant here.
        found = _GAP.fullmatch(part)
        if not found:
            raise FileFormatError(
                f"cannot read gap {part!r}", where=where, hint="such as 3-5 8-9"
            )
        gaps.append((int(found[1]), int(found[2])))
    return tuple(gaps)


def buffers_to_csv(buffers: Iterable[Buffer]) -> str:
    """Buffers as CSV; `parse_csv` reads the same buffers back (ids as text)."""
    return _csv_text([(buffer, buffer.offset) for buffer in buffers], solution=False)


def plan_to_csv(plan: HeapPlan) -> str:
    """The plan's buffers with their offsets, in minimalloc's solution form."""
    rows = list(zip(plan.buffers, plan.offsets, strict=True))
    return _csv_text(rows, solution=True)


def _csv_text(rows: Sequence[tuple[Buffer, int | None]], *, solution: bool) -> str:
    head = ["id", "lower", "upper", "size"]
    optional = [
        field
        for field in ("alignment", "group", "gaps")
        if any(_is_given(getattr(buffer, field)) for buffer, _ in rows)
    ]
    pinned = [offset is not None for _, offset in rows]
    if solution or any(pinned):
        optional.append("offset")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    # A full column `offset` would be read as a solution.
    pins_all = not solution and any(pinned) and all(pinned)
    named = ["pin" if pins_all and o == "offset" else o for o in optional]
    writer.writerow(head + named)
    for buffer, offset in rows:
        cells = {
            "alignment": buffer.alignment,
            "group": buffer.group,
            "gaps": " ".join(f"{low}-{high}" for low, high in buffer.gaps),
            "offset": offset,
        }
        row: list[Any] = [buffer.id, buffer.start, buffer.end, buffer.size]
        writer.writerow(row + [cells[field] for field in optional])
    return out.getvalue()


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, tuple) and not value)


def buffers_from_json(text: str) -> list[Buffer]:
    """Buffers from a JSON list of objects (or of `[id, start, end, size, …]`).

    An object may also carry the list under `"buffers"`.

    Raises:
        FileFormatError: not JSON, or not such a list.

    >>> [b.size for b in buffers_from_json('[["a", 0, 2, 64]]')]
    [64]
    """
    data = _json(text)
    if isinstance(data, dict):
        data = data.get("buffers")
    if not isinstance(data, list):
        raise FileFormatError(
            "JSON has no list of buffers", hint='{"buffers": [["a", 0, 2, 64]]}'
        )
    try:
        return read_buffers(_with_tuples(row) for row in data)
    except PackingError as error:
        raise FileFormatError(error.message, where=error.where) from None


def _with_tuples(row: Any) -> Any:
    """The row with its id and group hashable: JSON has lists for tuples."""
    if isinstance(row, dict):
        named = {key: row[key] for key in ("id", "group") if key in row}
        return row | {key: _as_tuple(value) for key, value in named.items()}
    return [_as_tuple(row[0]), *row[1:]] if row and isinstance(row, list) else row


def _as_tuple(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_as_tuple(each) for each in value)
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"not JSON: {error}") from None


def plan_to_json(plan: HeapPlan) -> str:
    """The plan as JSON text."""
    buffers = [
        {"id": buffer.id}
        | {
            name: getattr(buffer, name)
            for name in (*_NUMBERS, "group")
            if getattr(buffer, name) is not None
        }
        | ({"gaps": buffer.gaps} if buffer.gaps else {})
        for buffer in plan.buffers
    ]
    data = {
        "height": plan.height,
        "lower_bound": plan.lower_bound,
        "optimal": plan.optimal,
        "capacity": plan.capacity,
        "alignment": plan.alignment,
        "method": plan.method,
        "reserved": [asdict(hold) for hold in plan.reserved],
        "buffers": buffers,
        "offsets": list(plan.offsets),
    }
    return json.dumps(data, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON has no form for: numbers of numpy, and ids of any kind as text."""
    return value.item() if isinstance(value, np.number) else str(value)


def plan_from_json(text: str) -> HeapPlan:
    """The inverse of `plan_to_json`.

    Raises:
        FileFormatError: the text is not such a plan.
    """
    data = _json(text)
    buffers = buffers_from_json(text)
    if not isinstance(data, dict):
        raise FileFormatError("not a plan: JSON has no fields")
    missing = [field for field in _PLAN_FIELDS if field not in data]
    if missing:
        raise FileFormatError(f"not a plan: it lacks {', '.join(missing)}")

    def number(field: str, value: Any) -> int:
        return read_whole(value, field, at_least=0, error=FileFormatError)

    if not isinstance(data["offsets"], list) or len(data["offsets"]) != len(buffers):
        raise FileFormatError(f"not a plan: no list of {len(buffers)} offsets")
    capacity = data["capacity"]
    return HeapPlan(
        tuple(buffers),
        tuple(number("offset", offset) for offset in data["offsets"]),
        height=number("height", data["height"]),
        lower_bound=number("lower_bound", data["lower_bound"]),
        optimal=data["optimal"] is True,
        capacity=None if capacity is None else number("capacity", capacity),
        alignment=read_whole(
            data["alignment"], "alignment", at_least=1, error=FileFormatError
        ),
        reserved=_reservations(data["reserved"]),
        method=str(data["method"]),
    )


def _reservations(rows: Any) -> tuple[Reservation, ...]:
    try:
        return read_reservations(
            [Reservation(**row) if isinstance(row, dict) else row for row in rows]
        )
    except (PackingError, TypeError) as error:
        raise FileFormatError(f"not a plan: {error}") from None
