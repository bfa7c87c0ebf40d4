"""Which allocator serves which device and colour.

Source: `xla/pjrt/gpu/gpu_helpers.cc`, `se_gpu_pjrt_client.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msa.runtime.collective.allocations import DeviceAddress
from msa.runtime.host.bfc import BFCAllocator
from msa.runtime.host.pool_options import BFCOptions
from msa.runtime.host.requests import End
from msa.runtime.host.suballocator import SimSubAllocator, SubAllocator
from msa.runtime.status import InvalidArgument, NotFound, ResourceExhausted

DEFAULT, COLLECTIVE, TEMP, HOST = 0, 1, 2, 5
HOST_POOL_NAME: Final = "xla_gpu_host_bfc"
_GIB: Final = 1 << 30
_DEVICE_SHIFT: Final = 40


@dataclass(frozen=True, slots=True)
class AllocatorConfig:
    """How a device's memory is shared out; sizes in bytes.

    Attributes:
        total_bytes: memory of the device.
        fraction: share of it for the default colour.
        preallocate: take it at once, without growth.
        collective_bytes: for collective memory; 0 means `(1 - fraction) · total`.
        spatial_partitioning: collective memory is the upper end of the shared pool.
        granularity: minimum alignment of collective memory.
        temp_coloring: temporaries have an allocator of their own.
        host_limit_gib: of pinned host memory; 0 means 16 if preallocating, else 64.

    >>> AllocatorConfig(total_bytes=1 << 30).fraction
    0.75
    """

    total_bytes: int
    fraction: float = 0.75
    preallocate: bool = False
    collective_bytes: int = 0
    spatial_partitioning: bool = False
    granularity: int = 2 << 20
    temp_coloring: bool = False
    host_limit_gib: int = 0


@dataclass(frozen=True, slots=True)
class ColorAllocator:
    """A pool, the end of it that a colour takes, and the least alignment."""

    pool: BFCAllocator
    end: End = "lower"
    alignment: int = 256

    def allocate(self, size: int) -> DeviceAddress:
        """An address, or ResourceExhausted."""
        if size == 0:
            return DeviceAddress(0, 0)
        address = self.pool.allocate(size, self.alignment, end=self.end)
        if address is None:
            raise ResourceExhausted(f"{self.pool.name!r} has no room for {size} bytes")
        return DeviceAddress(address, size)


def build_allocators(
    device: int, config: AllocatorConfig, source: SubAllocator | None = None
) -> dict[int, ColorAllocator]:
    """Allocators of a device by colour (0 default, 1 collective, 2 temp, 5 host).

    Raises:
        InvalidArgument: partitioning without preallocation.

    >>> sorted(build_allocators(0, AllocatorConfig(total_bytes=1 << 30)))
    [0, 1, 5]
    """
    if config.spatial_partitioning and not config.preallocate:
        raise InvalidArgument(
            "spatial partitioning needs preallocation: both ends share one fixed range"
        )
    base = (device + 1) << _DEVICE_SHIFT
    main = int(config.fraction * config.total_bytes)
    rest = config.collective_bytes or config.total_bytes - main
    options = BFCOptions(
        allow_growth=not config.preallocate,
        enable_spatial_partitioning=config.spatial_partitioning,
    )
    limit = main + rest if config.spatial_partitioning else main
    memory = source or SimSubAllocator(base, config.total_bytes)
    shared = BFCAllocator(memory, limit, options, name=f"device {device}")
    allocators = {DEFAULT: ColorAllocator(shared)}
    if config.spatial_partitioning:
        collective = ColorAllocator(shared, "upper", config.granularity)
    else:
        pool = BFCAllocator(
            SimSubAllocator(base + (1 << 38), rest),
            rest,
            BFCOptions(allow_growth=not config.preallocate),
            name=f"collective memory of device {device}",
        )
        collective = ColorAllocator(pool, alignment=config.granularity)
    allocators[COLLECTIVE] = collective
    if config.temp_coloring:
        temp = BFCAllocator(
            SimSubAllocator(base + (1 << 39), config.total_bytes),
            config.total_bytes,
            name=f"temporaries of device {device}",
        )
        allocators[TEMP] = ColorAllocator(temp)
    gib = config.host_limit_gib or (16 if config.preallocate else 64)
    host = BFCAllocator(SimSubAllocator(1 << 30), gib * _GIB, name=HOST_POOL_NAME)
    allocators[HOST] = ColorAllocator(host)
    return allocators


class MultiDeviceAllocator:
    """Routes `(device, colour)` to its allocator.

    >>> allocators = build_allocators(0, AllocatorConfig(total_bytes=1 << 30))
    >>> allocator = MultiDeviceAllocator({0: allocators})
    """

    __slots__ = ("_by_pair",)

    def __init__(self, by_device: Mapping[int, Mapping[int, ColorAllocator]]) -> None:
        self._by_pair = {
            (device, color): allocator
            for device, colors in by_device.items()
            for color, allocator in colors.items()
        }

    def allocate(self, device: int, size: int, color: int = DEFAULT) -> DeviceAddress:
        """Memory of a colour on a device.

        Raises:
            NotFound: nothing serves this pair.
            ResourceExhausted: its pool has no room.
        """
        return self._find(device, color).allocate(size)

    def deallocate(
        self, device: int, address: DeviceAddress, color: int = DEFAULT
    ) -> None:
        """Give memory back to the pair's pool."""
        if not address.is_null:
            self._find(device, color).pool.deallocate(address.opaque)

    def _find(self, device: int, color: int) -> ColorAllocator:
        found = self._by_pair.get((device, color))
        if found is None:
            raise NotFound(f"no allocator serves colour {color} on device {device}")
        return found
