"""A device's buffers for one execution, indexed by allocation.

Source: `xla/service/gpu/buffer_allocations.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from msa.runtime.status import OutOfRange


@dataclass(frozen=True, slots=True, order=True)
class DeviceAddress:
    """An address with the size of what lies there; address 0 is null.

    >>> DeviceAddress(4096, 64).slice(16, 8)
    DeviceAddress(opaque=4112, size=8)
    """

    opaque: int
    size: int

    @property
    def is_null(self) -> bool:
        """Whether this points nowhere."""
        return self.opaque == 0

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.opaque + self.size

    def slice(self, offset: int, size: int) -> DeviceAddress:
        """A sub-range.

        Raises:
            OutOfRange: it is not inside this range.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            raise OutOfRange(
                f"bytes [{offset}, {offset + size}) are not inside {self.size} bytes"
            )
        return DeviceAddress(self.opaque + offset, size)


NULL = DeviceAddress(0, 0)


@dataclass(frozen=True, slots=True)
class AllocationSlice:
    """Bytes `[offset, offset + size)` of allocation `index`.

    >>> AllocationSlice(0, 64, 16).size
    16
    """

    index: int
    offset: int
    size: int


class BufferAllocations:
    """Device addresses by allocation index.

    >>> buffers = BufferAllocations([DeviceAddress(256, 64), DeviceAddress(512, 64)])
    >>> buffers.find_index(DeviceAddress(540, 8))
    1
    """

    __slots__ = ("_addresses",)

    def __init__(self, addresses: Sequence[DeviceAddress]) -> None:
        self._addresses = tuple(addresses)

    def __len__(self) -> int:
        return len(self._addresses)

    def address(self, where: int | AllocationSlice) -> DeviceAddress:
        """Address of an allocation, or of a slice of one.

        Raises:
            IndexError: no such allocation.
            OutOfRange: the slice leaves the allocation.
        """
        if isinstance(where, AllocationSlice):
            return self.address(where.index).slice(where.offset, where.size)
        if not 0 <= where < len(self._addresses):
            raise IndexError(
                f"allocation {where} of {len(self._addresses)} does not exist"
            )
        return self._addresses[where]

    def find_index(self, address: DeviceAddress) -> int | None:
        """First allocation that contains the start of `address`; linear."""
        for index, base in enumerate(self._addresses):
            if base.opaque <= address.opaque < base.end:
                return index
        return None

    def tear_down(
        self,
        free: Callable[[DeviceAddress], None],
        *,
        live: Collection[DeviceAddress],
        maybe_live_out: Collection[int],
        preallocated_temps: Collection[int],
    ) -> None:
        """Free temporaries, and outputs that did not become results.

        Every free is attempted; the first failure is raised at the end.
        """
        first: Exception | None = None
        for index, address in enumerate(self._addresses):
            dead_output = index in maybe_live_out and address not in live
            if address.is_null or not (dead_output or index in preallocated_temps):
                continue
            try:
                free(address)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first
