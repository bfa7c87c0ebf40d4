"""What a repacker works on: an allocation with its time, size and offset.

Reference: `xla/service/heap_simulator/allocation_block.{h,cc}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msa.errors import InternalError, PackingError, shown
from msa.heap.slice_permutations import AllocatedSlice
from msa.heap.whole_number import WORD_LIMIT, read_whole

_WHOLE = ("inclusive_start_time", "end_time", "size", "initial_offset", "id")


class AllocationBlock:
    """A buffer (or a part of its life) that may be moved.

    Attributes:
        inclusive_start_time, end_time: **inclusive** times.
        size: bytes.
        offset: where the repacker puts it; -1 before.
        initial_offset: where it lies now; -1 if nowhere.
        id: unique; blocks order by it.
        next_colocated: the next block of the ring that shares the offset; itself if
            it is alone.
        original_slices: by offset, if the block arrives in slices; None otherwise.
        repacked_slices: what the repacker made of them; None before.

    >>> AllocationBlock(0, 4, 256, id=1, offset=512).offset
    512
    """

    __slots__ = (
        "end_time",
        "id",
        "inclusive_start_time",
        "initial_offset",
        "next_colocated",
        "offset",
        "original_slices",
        "repacked_slices",
        "size",
    )

    def __init__(
        self,
        inclusive_start_time: int,
        end_time: int,
        size: int,
        *,
        id: int,  # noqa: A002  # the field's name
        offset: int = -1,
        initial_offset: int = -1,
        original_slices: Iterable[AllocatedSlice] | None = None,
    ) -> None:
        self.inclusive_start_time = inclusive_start_time
        self.end_time = end_time
        self.size = size
        self.offset = offset
        self.initial_offset = initial_offset
        self.id = id
        self.next_colocated: AllocationBlock = self
        self.original_slices: tuple[AllocatedSlice, ...] | None = None
        if original_slices is not None:
            by_offset = sorted(original_slices, key=lambda s: s.offset)
            self.original_slices = tuple(by_offset)
        self.repacked_slices: tuple[AllocatedSlice, ...] | None = None

    def ring(self) -> Iterator[AllocationBlock]:
        """This block, then the others that share its offset."""
        yield self
        block = self.next_colocated
        while block is not self:
            yield block
            block = block.next_colocated

    def __lt__(self, other: AllocationBlock) -> bool:
        return self.id < other.id

    def __repr__(self) -> str:
        return (
            f"AllocationBlock(id={self.id}, time=[{self.inclusive_start_time},"
            f"{self.end_time}], size={self.size}, offset={self.offset}, "
            f"initial_offset={self.initial_offset})"
        )


def colocate(blocks: Iterable[AllocationBlock]) -> None:
    """Make one ring of the blocks, in this order.

    >>> blocks = [AllocationBlock(0, 1, 8, id=k) for k in range(3)]
    >>> colocate(blocks)
    >>> [block.id for block in blocks[1].ring()]
    [1, 2, 0]
    """
    ring = list(blocks)
    for block, following in zip(ring, ring[1:] + ring[:1], strict=True):
        block.next_colocated = following


def _checked(blocks: Any) -> list[AllocationBlock]:
    try:
        listed = list(blocks)
    except TypeError:
        raise PackingError(f"cannot read {shown(blocks)} as blocks") from None
    for number, block in enumerate(listed):
        where = f"block {number}"
        if not isinstance(block, AllocationBlock):
            raise PackingError(f"no AllocationBlock: {shown(block)}", where=where)
        for name in _WHOLE:
            value = getattr(block, name)
            if type(value) is not int or abs(value) >= WORD_LIMIT:
                whole = read_whole(
                    value,
                    name,
                    at_least=-WORD_LIMIT,
                    below=WORD_LIMIT,
                    error=PackingError,
                    where=where,
                )
                setattr(block, name, whole)
        if block.size < 0 or block.end_time < block.inclusive_start_time:
            raise PackingError(f"{block!r} is out of range", where=where)
    return listed


def rings(blocks: Iterable[AllocationBlock]) -> list[list[AllocationBlock]]:
    """The blocks grouped by ring; the first seen of each ring leads it.

    Raises:
        PackingError: a block is none, or one of its numbers is not whole.
        InternalError: a ring holds a block that is not among the blocks.
    """
    known = _checked(blocks)
    present = {id(block) for block in known}
    seen: set[int] = set()
    found = []
    for block in known:
        if id(block) in seen:
            continue
        ring = list(block.ring())
        for member in ring:
            if id(member) not in present:
                raise InternalError(f"{member!r} is colocated but not to be repacked")
            seen.add(id(member))
        found.append(ring)
    return found
