"""What lies where: blocks of memory, the values in them, references to values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from msa.hlo.shape import Shape
from msa.runtime.machine.memory import (
    POISON,
    AllocatedMemory,
    FixedMemory,
    GrowingMemory,
    Memory,
)

if TYPE_CHECKING:
    from msa.runtime.evaluator.elements import Array


class Extent:
    """One value while it occupies its bytes.

    Attributes:
        name: the position that defined it.
        address, size: its bytes.
        step: when it was defined.
        overwritten_by: who wrote over it first, or an empty string.
        freed_by: after which instruction its planned life ended, or an empty string.
        filled: whether its bytes have been written.
    """

    __slots__ = (
        "address",
        "filled",
        "freed_by",
        "name",
        "overwritten_by",
        "size",
        "step",
    )

    def __init__(self, name: str, address: int, size: int, step: int) -> None:
        self.name = name
        self.address = address
        self.size = size
        self.step = step
        self.overwritten_by = ""
        self.freed_by = ""
        self.filled = True

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.address + self.size

    def overlaps(self, address: int, size: int) -> bool:
        """Whether it shares a byte with a range."""
        return self.address < address + size and address < self.end


class Block:
    """A buffer: bytes that the values of one storage set take in turn.

    Attributes:
        memory: where it is.
        address, size: its bytes.
        extent: the value in it, or None.
        read_only: owner that forbids writing (`parameter`, `constant`), or empty.
    """

    __slots__ = ("address", "extent", "memory", "read_only", "size")

    def __init__(self, memory: Memory, address: int, size: int) -> None:
        self.memory = memory
        self.address = address
        self.size = size
        self.extent: Extent | None = None
        self.read_only = ""

    def cells(self) -> Array:
        """The cells, for reading and writing."""
        return self.memory.view(self.address, self.size)

    def same_place(self, other: Block) -> bool:
        """Whether the other is this block, or begins at the same address."""
        return self is other or (
            self.memory is other.memory and self.address == other.address
        )


class SplitBlock(Block):
    """A block of a value in shards: one per core, all at the same address.

    Attributes:
        size: bytes of the largest shard, which are what the block occupies.

    The machine runs what the cores do together and has one table of addresses for
    their memories, so the shards are kept one after another, apart from it.
    """

    __slots__ = ("_shards",)

    def __init__(
        self, memory: FixedMemory, address: int, size: int, whole: int
    ) -> None:
        super().__init__(memory, address, size)
        self._shards = memory.apart(whole)

    def cells(self) -> Array:
        """The cells of all shards."""
        return self._shards


class OwnedBlock(Block):
    """A block that gives its bytes back when nothing refers to it any more."""

    __slots__ = ("__weakref__",)

    def __del__(self) -> None:
        if isinstance(self.memory, GrowingMemory):
            self.cells()[:] = POISON
            self.memory.release(self.address, self.size)


class Occupancy:
    """Which values occupy a memory whose addresses others decide.

    Invariant: the extents in the table do not overlap.
    """

    __slots__ = ("_table", "memory")

    def __init__(self, memory: FixedMemory | AllocatedMemory) -> None:
        self.memory = memory
        self._table: SortedDict[int, Extent] = SortedDict()

    def overlapping(self, address: int, size: int) -> list[Extent]:
        """Extents that share a byte with a range; O(log n + found)."""
        table = self._table
        found = []
        place = table.bisect_left(address)
        if place > 0:
            before: Extent = table.peekitem(place - 1)[1]
            if before.overlaps(address, size):
                found.append(before)
        keys = table.irange(address, address + size, inclusive=(True, False))
        found.extend(table[key] for key in keys)
        return found

    def claim(self, extent: Extent) -> None:
        """Enter a value; those it writes over are marked and leave."""
        for other in self.overlapping(extent.address, max(1, extent.size)):
            other.overwritten_by = extent.name
            del self._table[other.address]
        self._table[extent.address] = extent

    def release(self, extent: Extent) -> None:
        """A value that nobody needs leaves; its bytes become poison."""
        if self._table.get(extent.address) is extent:
            del self._table[extent.address]
            self.memory.view(extent.address, extent.size)[:] = POISON


class Life:
    """The right to read one value; all references to it share this object.

    When the last reference goes, the value's bytes are given up: that happens at
    once, because references hold no cycles.
    """

    __slots__ = ("block", "extent", "occupancy")

    def __init__(
        self, block: Block, extent: Extent, occupancy: Occupancy | None
    ) -> None:
        self.block = block
        self.extent = extent
        self.occupancy = occupancy

    def __del__(self) -> None:
        if self.occupancy is not None:
            self.occupancy.release(self.extent)


class Reference:
    """An array in memory: which value, and the shape under which it is read."""

    __slots__ = ("life", "shape")

    def __init__(self, life: Life, shape: Shape) -> None:
        self.life = life
        self.shape = shape
