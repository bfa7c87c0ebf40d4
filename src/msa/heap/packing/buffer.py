"""What is packed: buffers as users write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from msa.errors import PackingError, shown
from msa.heap.whole_number import SIZE_LIMIT, TIME_LIMIT, read_whole


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer to place.

    Attributes:
        id: how the user calls it; any hashable, unique among the buffers.
        start, end: it lives in the half-open time `[start, end)`.
        size: bytes.
        alignment: its offset is a multiple of this (bytes); None for the default.
        offset: where it must lie (pinned), or None.
        group: buffers of the same group get the same offset, and may share
            addresses while both live (aliases); None for no group.
        gaps: half-open times `(start, end)` within the lifetime in which the
            contents are dead and the addresses may be used by others.

    >>> Buffer("x", 0, 4, 1024)
    Buffer('x', [0, 4), 1024 B)
    """

    id: Any
    start: int
    end: int
    size: int
    alignment: int | None = None
    offset: int | None = None
    group: Any = None
    gaps: tuple[tuple[int, int], ...] = ()

    def __repr__(self) -> str:
        extra = "".join(
            f", {name}={value!r}"
            for name, value in (
                ("alignment", self.alignment),
                ("offset", self.offset),
                ("group", self.group),
                ("gaps", self.gaps or None),
            )
            if value is not None
        )
        span = f"[{self.start}, {self.end})"
        return f"Buffer({self.id!r}, {span}, {self.size} B{extra})"

    @property
    def is_live(self) -> bool:
        """Whether it has bytes, and a time in which its contents are alive."""
        if not self.size or self.start >= self.end:
            return False
        return not self.gaps or bool(self.pieces())

    def pieces(self) -> list[tuple[int, int]]:
        """The times `[start, end)` in which the contents are alive."""
        pieces, at = [], self.start
        for start, end in sorted(self.gaps):
            if at < start:
                pieces.append((at, min(start, self.end)))
            at = max(at, end)
        if at < self.end:
            pieces.append((at, self.end))
        return [(start, end) for start, end in pieces if start < end]


_FIELDS = ("id", "start", "end", "size", "alignment", "offset", "group", "gaps")
_SYNONYMS = {"lower": "start", "upper": "end", "buffer": "id", "name": "id"}


def _time(value: Any, what: str, where: str) -> int:
    return read_whole(
        value,
        what,
        at_least=1 - TIME_LIMIT,
        below=TIME_LIMIT,
        error=PackingError,
        where=where,
    )


def _size(value: Any, what: str, where: str, *, at_least: int = 0) -> int:
    return read_whole(
        value,
        what,
        at_least=at_least,
        below=SIZE_LIMIT,
        error=PackingError,
        where=where,
    )


def _from_mapping(row: Mapping[str, Any], where: str) -> Buffer:
    fields: dict[str, Any] = {}
    for key, value in row.items():
        name = _SYNONYMS.get(key, key)
        if name in fields:
            raise PackingError(f"a row has two values for {name}", where=where)
        fields[name] = value
    missing = [name for name in _FIELDS[:4] if name not in fields]
    if missing:
        raise PackingError(f"a row lacks {', '.join(missing)}", where=where)
    return Buffer(**{name: fields[name] for name in _FIELDS if name in fields})


def _from_row(row: Any, where: str) -> Buffer:
    if isinstance(row, Buffer):
        return row
    if isinstance(row, Mapping):
        return _from_mapping(row, where)
    if isinstance(row, np.ndarray):
        row = row.tolist()
    if not isinstance(row, Sequence) or isinstance(row, (str, bytes)):
        raise PackingError(f"cannot read {shown(row)} as a buffer", where=where)
    if not 4 <= len(row) <= 6:
        raise PackingError(
            f"a row has {len(row)} fields",
            where=where,
            hint="(id, start, end, size[, alignment][, offset])",
        )
    return Buffer(*row)


def _checked_gaps(gaps: Any, where: str) -> tuple[tuple[int, int], ...]:
    try:
        pairs = [tuple(gap) for gap in gaps]
        if any(len(pair) != 2 for pair in pairs):
            raise TypeError
    except TypeError:
        raise PackingError(
            f"cannot read gaps {shown(gaps)}", where=where, hint="pairs (start, end)"
        ) from None
    return tuple(
        (_time(low, "gap start", where), _time(high, "gap end", where))
        for low, high in pairs
    )


def _checked(buffer: Buffer, where: str) -> Buffer:
    start = _time(buffer.start, "start", where)
    end = _time(buffer.end, "end", where)
    if end < start:
        raise PackingError(f"end {end} is before start {start}", where=where)
    size = _size(buffer.size, "size", where)
    alignment, offset = buffer.alignment, buffer.offset
    if alignment is not None:
        alignment = _size(alignment, "alignment", where, at_least=1)
    if offset is not None:
        offset = _size(offset, "offset", where)
        if alignment is not None and offset % alignment:
            raise PackingError(
                f"pinned offset {offset} is not a multiple of alignment {alignment}",
                where=where,
            )
    gaps = _checked_gaps(buffer.gaps, where)
    for gap in gaps:
        if not start <= gap[0] <= gap[1] <= end:
            raise PackingError(f"gap {gap} is not within the lifetime", where=where)
    return replace(
        buffer,
        start=start,
        end=end,
        size=size,
        alignment=alignment,
        offset=offset,
        gaps=gaps,
    )


def _is_plain(row: Any) -> bool:
    """Whether a row needs no checks: most rows, of many, are like this."""
    if type(row) is not tuple or len(row) != 4:
        return False
    name, start, end, size = row
    return (
        type(start) is int
        and type(end) is int
        and type(size) is int
        and (type(name) is str or (type(name) is int and abs(name) < TIME_LIMIT))
        and -TIME_LIMIT < start <= end < TIME_LIMIT
        and 0 <= size < SIZE_LIMIT
    )


def read_buffers(rows: Iterable[Any]) -> list[Buffer]:
    """Checked buffers from rows, mappings or `Buffer`s.

    Raises:
        PackingError: a row cannot be read or contradicts itself, or an id repeats.

    >>> read_buffers([("x", 0, 2, 64), {"id": "y", "lower": 1, "upper": 3, "size": 8}])
    [Buffer('x', [0, 2), 64 B), Buffer('y', [1, 3), 8 B)]
    """
    buffers: list[Buffer] = []
    seen: set[Any] = set()
    for number, row in enumerate(_listed(rows)):
        if _is_plain(row) and row[0] not in seen:
            seen.add(row[0])
            buffers.append(Buffer(*row))
            continue
        buffer = _from_row(row, f"row {number}")
        _check_hashable(buffer, f"row {number}")
        where = f"row {number} (buffer {shown(buffer.id)})"
        buffer = _checked(buffer, where)
        if buffer.id in seen:
            raise PackingError("the id is used twice", where=where)
        seen.add(buffer.id)
        buffers.append(buffer)
    return buffers


def _listed(rows: Any) -> Iterable[Any]:
    try:
        listed: Iterable[Any] = iter(rows)
    except TypeError:
        raise PackingError(
            f"cannot read {shown(rows)} as buffers",
            hint="a list of (id, start, end, size), or the path of a file",
        ) from None
    return listed


def _check_hashable(buffer: Buffer, where: str) -> None:
    for what, value in (("id", buffer.id), ("group", buffer.group)):
        try:
            hash(value)
        except TypeError:
            message = f"the {what} is not hashable"
            raise PackingError(message, where=where) from None
        if isinstance(value, int) and abs(value) >= TIME_LIMIT:
            raise PackingError(f"the {what} is out of range", where=where)
