"""Symmetric windows: the same buffer on every rank, registered together.

Source: `xla/core/collectives/symmetric_memory.h`,
`xla/backends/gpu/collectives/nccl_symmetric_memory.cc`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msa.runtime.arguments import whole
from msa.runtime.collective.allocations import DeviceAddress
from msa.runtime.collective.multicast import MulticastMemory, create_multicast_memory
from msa.runtime.status import (
    FailedPrecondition,
    InvalidArgument,
    OutOfRange,
    Unimplemented,
)

if TYPE_CHECKING:
    from msa.runtime.collective.cliques import Clique


@dataclass(frozen=True, slots=True)
class _Offer:
    rank: int
    address: DeviceAddress
    pool_offset: int


class Window:
    """What all ranks registered: a base address per rank, of one size.

    The window lives until the last rank closes its handle.

    >>> Window((DeviceAddress(4096, 64), DeviceAddress(8192, 64)), (), None).bases[1].size
    64
    """

    __slots__ = ("_lock", "_open", "bases", "multicast", "multimem")

    def __init__(
        self,
        bases: tuple[DeviceAddress, ...],
        multimem: tuple[DeviceAddress, ...],
        multicast: MulticastMemory | None,
    ) -> None:
        self.bases = bases
        self.multimem = multimem
        self.multicast = multicast
        self._open = set(range(len(bases)))
        self._lock = threading.Lock()

    def close(self, rank: int) -> None:
        """One rank is done; the last takes the multicast object down."""
        with self._lock:
            self._open.discard(rank)
            last = not self._open
        if last and self.multicast is not None:
            self.multicast.close()


class SymmetricMemory:
    """One rank's handle of a window.

    >>> from msa.runtime.collective import (
    ...     AcquireParams, BufferAllocations, CliqueKey, CliqueTable,
    ...     CollectiveMemoryRequests, DeviceWorld, Kind, execute_stages, launch)
    >>> world, key = DeviceWorld(2, granularity=4096), CliqueKey.local(0, 1)
    >>> table = CliqueTable(world)
    >>> buffers = [
    ...     BufferAllocations([world.allocate(d, 4096, collective=True)]) for d in (0, 1)]
    >>> def run(body):
    ...     def rank(device):
    ...         requests = CollectiveMemoryRequests(buffers[device])
    ...         requests.request_all(Kind.SYMMETRIC, key, [0])
    ...         return execute_stages(
    ...             table, AcquireParams(world, device), requests,
    ...             lambda stage: body(stage, device), local_devices=2)
    ...     return [outcome.unwrap() for outcome in launch([0, 1], rank)]
    >>> run(lambda stage, device: stage.memory.find_symmetric(key, 0)[0].peer_addr(1 - device).size)
    [4096, 4096]
    """

    __slots__ = ("_clique", "_rank", "window")

    def __init__(self, clique: Clique, rank: int, window: Window) -> None:
        self._clique = clique
        self._rank = rank
        self.window = window

    def addr(self) -> DeviceAddress:
        """This rank's own memory."""
        return self.window.bases[self._rank]

    def multimem_addr(self) -> DeviceAddress:
        """Multicast address of the window, of the same size.

        Raises:
            Unimplemented: the platform or the team has no multicast.
        """
        if not self.window.multimem:
            raise Unimplemented(
                "this window has no multicast address",
                where=f"clique {self._clique.key}",
            )
        return self.window.multimem[self._rank]

    def peer_addr(self, rank: int) -> DeviceAddress:
        """Another rank's memory, for loads and stores.

        Raises:
            InvalidArgument: no such rank.
            FailedPrecondition: that rank is not load/store accessible.
        """
        devices = self._clique.key.devices
        if not 0 <= rank < len(devices):
            raise InvalidArgument(f"rank {rank} is not in a clique of {len(devices)}")
        if not self._clique.same_domain(self._rank, rank):
            raise FailedPrecondition(
                f"rank {rank} is not load/store accessible from rank {self._rank}"
            )
        return self.window.bases[rank]

    def kernel_arg(self) -> int:
        """Opaque handle for kernels: the local address."""
        return self.addr().opaque

    def put(self, source: DeviceAddress, offset: int, size: int, peer: int) -> None:
        """Copy local bytes into a peer's window.

        Raises:
            InvalidArgument: no such rank.
            OutOfRange: source or destination are too short.
        """
        peer = whole(peer, "put", "the rank", most=len(self.window.bases) - 1)
        target = self.window.bases[peer]
        if size > source.size or offset < 0 or offset + size > target.size:
            raise OutOfRange(
                f"cannot put {size} of {source.size} bytes at offset {offset} of a "
                f"window of {target.size} bytes"
            )
        world, me = self._clique.world, self._clique.key.devices[self._rank]
        owner = self._clique.key.devices[peer]
        data = world.memory.resolve(source.slice(0, size), me, write=False).copy()
        world.memory.resolve(target.slice(offset, size), owner)[:] = data

    def close(self) -> None:
        """Give this rank's part of the window up."""
        self.window.close(self._rank)

    def __str__(self) -> str:
        return f"symmetric window of {self.addr().size} bytes, rank {self._rank}"


def register_window(
    clique: Clique, rank: int, address: DeviceAddress, pool_base: int = 0
) -> SymmetricMemory:
    """Register this rank's buffer; collective over all ranks of the clique.

    Raises:
        InvalidArgument: sizes, or offsets from the ranks' pool bases, differ.
        RendezvousTimeout: a rank is missing.

    >>> from msa.runtime.collective import (
    ...     AcquireParams, BufferAllocations, CliqueKey, CliqueTable,
    ...     CollectiveMemoryRequests, DeviceWorld, Kind, execute_stages, launch)
    >>> world, key = DeviceWorld(2, granularity=4096), CliqueKey.local(0, 1)
    >>> table = CliqueTable(world)
    >>> buffers = [
    ...     BufferAllocations([world.allocate(d, 4096, collective=True)]) for d in (0, 1)]
    >>> def run(body):
    ...     def rank(device):
    ...         requests = CollectiveMemoryRequests(buffers[device])
    ...         requests.request_all(Kind.SYMMETRIC, key, [0])
    ...         return execute_stages(
    ...             table, AcquireParams(world, device), requests,
    ...             lambda stage: body(stage, device), local_devices=2)
    ...     return [outcome.unwrap() for outcome in launch([0, 1], rank)]
    >>> run(lambda stage, device: register_window(
    ...     stage.cliques[key], device, buffers[device].address(0)).addr().size)
    [4096, 4096]
    """
    key = clique.key
    number = clique.next_registration(rank)
    window = clique.meet(
        "symmetric",
        number,
        rank,
        _Offer(rank, address, address.opaque - pool_base if pool_base else 0),
        lambda offers: _make_window(clique, offers),
        count=len(key.devices),
    )
    return SymmetricMemory(clique, rank, window)


def _make_window(clique: Clique, offers: list[_Offer]) -> Window:
    offers = sorted(offers, key=lambda offer: offer.rank)
    sizes = {offer.rank: offer.address.size for offer in offers}
    if len(set(sizes.values())) > 1:
        rows = ", ".join(f"rank {r}: {n}" for r, n in sizes.items())
        raise InvalidArgument(f"ranks registered different sizes ({rows})")
    offsets = {offer.rank: offer.pool_offset for offer in offers}
    if clique.require_symmetric_offsets and len(set(offsets.values())) > 1:
        rows = ", ".join(f"rank {r}: {n}" for r, n in offsets.items())
        raise InvalidArgument(
            f"ranks registered different offsets in their pools ({rows})",
            hint="allocate collective buffers in the same order on every rank",
        )
    bases = tuple(offer.address for offer in offers)
    multicast, multimem = _window_multicast(clique, bases)
    return Window(bases, multimem, multicast)


def _window_multicast(
    clique: Clique, bases: tuple[DeviceAddress, ...]
) -> tuple[MulticastMemory | None, tuple[DeviceAddress, ...]]:
    """Back the window by multicast when the whole team can; else do without."""
    world, devices = clique.world, clique.key.devices
    together = all(clique.same_domain(0, r) for r in range(len(devices)))
    step = world.granularity
    if not (world.supports_multicast and together and len(devices) > 1):
        return None, ()
    for base in bases:
        entry = world.memory.lookup(base.opaque, 1)
        physical = entry.physical
        offset = entry.offset + base.opaque - entry.address
        fits = (
            physical is not None
            and physical.collective
            and offset % step == 0
            and offset + -(-base.size // step) * step <= physical.size
        )
        if not fits:
            return None, ()
    multicast = create_multicast_memory(world, bases[0].size, len(devices))
    for device in devices:
        multicast.subscribe(device)
    addresses = tuple(
        multicast.map(base, device) for base, device in zip(bases, devices, strict=True)
    )
    return multicast, addresses
