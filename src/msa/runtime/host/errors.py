"""Failures of pools and transfers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msa.errors import RuntimeMemoryError
from msa.runtime.host.annotations import render_annotation
from msa.runtime.sites import format_site
from msa.runtime.status import InvalidArgument

if TYPE_CHECKING:
    from msa.runtime.host.chunks import Chunk


class BadRequest(InvalidArgument, ValueError):
    """A size or alignment that no pool can serve.

    >>> issubclass(BadRequest, InvalidArgument)
    True
    """


class InvalidPointer(RuntimeMemoryError):
    """A pointer that the pool never handed out (or one into the middle).

    >>> InvalidPointer("no such block", address=7).address
    7
    """

    def __init__(self, message: str, *, address: int) -> None:
        self.address = address
        super().__init__(message)


class DoubleFree(RuntimeMemoryError):
    """A pointer that was freed before; `site` is where it was allocated.

    >>> DoubleFree("freed before", address=4096, site="f.py:3").site
    'f.py:3'
    """

    def __init__(self, message: str, *, address: int, site: str) -> None:
        self.address = address
        self.site = site
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class LeakRecord:
    """An allocation that was never freed; sizes in bytes.

    >>> str(LeakRecord(4096, 256, 200, 1, "load{}", "f.py:3"))
    '200 B at 0x1000 from f.py:3 in load{}'
    """

    address: int
    size: int
    requested: int
    id: int
    annotation: str
    site: str

    @staticmethod
    def of(chunk: Chunk) -> LeakRecord:
        """The record of a live chunk."""
        return LeakRecord(
            chunk.address,
            chunk.size,
            chunk.requested,
            chunk.id,
            render_annotation(chunk.annotation),
            format_site(chunk.site),
        )

    def __str__(self) -> str:
        scope = f" in {self.annotation}" if self.annotation else ""
        return f"{self.requested} B at {self.address:#x} from {self.site}{scope}"


class LeakError(RuntimeMemoryError):
    """A pool was closed while allocations were live; `leaks`, largest first.

    >>> len(LeakError("pool", []).leaks)
    0
    """

    def __init__(self, name: str, leaks: Sequence[LeakRecord]) -> None:
        self.leaks = list(leaks)
        shown = "\n  ".join(map(str, self.leaks[:20]))
        more = f"\n  … and {len(self.leaks) - 20} more" if len(self.leaks) > 20 else ""
        super().__init__(f"{len(self.leaks)} leak(s) in {name!r}:\n  {shown}{more}")
