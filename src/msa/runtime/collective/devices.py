"""Simulated devices: one flat address space over numpy-backed physical memory.

Device *d* maps from `(d + 1) << 40`; multicast ranges lie in a region of their own.
Address 0 is never mapped. Source of the rules: `xla/stream_executor/cuda/`
`cuda_executor.cc`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from sortedcontainers import SortedDict

from msa.hlo.arguments import expect
from msa.runtime.arguments import whole
from msa.runtime.collective.allocations import NULL, DeviceAddress
from msa.runtime.sites import UNKNOWN_SITE, Site, allocation_site, format_site
from msa.runtime.status import (
    AccessDenied,
    CrossesMapping,
    FailedPrecondition,
    InvalidArgument,
    ResourceExhausted,
    UnmappedAddress,
    UseAfterUnmap,
)

if TYPE_CHECKING:
    from msa.runtime.collective.multicast import MulticastMemory

POISON_BYTE: Final = 0xCD
MULTICAST_BASE: Final = 1 << 60
_DEVICE_SHIFT: Final = 40
Bytes = npt.NDArray[np.uint8]


@dataclass(eq=False, slots=True)
class PhysicalAllocation:
    """Backing bytes on one device; new memory holds the poison byte.

    Attributes:
        bound: multicast objects that still bind it; it cannot be freed before.
        waste: padded bytes beyond what was asked for.
        site: where it was allocated.
    """

    handle: int
    device: int
    size: int
    collective: bool
    waste: int
    data: Bytes
    site: Site
    bound: set[MulticastMemory] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class Mapped:
    """A mapped virtual range; `rights` maps device → may write.

    `site` is where the memory under it was allocated.
    """

    address: int
    size: int
    physical: PhysicalAllocation | None
    offset: int
    rights: dict[int, bool]
    site: Site
    multicast: MulticastMemory | None = None


LARGEST_ALLOCATION: Final = 1 << 40
"""Simulated memory is real: a device's addresses leave room for this much."""


def round_up(value: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-value // step) * step


class AddressSpace:
    """Virtual ranges of all devices; every access is checked.

    Invariant: mapped ranges do not overlap (`check`). Look-ups cost O(log n).

    >>> AddressSpace().mapped_ranges
    0
    """

    __slots__ = ("_handles", "_lock", "_mapped", "_next", "_retired", "trace")

    def __init__(self) -> None:
        self._mapped: Any = SortedDict()
        self._retired: Any = SortedDict()
        self._next: dict[int, int] = {}
        self._handles = 0
        self._lock = threading.RLock()
        self.trace: list[tuple[str, int, int]] = []

    def note(self, event: str, device: int, what: int) -> None:
        """Record an event `(name, device, handle or address)`."""
        with self._lock:
            self.trace.append((event, device, what))

    def new_handle(self) -> int:
        """A fresh number for a physical or multicast object."""
        with self._lock:
            self._handles += 1
            return self._handles

    def reserve(self, device: int, size: int, alignment: int) -> int:
        """A fresh virtual range of a device (-1: the multicast region).

        Raises:
            ResourceExhausted: the device's part of the address space is used up.
        """
        base = MULTICAST_BASE if device < 0 else (device + 1) << _DEVICE_SHIFT
        with self._lock:
            address = round_up(self._next.get(device, base + alignment), alignment)
            after = address + round_up(max(size, 1), alignment)
            if device >= 0 and after > base + (1 << _DEVICE_SHIFT):
                raise ResourceExhausted(
                    f"device {device} has no {size} consecutive addresses left",
                    hint="virtual ranges are not used again; begin a new DeviceWorld",
                )
            self._next[device] = after
            return address

    def map(
        self,
        address: int,
        size: int,
        physical: PhysicalAllocation | None,
        offset: int = 0,
        multicast: MulticastMemory | None = None,
        site: Site = UNKNOWN_SITE,
    ) -> Mapped:
        """Map a reserved range; nobody has access yet."""
        if physical is not None:
            site = physical.site
        with self._lock:
            entry = Mapped(address, size, physical, offset, {}, site, multicast)
            self._mapped[address] = entry
            self._retired.pop(address, None)
            return entry

    def set_access(self, address: int, device: int, *, write: bool = True) -> None:
        """Grant a device access to a mapped range."""
        self.lookup(address, 1).rights[device] = write

    def unmap(self, address: int) -> None:
        """Remove a mapping; later accesses are reported as use after unmap."""
        with self._lock:
            entry = self._mapped.pop(address, None)
            if entry is None:
                raise UnmappedAddress(f"nothing is mapped at {address:#x}")
            self._retired[address] = (entry.size, entry.site)

    def lookup(self, address: int, size: int) -> Mapped:
        """The mapping that holds the whole range.

        Raises:
            UnmappedAddress, UseAfterUnmap, CrossesMapping: as named.
        """
        with self._lock:
            place = self._mapped.bisect_right(address) - 1
            if place >= 0:
                entry: Mapped = self._mapped.peekitem(place)[1]
                if address < entry.address + entry.size:
                    if address + size > entry.address + entry.size:
                        raise CrossesMapping(
                            f"[{address:#x}, {address + size:#x}) leaves the mapping "
                            f"of {entry.size} bytes at {entry.address:#x}"
                        )
                    return entry
            place = self._retired.bisect_right(address) - 1
            if place >= 0:
                start, (length, site) = self._retired.peekitem(place)
                if address < start + length:
                    raise UseAfterUnmap(
                        f"{address:#x} was unmapped; it was allocated at "
                        f"{format_site(site)}"
                    )
        raise UnmappedAddress(f"nothing is mapped at {address:#x}")

    def check_rights(self, entry: Mapped, accessor: int, *, write: bool) -> None:
        """Raise AccessDenied unless the device may do this."""
        right = entry.rights.get(accessor)
        if right is None or (write and not right):
            verb = "write" if write else "read"
            raise AccessDenied(
                f"device {accessor} may not {verb} the mapping at {entry.address:#x}"
            )

    def resolve(
        self, address: DeviceAddress, accessor: int, *, write: bool = True
    ) -> Bytes:
        """A view of the bytes, for a device that has access.

        Raises:
            AccessDenied: the device has no rights there.
            UnmappedAddress, UseAfterUnmap, CrossesMapping: as named.
        """
        entry = self.lookup(address.opaque, address.size)
        self.check_rights(entry, accessor, write=write)
        if entry.physical is None:
            raise AccessDenied(
                f"{address.opaque:#x} is a multicast range",
                hint="use the multimem operations",
            )
        start = entry.offset + address.opaque - entry.address
        return entry.physical.data[start : start + address.size]

    def check(self) -> None:
        """Assert the invariant."""
        with self._lock:
            entries = list(self._mapped.values())
        for a, b in itertools.pairwise(entries):
            assert a.address + a.size <= b.address, "mappings overlap"

    @property
    def mapped_ranges(self) -> int:
        """Number of live mappings, for leak checks."""
        with self._lock:
            return len(self._mapped)


class DeviceWorld:
    """Simulated devices of one or more processes.

    Parameters:
        count: number of devices.
        granularity: bytes; collective memory and multicast come in such steps.
        can_access: `(i, j)` → may device i reach j's memory; all true by default.
        processes: process of each device; one process by default.
        supports_multicast: whether multicast objects exist here.
        enable_peer_access: collective memory grants its peers access at creation.

    >>> world = DeviceWorld(2, granularity=4096)
    >>> address = world.allocate(0, 100, collective=True)
    >>> world.memory.resolve(address, accessor=1)[:] = 7
    >>> int(world.memory.resolve(address, accessor=0).sum())
    700
    """

    def __init__(
        self,
        count: int,
        *,
        granularity: int = 2 << 20,
        can_access: Mapping[tuple[int, int], bool] | None = None,
        processes: tuple[int, ...] | None = None,
        supports_multicast: bool = True,
        enable_peer_access: bool = True,
    ) -> None:
        where = "DeviceWorld"
        count = whole(count, where, "the number of devices", least=1, most=1 << 16)
        granularity = whole(granularity, where, "the granularity", least=1)
        if processes is not None and len(processes) != count:
            raise InvalidArgument(
                f"{count} devices but {len(processes)} processes", where="DeviceWorld"
            )
        if granularity & (granularity - 1):
            raise InvalidArgument(f"granularity {granularity} is not a power of two")
        self.count = count
        self.granularity = granularity
        self.processes = processes or (0,) * count
        self.supports_multicast = supports_multicast
        self.enable_peer_access = enable_peer_access
        self.memory = AddressSpace()
        self._can_access = dict(can_access or {})
        self._owned: dict[int, PhysicalAllocation] = {}
        self._freed: dict[int, Site] = {}
        self._lock = threading.Lock()

    def can_access(self, device: int, peer: int) -> bool:
        """Static capability; a device reaches itself, unknown ordinals nobody."""
        if not (0 <= device < self.count and 0 <= peer < self.count):
            return False
        return device == peer or self._can_access.get((device, peer), True)

    def allocate(
        self,
        device: int,
        size: int,
        *,
        collective: bool = False,
        alignment: int = 256,
    ) -> DeviceAddress:
        """Memory of a device; size 0 gives the null address.

        Collective memory is padded to the granularity and, with peer access
        enabled, open to every device that can reach it.

        Raises:
            InvalidArgument: no such device, size or alignment.
            ResourceExhausted: neither memory nor addresses for so many bytes.
        """
        device = whole(device, "allocate", "the device", most=self.count - 1)
        size = whole(size, "allocate", "the size", most=LARGEST_ALLOCATION)
        alignment = whole(alignment, "allocate", "the alignment", least=1)
        if size == 0:
            return NULL
        step = max(alignment, self.granularity) if collective else alignment
        padded = round_up(size, step)
        memory = self.memory
        address = memory.reserve(device, padded, step)
        try:
            data = np.full(padded, POISON_BYTE, np.uint8)
        except MemoryError:
            raise ResourceExhausted(
                f"no memory to simulate {padded} bytes of device {device}"
            ) from None
        physical = PhysicalAllocation(
            memory.new_handle(),
            device,
            padded,
            collective,
            padded - size,
            data,
            allocation_site(),
        )
        memory.map(address, padded, physical)
        memory.set_access(address, device)
        if collective and self.enable_peer_access:
            for other in range(self.count):
                if self.can_access(other, device):
                    memory.set_access(address, other)
        with self._lock:
            self._owned[address] = physical
        return DeviceAddress(address, size)

    def free(self, address: DeviceAddress) -> None:
        """Give memory back: unmap, then release the physical, then the range.

        Raises:
            FailedPrecondition: a multicast object still binds it.
            InvalidArgument: the address was not allocated, or is freed already.
        """
        expect(
            address,
            DeviceAddress,
            where="free",
            what="a DeviceAddress",
            error=InvalidArgument,
        )
        if address.is_null:
            return
        with self._lock:
            physical = self._owned.get(address.opaque)
            if physical is None:
                site = self._freed.get(address.opaque)
                if site is not None:
                    raise InvalidArgument(
                        f"{address.opaque:#x} was freed already; it was allocated at "
                        f"{format_site(site)}"
                    )
                raise InvalidArgument(
                    f"{address.opaque:#x} is not the start of an allocation"
                )
            if physical.bound:
                raise FailedPrecondition(
                    f"memory at {address.opaque:#x} is still bound to "
                    f"{len(physical.bound)} multicast object(s)",
                    hint="close the multicast memory first",
                )
            del self._owned[address.opaque]
            self._freed[address.opaque] = physical.site
        memory = self.memory
        memory.note("unmap", physical.device, address.opaque)
        memory.unmap(address.opaque)
        memory.note("release physical", physical.device, physical.handle)
        memory.note("release range", physical.device, address.opaque)

    @property
    def live_allocations(self) -> list[DeviceAddress]:
        """Allocations not freed yet, by address."""
        with self._lock:
            return [
                DeviceAddress(address, physical.size - physical.waste)
                for address, physical in sorted(self._owned.items())
            ]

    def device_of(self, address: DeviceAddress) -> int:
        """The device that owns an allocation, -1 if it is not live."""
        with self._lock:
            physical = self._owned.get(address.opaque)
            return -1 if physical is None else physical.device

    def leaks(self) -> list[str]:
        """Allocations not freed yet, with the place of each."""
        with self._lock:
            return [
                f"{physical.size - physical.waste} B of device {physical.device} from "
                f"{format_site(physical.site)}"
                for _, physical in sorted(self._owned.items())
            ]

    def peer_access_enabled(self, devices: tuple[int, ...]) -> bool:
        """Whether every ordered pair of one process's devices can be enabled."""
        if len({self.processes[d] for d in devices}) > 1:
            return False
        return all(self.can_access(i, j) for i in devices for j in devices)

    def write(self, address: DeviceAddress, values: npt.NDArray[Any], by: int) -> None:
        """Store an array's bytes at the start of a range.

        Raises:
            OutOfRange: the range is shorter than the array.
        """
        raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
        self.memory.resolve(address.slice(0, raw.size), by)[:] = raw

    def read(
        self, address: DeviceAddress, dtype: Any, count: int, by: int
    ) -> npt.NDArray[Any]:
        """A copy of `count` elements at the start of a range.

        Raises:
            OutOfRange: the range is shorter than that.
        """
        size = np.dtype(dtype).itemsize * whole(count, "read", "the count")
        view = self.memory.resolve(address.slice(0, size), by, write=False)
        return view.copy().view(dtype)
