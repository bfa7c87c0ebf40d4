"""Host memory and transfers: pools, streams on a virtual clock, copies."""

from __future__ import annotations

from msa.runtime.host.annotations import allocation_scope
from msa.runtime.host.async_transfer import (
    AsyncTransferManager,
    DeviceBuffer,
    TransferEvent,
)
from msa.runtime.host.bfc import BFCAllocator
from msa.runtime.host.device_source import DeviceSubAllocator
from msa.runtime.host.errors import DoubleFree, InvalidPointer, LeakError, LeakRecord
from msa.runtime.host.pool import (
    HostBuffer,
    HostMemoryPool,
    HostValuePool,
    MemoryKind,
    MemorySpace,
    ScratchPool,
)
from msa.runtime.host.pool_options import BFCOptions, PoolStats
from msa.runtime.host.queue import MemoryRange, Transfer, TransferQueue
from msa.runtime.host.streams import SimEvent, SimStream, Simulation, TransferModel
from msa.runtime.host.suballocator import SimSubAllocator
from msa.runtime.host.transfer import ShapedBuffer, TransferManager
from msa.runtime.host.wiring import (
    AllocatorConfig,
    MultiDeviceAllocator,
    build_allocators,
)

__all__ = [
    "AllocatorConfig",
    "AsyncTransferManager",
    "BFCAllocator",
    "BFCOptions",
    "DeviceBuffer",
    "DeviceSubAllocator",
    "DoubleFree",
    "HostBuffer",
    "HostMemoryPool",
    "HostValuePool",
    "InvalidPointer",
    "LeakError",
    "LeakRecord",
    "MemoryKind",
    "MemoryRange",
    "MemorySpace",
    "MultiDeviceAllocator",
    "PoolStats",
    "ScratchPool",
    "ShapedBuffer",
    "SimEvent",
    "SimStream",
    "SimSubAllocator",
    "Simulation",
    "Transfer",
    "TransferEvent",
    "TransferManager",
    "TransferModel",
    "TransferQueue",
    "allocation_scope",
    "build_allocators",
]
