"""What an execution acquired, and how kernels find it.

Source: `xla/backends/gpu/runtime/collective_memory.h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msa.hlo.arguments import expect
from msa.runtime.collective.allocations import (
    AllocationSlice,
    BufferAllocations,
    DeviceAddress,
)
from msa.runtime.collective.clique import CliqueKey
from msa.runtime.collective.multicast import MulticastMemory
from msa.runtime.collective.symmetric import SymmetricMemory
from msa.runtime.collective.tied import Strong
from msa.runtime.status import InvalidArgument

What = int | AllocationSlice | DeviceAddress


class PeerMemory:
    """Addresses of one allocation on every rank of a local clique.

    >>> from msa.runtime.collective.allocations import DeviceAddress
    >>> PeerMemory({1: DeviceAddress(4096, 64), 0: DeviceAddress(8192, 64)}).ranks
    (0, 1)
    """

    __slots__ = ("_by_rank",)

    def __init__(self, by_rank: Mapping[int, DeviceAddress]) -> None:
        self._by_rank = dict(by_rank)

    def address(self, rank: int) -> DeviceAddress | None:
        """A rank's allocation; None for an unknown rank."""
        return self._by_rank.get(rank)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks in ascending order."""
        return tuple(sorted(self._by_rank))


class CollectiveMemory:
    """Look-ups by allocation index, slice or address of this rank.

    An address is resolved against this rank's buffers and only its offset is carried
    to the others: the same slice has the same offset everywhere. What was not
    requested is not found, which is a value, not an error. Look-ups by index or
    slice take O(1), by address linear in the number of allocations.

    >>> from msa.runtime.collective import BufferAllocations, CliqueKey, DeviceAddress
    >>> memory = CollectiveMemory(BufferAllocations([DeviceAddress(4096, 64)]))
    >>> memory.find_peer(CliqueKey.local(0, 1), 0, 0) is None
    True
    """

    def __init__(self, buffers: BufferAllocations) -> None:
        self._buffers = buffers
        self._symmetric: dict[tuple[CliqueKey, int], tuple[SymmetricMemory, int]] = {}
        self._multicast: dict[
            tuple[CliqueKey, int], tuple[MulticastMemory, DeviceAddress, int]
        ] = {}
        self._peer: dict[tuple[CliqueKey, int], PeerMemory] = {}
        self._strong: list[Strong[Any]] = []

    # -- filling -------------------------------------------------------------------

    def keep(self, strong: Strong[Any]) -> None:
        """Hold a reference until `close`."""
        self._strong.append(strong)

    def add_symmetric(
        self, clique: CliqueKey, index: int, memory: SymmetricMemory, offset: int
    ) -> None:
        """Allocation `index` lies at `offset` of a window."""
        self._symmetric[clique, index] = (memory, offset)

    def add_multicast(
        self,
        clique: CliqueKey,
        index: int,
        memory: MulticastMemory,
        address: DeviceAddress,
        offset: int,
    ) -> None:
        """Allocation `index` lies at `offset` of this rank's multimem range."""
        self._multicast[clique, index] = (memory, address, offset)

    def add_peer(
        self, clique: CliqueKey, index: int, by_rank: Mapping[int, DeviceAddress]
    ) -> None:
        """Where allocation `index` lies on every rank."""
        self._peer[clique, index] = PeerMemory(by_rank)

    # -- look-ups --------------------------------------------------------------------

    def _resolve(self, what: What) -> tuple[int, int, int | None] | None:
        """(allocation, offset in it, size or None for the whole)."""
        if isinstance(what, int):
            return what, 0, None
        if isinstance(what, AllocationSlice):
            return what.index, what.offset, what.size
        if hasattr(what, "__index__"):  # numpy's integers
            return int(what), 0, None
        expect(
            what,
            DeviceAddress,
            where="find",
            what="an index, a slice or an address",
            error=InvalidArgument,
        )
        index = self._buffers.find_index(what)
        if index is None:
            return None
        base = self._buffers.address(index)
        return index, what.opaque - base.opaque, what.size

    def find_symmetric(
        self, clique: CliqueKey, what: What
    ) -> tuple[SymmetricMemory | None, int]:
        """The window and the offset of `what` in it; `(None, 0)` when not found."""
        place = self._resolve(what)
        entry = None if place is None else self._symmetric.get((clique, place[0]))
        if place is None or entry is None:
            return None, 0
        return entry[0], entry[1] + place[1]

    def find_multimem(
        self, clique: CliqueKey, what: What
    ) -> tuple[DeviceAddress | None, int]:
        """This rank's multimem base and the offset; `(None, 0)` when not found."""
        place = self._resolve(what)
        entry = None if place is None else self._multicast.get((clique, place[0]))
        if place is None or entry is None:
            return None, 0
        return entry[1], entry[2] + place[1]

    def find_multicast(self, clique: CliqueKey, index: int) -> MulticastMemory | None:
        """The multicast object of an allocation."""
        entry = self._multicast.get((clique, index))
        return None if entry is None else entry[0]

    def find_peer(
        self, clique: CliqueKey, rank: int, what: What
    ) -> DeviceAddress | None:
        """A rank's allocation, narrowed to the slice; None when not found.

        Raises:
            OutOfRange: the slice leaves the peer's allocation.
        """
        place = self._resolve(what)
        peers = None if place is None else self._peer.get((clique, place[0]))
        if place is None or peers is None:
            return None
        whole = peers.address(rank)
        if whole is None or place[2] is None:
            return whole
        return whole.slice(place[1], place[2])

    def close(self) -> None:
        """Let go of everything that was acquired; harmless when repeated."""
        strong, self._strong = self._strong, []
        for one in strong:
            one.close()
