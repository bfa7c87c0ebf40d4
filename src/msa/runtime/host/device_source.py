"""Regions of a simulated device's memory, for the pools that share it out."""

from __future__ import annotations

from msa.runtime.collective.allocations import DeviceAddress
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.status import UnmappedAddress


class DeviceSubAllocator:
    """Supplies a pool with collective memory of one device.

    What the pool hands out can then be mapped for multicast and peers and registered
    as symmetric memory, provided its addresses are multiples of the granularity.

    Parameters:
        world: the simulated devices.
        device: whose memory.

    Complexity: O(log n) per region.

    >>> from msa.runtime.collective import DeviceWorld
    >>> source = DeviceSubAllocator(DeviceWorld(1, granularity=4096), 0)
    >>> base, size = source.alloc(256, 5000)
    >>> base % 4096, size
    (0, 5000)
    >>> source.free(base, size)
    """

    supports_coalescing = False

    def __init__(self, world: DeviceWorld, device: int) -> None:
        self._world = world
        self._device = device
        self._regions: dict[int, int] = {}

    @property
    def base(self) -> int:
        """Lowest address of a live region: the base that offsets are counted from.

        Raises:
            UnmappedAddress: there is no region yet.
        """
        if not self._regions:
            raise UnmappedAddress(
                f"the pool of device {self._device} has no memory yet"
            )
        return min(self._regions)

    def alloc(self, alignment: int, size: int) -> tuple[int, int] | None:
        """A region at a multiple of the granularity and of `alignment`."""
        address = self._world.allocate(
            self._device, size, collective=True, alignment=alignment
        )
        self._regions[address.opaque] = size
        return address.opaque, size

    def free(self, base: int, size: int) -> None:
        """Give a region back.

        Raises:
            UnmappedAddress: it is no region of this source.
            FailedPrecondition: a multicast object still binds it.
        """
        if self._regions.get(base) != size:
            raise UnmappedAddress(f"{base:#x} is not a region of {size} bytes")
        self._world.free(DeviceAddress(base, size))
        del self._regions[base]
