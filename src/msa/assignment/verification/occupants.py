"""What takes room in alternate memory, and when."""

from __future__ import annotations

from typing import NamedTuple

from msa.analysis.values import Value


class Occupant(NamedTuple):
    """Bytes `[offset, end)` needed in steps `[start, stop)`."""

    offset: int
    end: int
    start: int
    stop: int
    name: str
    values: tuple[Value, ...]
