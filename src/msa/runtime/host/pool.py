"""Host memory: owning buffers from a pool, pinned values, scratch space.

Source: `xla/pjrt/host_memory_allocator.h`, `xla/backends/gpu/runtime/`
`host_memory_pool.h`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from msa.runtime.arguments import whole
from msa.runtime.host.bfc import BFCAllocator
from msa.runtime.host.errors import LeakRecord
from msa.runtime.host.pool_options import BFCOptions, PoolStats
from msa.runtime.host.requests import DEFAULT_ALIGNMENT
from msa.runtime.host.suballocator import SimSubAllocator
from msa.runtime.host.timing import TimingCounter
from msa.runtime.sites import Site, allocation_site, format_site
from msa.runtime.status import FailedPrecondition, InvalidArgument, ResourceExhausted

_LOG = logging.getLogger("msa.runtime")
VALUE_SLOTS: Final = 128
SCRATCH_BYTES: Final = 128
SCRATCH_COUNT: Final = 1024


class MemoryKind(Enum):
    """Kinds of memory that a client may name.

    >>> len(list(MemoryKind)) > 1
    True
    """

    DEVICE = "device"
    PINNED_HOST = "pinned_host"
    UNPINNED_HOST = "unpinned_host"
    CPU_DEVICE = "cpu_device"


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """A memory of a device: pinned host memory takes part in asynchronous copies.

    >>> str(MemorySpace(3, 0, MemoryKind.PINNED_HOST))
    'PINNED_HOST_3'
    """

    id: int
    device: int
    kind: MemoryKind

    @property
    def kind_id(self) -> int:
        """A 32-bit fingerprint of the kind's name."""
        digest = blake2b(self.kind.value.encode(), digest_size=4).digest()
        return int.from_bytes(digest, "little")

    def __str__(self) -> str:
        return f"{self.kind.name}_{self.id}"


class HostBuffer:
    """Host memory that its owner releases; a context manager.

    Attributes:
        size: bytes asked for.
        pinned: whether asynchronous copies may use it directly.
        site: where it was allocated.

    >>> pool = HostMemoryPool(1 << 20)
    >>> with pool.allocate(8) as buffer:
    ...     len(buffer.data)
    8
    >>> pool.close()
    []
    """

    __slots__ = ("_data", "_release", "address", "pinned", "site", "size")

    def __init__(
        self,
        address: int,
        data: npt.NDArray[np.uint8],
        release: Callable[[], None],
        *,
        pinned: bool,
        site: Site,
    ) -> None:
        self.address = address
        self.size = len(data)
        self.pinned = pinned
        self.site = site
        self._data: npt.NDArray[np.uint8] | None = data
        self._release = release

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The bytes.

        Raises:
            FailedPrecondition: released already (the place of allocation is named).
        """
        if self._data is None:
            raise FailedPrecondition(
                "host memory is used after its release; it was allocated at "
                f"{format_site(self.site)}"
            )
        return self._data

    @property
    def released(self) -> bool:
        """Whether the memory went back."""
        return self._data is None

    def release(self) -> None:
        """Give the memory back; harmless when repeated."""
        if self._data is not None:
            self._data = None
            self._release()

    def expire(self) -> None:
        """Forget the bytes: they went back with the whole pool."""
        self._data = None

    def __enter__(self) -> HostBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class HostMemoryPool:
    """Pinned host memory in buffers, over a coalescing best-fit pool.

    Parameters:
        limit: bytes in all.
        options: of the pool underneath.
        alignment: of every buffer, a power of two.
        capacity: bytes that the simulated system has (default: the limit).
        on_map, on_unmap: called when memory starts and ends being used by a buffer.

    >>> pool = HostMemoryPool(1 << 20)
    >>> with pool.allocate(100) as buffer:
    ...     buffer.data[:] = 7
    ...     pool.stats().bytes_in_use
    256
    >>> pool.close()
    []
    """

    def __init__(
        self,
        limit: int,
        options: BFCOptions | None = None,
        *,
        alignment: int = DEFAULT_ALIGNMENT,
        capacity: int | None = None,
        name: str = "host pool",
        counter: TimingCounter | None = None,
        on_map: Callable[[int, int], None] | None = None,
        on_unmap: Callable[[int, int], None] | None = None,
    ) -> None:
        whole(limit, "HostMemoryPool", "the limit")
        self.alignment = alignment
        self._source = SimSubAllocator(capacity=limit if capacity is None else capacity)
        self.bfc = BFCAllocator(
            self._source, limit, options, name=name, counter=counter
        )
        self._on_map = on_map
        self._on_unmap = on_unmap
        self._out: dict[int, HostBuffer] = {}
        self._lock = threading.Lock()
        self._closed = False

    def allocate(
        self, size: int, *, end: Any = "lower", freed_before: int = 0
    ) -> HostBuffer:
        """A buffer of `size` bytes (0 gives an empty one that needs no release).

        Raises:
            ResourceExhausted: the pool has no room; the report tells what holds it.
            InvalidArgument: the size is negative.
            FailedPrecondition: the pool is closed.
        """
        size = whole(size, "allocate", "the size")
        freed_before = whole(freed_before, "allocate", "freed_before")
        site = allocation_site()
        if size == 0:
            empty = np.zeros(0, np.uint8)
            return HostBuffer(0, empty, lambda: None, pinned=True, site=site)
        if self._closed:
            raise FailedPrecondition(f"{self.bfc.name!r} is closed")
        address = self.bfc.allocate(
            size, self.alignment, end=end, freed_before=freed_before, site=site
        )
        if address is None:
            stats = self.bfc.stats()
            raise ResourceExhausted(
                f"{self.bfc.name!r} cannot allocate {size} bytes: {stats.bytes_in_use} "
                f"of {stats.bytes_limit} in use, largest free block "
                f"{stats.largest_free_block_bytes}",
                hint="msa.runtime.host.reports.memory_map(pool.bfc) lists the holders",
            )
        if self._on_map is not None:
            self._on_map(address, size)

        def release() -> None:
            if self._on_unmap is not None:
                self._on_unmap(address, size)
            with self._lock:
                self._out.pop(address, None)
            self.bfc.deallocate(address)

        data = self._source.view(address, size)
        buffer = HostBuffer(address, data, release, pinned=True, site=site)
        with self._lock:
            self._out[address] = buffer
        return buffer

    def stats(self) -> PoolStats:
        """Statistics of the pool underneath."""
        return self.bfc.stats()

    def leaks(self, since: int = 0) -> list[LeakRecord]:
        """Buffers not released, largest first."""
        return self.bfc.leaks(since)

    def check(self) -> None:
        """Assert the pool's invariants."""
        self.bfc.check()

    def close(self, *, strict: bool = True) -> list[LeakRecord]:
        """Return all memory; buffers not released are leaks (LeakError if strict).

        A leaked buffer counts as released: its bytes cannot be used any more, and
        releasing it is harmless.
        """
        with self._lock:
            self._closed = True
            out, self._out = self._out, {}
        for buffer in out.values():
            buffer.expire()
        return self.bfc.close(strict=strict)


class HostValue:
    """A pinned scalar; a context manager."""

    __slots__ = ("_pool", "_slot")

    def __init__(self, pool: HostValuePool, slot: int) -> None:
        self._pool: HostValuePool | None = pool
        self._slot = slot

    def get(self, dtype: Any = None) -> Any:
        """The value (raises InvalidArgument for another type)."""
        pool = self._live()
        if dtype is not None and np.dtype(dtype) != pool.dtype:
            raise InvalidArgument(f"the slot holds {pool.dtype}, not {np.dtype(dtype)}")
        return pool.block[self._slot]

    def set(self, value: Any) -> None:
        """Store a value."""
        self._live().block[self._slot] = value

    def _live(self) -> HostValuePool:
        if self._pool is None:
            raise FailedPrecondition("the host value is used after its release")
        return self._pool

    def assign(self, other: HostValue) -> None:
        """Move another slot in; the old one is released."""
        pool, other._pool = other._pool, None
        self.release()
        self._pool, self._slot = pool, other._slot

    def release(self) -> None:
        """Give the slot back; harmless when repeated."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool._give_back(self._slot)

    def __enter__(self) -> HostValue:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class HostValuePool:
    """128 scalar slots of one type in a single pinned block, reused first in, first out.

    >>> pool = HostValuePool("int32")
    >>> with pool.acquire() as value:
    ...     value.set(5)
    ...     int(value.get())
    5
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.block = np.zeros(VALUE_SLOTS, self.dtype)
        self._free = deque(range(VALUE_SLOTS))
        self._sites: dict[int, Site] = {}
        self._lock = threading.Lock()

    def acquire(self) -> HostValue:
        """A free slot.

        Raises:
            ResourceExhausted: all 128 are taken.
        """
        with self._lock:
            if not self._free:
                raise ResourceExhausted(
                    f"all {VALUE_SLOTS} host values are taken",
                    hint="lower the concurrency, or release values earlier",
                )
            slot = self._free.popleft()
            self._sites[slot] = allocation_site()
            return HostValue(self, slot)

    def _give_back(self, slot: int) -> None:
        with self._lock:
            del self._sites[slot]
            self._free.append(slot)

    def close(self) -> list[str]:
        """Places where slots still taken were acquired."""
        with self._lock:
            return [format_site(site) for _, site in sorted(self._sites.items())]


class ScratchPool:
    """1024 pinned buffers of 128 bytes, made at first use, reused last in, first out.

    >>> pool = ScratchPool()
    >>> with pool.acquire(64):
    ...     pool.outstanding
    1
    """

    def __init__(self) -> None:
        self._free: list[int] | None = None
        self._block = np.zeros(0, np.uint8)
        self._out = 0
        self._warnings = 0
        self._lock = threading.Lock()

    def acquire(self, size: int) -> HostBuffer:
        """A pinned buffer, or an unpinned one (with a warning) when none fits."""
        size = whole(size, "ScratchPool.acquire", "the size")
        site = allocation_site()
        with self._lock:
            if self._free is None:
                self._block = np.zeros(SCRATCH_BYTES * SCRATCH_COUNT, np.uint8)
                self._free = list(range(SCRATCH_COUNT - 1, -1, -1))
            if size <= SCRATCH_BYTES and self._free:
                slot = self._free.pop()
                self._out += 1
                start = slot * SCRATCH_BYTES
                return HostBuffer(
                    start,
                    self._block[start : start + size],
                    lambda: self._give_back(slot),
                    pinned=True,
                    site=site,
                )
            if self._warnings < 10:
                self._warnings += 1
                _LOG.warning("scratch of %d bytes falls back to unpinned memory", size)
        data = np.zeros(size, np.uint8)
        return HostBuffer(0, data, lambda: None, pinned=False, site=site)

    def _give_back(self, slot: int) -> None:
        with self._lock:
            assert self._free is not None
            self._free.append(slot)
            self._out -= 1

    @property
    def outstanding(self) -> int:
        """Pinned buffers not returned."""
        with self._lock:
            return self._out
