"""What a program asks to be mapped, collected before anything is allocated.

Source: `xla/backends/gpu/runtime/collective_memory_requests.h`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from msa.hlo.arguments import expect
from msa.runtime.collective.allocations import (
    AllocationSlice,
    BufferAllocations,
    DeviceAddress,
)
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.status import InternalStatus, InvalidArgument


class Kind(Enum):
    """How a buffer is shared.

    >>> [kind.value for kind in Kind]
    ['symmetric', 'multicast', 'peer']
    """

    SYMMETRIC = "symmetric"
    MULTICAST = "multicast"
    PEER = "peer"


@dataclass(frozen=True, slots=True)
class Request:
    """Allocations of one clique, ascending; `id` numbers first requests.

    >>> from msa.runtime.collective import CliqueKey
    >>> Request(0, CliqueKey.local(0, 1), (0, 2)).allocations
    (0, 2)
    """

    id: int
    clique: CliqueKey
    allocations: tuple[int, ...]


class CollectiveMemoryRequests:
    """Requests of one device in one execution.

    `ordered` sorts by (larger clique first, earlier first request). All ranks run
    the same program, so each sees the same order of first requests for the cliques
    that it belongs to; two ranks that share two cliques therefore visit them in the
    same order, whatever else they request, and no hash order can leak.

    >>> from msa.runtime.collective import BufferAllocations, CliqueKey, DeviceAddress
    >>> requests = CollectiveMemoryRequests(BufferAllocations([DeviceAddress(4096, 64)]))
    >>> requests.request_all(Kind.PEER, CliqueKey.local(0, 1), [0])
    >>> [r.allocations for r in requests.ordered(Kind.PEER)]
    [(0,)]
    """

    __slots__ = ("_first", "_tables", "buffers")

    def __init__(self, buffers: BufferAllocations) -> None:
        self.buffers = buffers
        self._tables: dict[Kind, dict[CliqueKey, tuple[int, set[int]]]] = {
            kind: {} for kind in Kind
        }
        self._first: dict[CliqueKey, None] = {}

    def request(
        self,
        kind: Kind,
        clique: CliqueKey,
        what: int | AllocationSlice | DeviceAddress,
    ) -> None:
        """Ask for a whole allocation, named by index, slice or address.

        An index is not checked here; it fails when it is acquired.

        Raises:
            InternalStatus: no allocation contains the address; nothing is recorded.
        """
        expect(
            clique,
            CliqueKey,
            where="request",
            what="a CliqueKey",
            error=InvalidArgument,
        )
        expect(kind, Kind, where="request", what="a Kind", error=InvalidArgument)
        index = self._index(what)
        table = self._tables[kind]
        if clique not in table:
            table[clique] = (len(table), set())
            self._first[clique] = None
        table[clique][1].add(index)

    def request_all(
        self,
        kind: Kind,
        clique: CliqueKey,
        what: Iterable[int | AllocationSlice | DeviceAddress],
    ) -> None:
        """Requests in order; stops at the first error, earlier ones stay."""
        for one in what:
            self.request(kind, clique, one)

    def _index(self, what: int | AllocationSlice | DeviceAddress) -> int:
        if isinstance(what, int):
            return what
        if isinstance(what, AllocationSlice):
            return what.index
        expect(
            what,
            DeviceAddress,
            where="request",
            what="an index, a slice or an address",
            error=InvalidArgument,
        )
        index = self.buffers.find_index(what)
        if index is None:
            raise InternalStatus(
                f"no allocation contains this device address ({what.opaque:#x})"
            )
        return index

    def size(self, kind: Kind) -> int:
        """Number of cliques with requests of this kind."""
        return len(self._tables[kind])

    def ordered(self, kind: Kind) -> list[Request]:
        """Requests by (larger clique first, earlier first request)."""
        found = [
            Request(number, clique, tuple(sorted(indices)))
            for clique, (number, indices) in self._tables[kind].items()
        ]
        return sorted(found, key=lambda r: (-len(r.clique.devices), r.id))

    def requested_cliques(self, *, xla_compatible: bool = False) -> list[CliqueKey]:
        """Cliques of all kinds in order of first request, each once.

        With `xla_compatible`: symmetric, then multicast ones, repeats kept, peer
        ones left out.
        """
        if xla_compatible:
            return [
                request.clique
                for kind in (Kind.SYMMETRIC, Kind.MULTICAST)
                for request in self.ordered(kind)
            ]
        return list(self._first)
