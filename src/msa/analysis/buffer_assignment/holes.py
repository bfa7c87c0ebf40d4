"""Temporaries in storage that waits: outputs not yet written, arguments given away.

A program's outputs are allocated before it starts, and a donated argument is dead
after its last use. Until the output is written those bytes are free. This stage
moves temporaries into such windows where that lowers the load of the block that
the rest share. It knows times and bytes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msa.heap import align_up

Piece = tuple[int, int]
"""Half-open time `[start, end)`."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A temporary that needs `size` bytes during its pieces (sorted, disjoint)."""

    size: int
    pieces: tuple[Piece, ...]

    @property
    def start(self) -> int:
        """First time it is alive."""
        return self.pieces[0][0]

    @property
    def end(self) -> int:
        """One past the last time it is alive."""
        return self.pieces[-1][1]


@dataclass(frozen=True, slots=True)
class Host:
    """Storage of `size` bytes that its owner needs during the busy pieces."""

    size: int
    busy: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class HoleFilling:
    """Where temporaries went.

    Attributes:
        placed: tenant number to (host number, offset in the host).
        load: bytes of the remaining tenants at each step.
    """

    placed: dict[int, tuple[int, int]]
    load: NDArray[np.int64]

    @property
    def lower_bound(self) -> int:
        """The least height of a block that holds the remaining tenants."""
        return int(self.load.max(initial=0))


class _Windows:
    """Free windows of all hosts, with the tenants that moved in.

    Invariant: tenants of one window that are alive together have disjoint bytes.
    """

    __slots__ = ("_end", "_host", "_inside", "_size", "_start", "alignment")

    def __init__(self, hosts: Sequence[Host], steps: int, alignment: int) -> None:
        rows: list[tuple[int, int, int, int]] = []
        for number, host in enumerate(hosts):
            at = 0
            for start, end in sorted(host.busy):
                if at < start:
                    rows.append((host.size, at, start, number))
                at = max(at, end)
            if at < steps:
                rows.append((host.size, at, steps, number))
        # Smallest first: the first window that fits is the tightest.
        rows.sort()
        table = np.array(rows, dtype=np.int64).reshape(len(rows), 4)
        self._size, self._start, self._end, self._host = table.T
        self._inside: list[list[tuple[Tenant, int]]] = [[] for _ in rows]
        self.alignment = alignment

    def place(self, tenant: Tenant) -> tuple[int, int] | None:
        """Give a tenant a place (host, offset) if there is one. O(windows)."""
        first = int(np.searchsorted(self._size, tenant.size))
        fits = (self._start[first:] <= tenant.start) & (self._end[first:] >= tenant.end)
        for window in np.flatnonzero(fits) + first:
            offset = self._offset(int(window), tenant)
            if offset is not None:
                self._inside[window].append((tenant, offset))
                return int(self._host[window]), offset
        return None

    def _offset(self, window: int, tenant: Tenant) -> int | None:
        """The lowest free offset during the tenant's life, or None."""
        taken = sorted(
            (offset, offset + other.size)
            for other, offset in self._inside[window]
            if overlap(other.pieces, tenant.pieces)
        )
        at = 0
        for start, end in taken:
            if at + tenant.size <= start:
                break
            at = max(at, align_up(end, self.alignment))
        return at if at + tenant.size <= int(self._size[window]) else None


def overlap(a: Sequence[Piece], b: Sequence[Piece]) -> bool:
    """Whether two sorted lists of half-open pieces share a time. Linear."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] <= b[j][0]:
            i += 1
        elif b[j][1] <= a[i][0]:
            j += 1
        else:
            return True
    return False


def fill_holes(
    tenants: Sequence[Tenant],
    hosts: Sequence[Host],
    *,
    steps: int,
    alignment: int = 1,
) -> HoleFilling:
    """Move temporaries into free windows of hosts, at the peak first.

    The step of highest load is relieved again and again, its largest temporary
    first, until none that is alive there fits anywhere; then the rest fills what
    is left. Orders by size and by length of life are tried, and the one that
    leaves least is kept. O((n + moves) * (hosts + steps)) in numpy
    operations; each temporary is tried once per order.

    Args:
        tenants: temporaries with at least one piece each.
        hosts: storage with known busy times.
        steps: all times are below this.
        alignment: offsets are multiples of this (bytes).

    >>> fill_holes([Tenant(64, ((0, 3),))], [Host(100, ((3, 9),))], steps=9).placed
    {0: (0, 0)}
    """
    if not tenants or not hosts:
        return HoleFilling({}, load_of(tenants, steps))
    size = np.array([x.size for x in tenants], dtype=np.int64)
    length = np.array(
        [sum(end - start for start, end in x.pieces) for x in tenants], dtype=np.int64
    )
    orders = (
        np.argsort(-size, kind="stable"),
        np.lexsort((-length, -size)),
        np.lexsort((-size, -length)),
    )
    fillings = [
        _fill(tenants, _Windows(hosts, steps, alignment), order, steps)
        for order in orders
    ]
    return min(fillings, key=lambda filling: filling.lower_bound)


def _fill(
    tenants: Sequence[Tenant],
    windows: _Windows,
    order: NDArray[np.int64],
    steps: int,
) -> HoleFilling:
    """One pass; of those alive at the peak the first in order goes first."""
    load = load_of(tenants, steps)
    placed: dict[int, tuple[int, int]] = {}
    start = np.array([tenants[i].start for i in order], dtype=np.int64)
    end = np.array([tenants[i].end for i in order], dtype=np.int64)
    open_ = np.ones(len(tenants), dtype=bool)

    def move(rank: int) -> bool:
        open_[rank] = False
        number = int(order[rank])
        tenant = tenants[number]
        place = windows.place(tenant)
        if place is None:
            return False
        placed[number] = place
        for first, last in tenant.pieces:
            load[first:last] -= tenant.size
        return True

    while True:
        peak = int(load.argmax())
        alive = np.flatnonzero(open_ & (start <= peak) & (peak < end))
        if not any(move(int(rank)) for rank in alive):
            break
    for rank in np.flatnonzero(open_):
        move(int(rank))
    return HoleFilling(placed, load)


def load_of(tenants: Sequence[Tenant], steps: int) -> NDArray[np.int64]:
    """Bytes alive at each step. Linear."""
    change = np.zeros(steps + 1, dtype=np.int64)
    for tenant in tenants:
        for start, end in tenant.pieces:
            change[start] += tenant.size
            change[end] -= tenant.size
    load: NDArray[np.int64] = np.cumsum(change)[:steps]
    return load
