"""Where pools get their regions from: simulated ranges over numpy memory."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sortedcontainers import SortedDict

from msa.runtime.host.chunks import QUANTUM, round_up
from msa.runtime.status import UnmappedAddress


class SubAllocator(Protocol):
    """Supplies regions aligned to at least 256 bytes."""

    supports_coalescing: bool

    def alloc(self, alignment: int, size: int) -> tuple[int, int] | None:
        """(base, received bytes), or None when refused."""
        ...

    def free(self, base: int, size: int) -> None:
        """Take a region back."""
        ...


class SimSubAllocator:
    """A simulated range of addresses with numpy memory behind each region.

    Parameters:
        base: first address.
        capacity: bytes available in all.
        hard_alignment: fixed alignment that ignores what is asked for.
        fail_after: refuse after so many successful calls.
        supports_coalescing: consecutive regions touch and may be joined.

    >>> source = SimSubAllocator(1 << 20, 4096)
    >>> source.alloc(256, 1000), source.alloc(256, 4096)
    ((1048576, 1000), None)
    """

    def __init__(
        self,
        base: int = 1 << 20,
        capacity: int = 1 << 40,
        *,
        hard_alignment: int | None = None,
        fail_after: int | None = None,
        supports_coalescing: bool = False,
    ) -> None:
        self.supports_coalescing = supports_coalescing
        self.capacity = capacity
        self.outstanding = 0
        self._alignment = hard_alignment
        self._calls_left = fail_after
        self._next = base
        self._memory: Any = SortedDict()

    def alloc(self, alignment: int, size: int) -> tuple[int, int] | None:
        """The next range; consecutive ones touch only when coalescing."""
        if self.outstanding + size > self.capacity or self._calls_left == 0:
            return None
        if self._calls_left is not None:
            self._calls_left -= 1
        step = max(self._alignment or alignment, QUANTUM)
        base = round_up(self._next, step)
        spacing = 0 if self.supports_coalescing else QUANTUM
        self._next = base + round_up(size) + spacing
        self.outstanding += size
        # Zeroed pages are mapped by the system on first touch.
        self._memory[base] = np.zeros(size, np.uint8)
        return base, size

    def free(self, base: int, size: int) -> None:
        """Drop a region (joined regions come back part by part)."""
        memory = self._memory.pop(base, None)
        if memory is None or len(memory) != size:
            raise UnmappedAddress(f"{base:#x} is not a region of {size} bytes")
        self.outstanding -= size

    def view(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        """The bytes of a range inside one region.

        Raises:
            UnmappedAddress: the range is not inside one region.
        """
        place = self._memory.bisect_right(address) - 1
        if place >= 0:
            base, memory = self._memory.peekitem(place)
            if address + size <= base + len(memory):
                found: npt.NDArray[np.uint8] = memory[
                    address - base : address - base + size
                ]
                return found
        raise UnmappedAddress(f"[{address:#x}, {address + size:#x}) is not mapped")
