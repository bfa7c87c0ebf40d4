"""Chunks of a pool, and the index of its holes.

Source: `xla/tsl/framework/bfc_allocator.h`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final

from msa.runtime.sites import UNKNOWN_SITE, Site

QUANTUM: Final = 256
"""Every chunk's size and address is a multiple of this, bytes."""

BIN_COUNT: Final = 21
FREE: Final = -1

LOWER: Final = "lower"
UPPER: Final = "upper"
GAP: Final = "gap"

Annotation = tuple[tuple[str, tuple[tuple[str, object], ...]], ...]


def round_up(size: int, step: int = QUANTUM) -> int:
    """The next multiple of `step`."""
    return -(-size // step) * step


def bin_for(size: int) -> int:
    """Number of the bin of a size: bin *b* starts at `256 << b`.

    >>> [bin_for(n) for n in (256, 511, 512, 1 << 20, 512 << 20)]
    [0, 0, 1, 12, 20]
    """
    return min(BIN_COUNT - 1, (max(size, QUANTUM) >> 8).bit_length() - 1)


class Region:
    """One range from the sub-allocator (or several adjacent ones)."""

    __slots__ = ("base", "first", "last", "parts", "size")

    def __init__(self, base: int, size: int) -> None:
        self.base = base
        self.size = size
        self.parts = [(base, size)]
        self.first: Chunk
        self.last: Chunk


class Chunk:
    """A piece of a region, in use or free; linked to its neighbours by address.

    Attributes:
        requested: bytes asked for, while in use; `size - requested` is waste.
        id: number of the allocation in order of time, -1 when free.
        tag: which end of a partitioned pool owns it.
        freed_at: time of a timestamped free that is not known to be safe, else 0.
    """

    __slots__ = (
        "address", "annotation", "freed_at", "id", "next", "previous", "region",
        "requested", "site", "size", "tag",
    )  # fmt: skip

    def __init__(self, address: int, size: int, region: Region, tag: str) -> None:
        self.address = address
        self.size = size
        self.region = region
        self.tag = tag
        self.requested = 0
        self.id = FREE
        self.freed_at = 0
        self.annotation: Annotation = ()
        self.site: Site = UNKNOWN_SITE
        self.previous: Chunk | None = None
        self.next: Chunk | None = None

    @property
    def end(self) -> int:
        """One past the last address."""
        return self.address + self.size

    @property
    def in_use(self) -> bool:
        """Whether a caller holds it."""
        return self.id != FREE

    def __repr__(self) -> str:
        state = f"used {self.requested}" if self.in_use else self.tag
        return f"<Chunk [{self.address}, {self.end}) {state}>"


class Holes:
    """Free chunks by (size, address): best fit is the first that is large enough.

    Sizes are multiples of the quantum, so few are distinct; each has a sorted list of
    addresses. All operations are binary searches.

    Invariant: `sizes` is sorted and holds exactly the keys of `by_size`, whose lists
    are sorted and not empty.
    """

    __slots__ = ("by_size", "sizes")

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.by_size: dict[int, list[int]] = {}

    def add(self, size: int, address: int) -> None:
        """Enter a hole."""
        places = self.by_size.get(size)
        if places is None:
            self.by_size[size] = [address]
            insort(self.sizes, size)
        else:
            insort(places, address)

    def remove(self, size: int, address: int) -> None:
        """Take a hole out (it must be there)."""
        places = self.by_size[size]
        if len(places) == 1:
            assert places[0] == address
            del self.by_size[size]
            del self.sizes[bisect_left(self.sizes, size)]
        else:
            del places[bisect_left(places, address)]

    def pop_first(self, size: int) -> int:
        """Take the first hole of at least `size` out; its address, or -1."""
        sizes = self.sizes
        place = bisect_left(sizes, size)
        if place == len(sizes):
            return -1
        places = self.by_size[sizes[place]]
        address = places.pop(0)
        if not places:
            del self.by_size[sizes[place]]
            del sizes[place]
        return address

    def at_least(self, size: int) -> Iterator[int]:
        """Addresses of holes of at least `size`, by (size, address)."""
        sizes, by_size = self.sizes, self.by_size
        for i in range(bisect_left(sizes, size), len(sizes)):
            yield from by_size[sizes[i]]

    def largest(self) -> int:
        """Size of the largest hole, 0 without any."""
        return self.sizes[-1] if self.sizes else 0

    def __len__(self) -> int:
        return sum(map(len, self.by_size.values()))

    def check(self) -> None:
        """Assert the invariant."""
        assert self.sizes == sorted(self.by_size)
        for places in self.by_size.values():
            assert places
            assert places == sorted(places)
