"""A chunk: a half-open range of addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Stands for "no upper end" (the largest 64-bit integer, as in XLA).
INFINITY: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class Chunk:
    """The addresses `[offset, offset + size)` in bytes.

    Chunks order by offset, then by size.

    >>> chunk = Chunk(16, 32)
    >>> chunk.end, str(chunk), chunk.overlaps(Chunk(47, 1)), chunk.overlaps(Chunk(48, 1))
    (48, '[16,48)', True, False)
    """

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first address above the chunk."""
        return self.offset + self.size

    @classmethod
    def from_end(cls, offset: int, end: int) -> Chunk:
        """The chunk `[offset, end)`."""
        return cls(offset, end - offset)

    def overlaps(self, other: Chunk) -> bool:
        """Whether the two share an address; an empty chunk shares none."""
        return (
            self.size != 0
            and other.size != 0
            and self.offset < other.end
            and other.offset < self.end
        )

    def __str__(self) -> str:
        return f"[{self.offset},{self.end})"


def align_up(address: int, alignment: int) -> int:
    """The smallest multiple of `alignment` that is not below `address`.

    >>> align_up(17, 8), align_up(16, 8)
    (24, 16)
    """
    return -(-address // alignment) * alignment
