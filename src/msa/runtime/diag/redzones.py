"""Buffers between zones of known bytes: what writes outside is seen.

Source of the idea: `xla/stream_executor/gpu/redzone_allocator.h`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from msa.errors import OptionsError
from msa.runtime.status import ResourceExhausted

DEFAULT_ZONE: Final = 8 << 20
DEFAULT_LIMIT: Final = 4 << 30
PATTERN: Final = 0xFF


@dataclass(frozen=True, slots=True)
class RedzoneViolation:
    """A byte that should not have changed.

    Attributes:
        buffer: name.
        side: `before` or `after` the buffer.
        offset: of the first bad byte, from the start of its zone.
        expected, actual: the byte.
    """

    buffer: str
    side: str
    offset: int
    expected: int
    actual: int

    def __str__(self) -> str:
        return (
            f"{self.buffer}: byte {self.offset} of the zone {self.side} it is "
            f"{self.actual:#04x}, not {self.expected:#04x}"
        )


class RedzoneAllocator:
    """Hands out buffers with a zone on either side, and checks the zones.

    Args:
        size: bytes of a zone; the default is 8 MiB.
        pattern: the byte that zones are filled with.
        limit: bytes of all buffers together, zones not counted.

    >>> zones = RedzoneAllocator(size=64)
    >>> buffer = zones.allocate("result", 16)
    >>> zones.check()
    []
    >>> zones.whole("result")[64 + 16 + 3] = 0  # a write behind the end
    >>> print(zones.check()[0])
    result: byte 3 of the zone after it is 0x00, not 0xff
    """

    def __init__(
        self,
        size: int = DEFAULT_ZONE,
        *,
        pattern: int = PATTERN,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        if size <= 0 or not 0 <= pattern <= 255 or limit < 0:
            raise OptionsError("zones have bytes, a pattern is one byte")
        self.size = size
        self.pattern = pattern
        self.limit = limit
        self._blocks: dict[str, tuple[NDArray[np.uint8], int]] = {}

    @property
    def allocated_bytes(self) -> int:
        """Bytes of all buffers, zones not counted."""
        return sum(size for _, size in self._blocks.values())

    def allocate(self, name: str, size: int) -> NDArray[np.uint8]:
        """A buffer of zeros.

        Raises:
            ResourceExhausted: all buffers together would exceed the limit.
            OptionsError: the name is taken or the size negative.
        """
        if name in self._blocks or size < 0:
            raise OptionsError(f"{name!r} is allocated already, or {size} is negative")
        if self.allocated_bytes + size > self.limit:
            raise ResourceExhausted(
                f"{name!r} of {size} bytes exceeds the limit of {self.limit} bytes, "
                f"{self.allocated_bytes} are taken"
            )
        block = np.full(size + 2 * self.size, self.pattern, np.uint8)
        block[self.size : self.size + size] = 0
        self._blocks[name] = (block, size)
        return block[self.size : self.size + size]

    def place(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        """A buffer that holds a copy of an array, with its shape and type."""
        raw = self.allocate(name, value.nbytes)
        view: NDArray[Any] = raw.view(value.dtype).reshape(value.shape)
        view[...] = value
        return view

    def whole(self, name: str) -> NDArray[np.uint8]:
        """A buffer with its zones."""
        return self._blocks[name][0]

    def check(self) -> list[RedzoneViolation]:
        """First bad byte of each zone; zones that were written to are reset."""
        found = []
        for name, (block, size) in self._blocks.items():
            zones = (
                ("before", block[: self.size]),
                ("after", block[self.size + size :]),
            )
            for side, zone in zones:
                bad = np.flatnonzero(zone != self.pattern)
                if len(bad):
                    first = int(bad[0])
                    actual = int(zone[first])
                    found.append(
                        RedzoneViolation(name, side, first, self.pattern, actual)
                    )
                    zone[:] = self.pattern
        return found
