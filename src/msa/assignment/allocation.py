"""Allocations: statements of where a value lives and when.

An allocation says: *from `start` to `end`* (schedule steps, both **inclusive**, as
in XLA) *the value lives in `space`, and these uses read it there*. The algorithm
gives an ordered list of them (`AllocationSequence`); a source always comes before
what depends on it, so that lowering can follow the order.

Positions and uses name schedule steps of the `Problem`; its `keys` lead back to
the instructions of whoever made the problem.

Reference: `xla/service/memory_space_assignment/allocation.h`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from msa.heap.chunk import Chunk
from msa.hlo.layout import SplitConfig

#: Indices into nested tuples, as in the IR.
Index = tuple[int, ...]


class MemorySpace(Enum):
    """The two memories."""

    DEFAULT = "default"
    ALTERNATE = "alternate"

    @property
    def other(self) -> MemorySpace:
        """The opposite memory."""
        if self is MemorySpace.DEFAULT:
            return MemorySpace.ALTERNATE
        return MemorySpace.DEFAULT


class Position(NamedTuple):
    """One node of the output of the instruction at a schedule step."""

    step: int
    index: Index = ()  # type: ignore[assignment]  # hides the unused tuple.index


class Use(NamedTuple):
    """One node of an operand read by the instruction at a schedule step."""

    step: int
    operand: int
    index: Index = ()  # type: ignore[assignment]  # hides the unused tuple.index


class AliasedOffset:
    """An offset shared by allocations that must lie at the same address.

    Compared by identity: two allocations share storage if they hold the same object.
    """

    __slots__ = ("offset",)

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def __repr__(self) -> str:
        return f"AliasedOffset({self.offset})"


@dataclass(slots=True, eq=False, kw_only=True)
class Allocation:
    """What all kinds of allocations have in common. Compared by identity.

    Attributes:
        value: id of the value in the problem.
        position: where the value is defined, before lowering. For a copy: the
            position of what it copies.
        space: the memory.
        chunk: offset and size in alternate memory, else None.
        start, end: inclusive schedule steps. A copy starts one after the step
            after which the copy is issued.
        uses: what reads the value through this allocation.
        aliased_offset: the shared offset (alternate memory only).
        cross_program_index: number of the cross-program prefetch, or None.
        split: how the value is cut into shards in alternate memory, or None.
    """

    value: int
    position: Position
    space: MemorySpace
    chunk: Chunk | None
    start: int
    end: int
    uses: list[Use] = field(default_factory=list)
    aliased_offset: AliasedOffset | None = None
    cross_program_index: int | None = None
    split: SplitConfig | None = None

    @property
    def is_alternate(self) -> bool:
        """Whether it lives in alternate memory."""
        return self.space is MemorySpace.ALTERNATE

    @property
    def is_copy_like(self) -> bool:
        """Whether bytes are moved to make it (a copy, sliced or not)."""
        return False

    @property
    def available(self) -> int:
        """First step that may read it."""
        return self.start

    @property
    def kind(self) -> str:
        """Name of the kind, as reports and files write it."""
        return _KINDS[type(self)]

    @property
    def depends_on(self) -> Allocation | None:
        """The allocation that this one reads, mirrors or belongs to."""
        return None

    def extend(self, end: int) -> None:
        """Live at least until `end`."""
        if end > self.end:
            self.end = end

    def move(self, offset: int) -> None:
        """Put it at another offset (repacking)."""
        if self.chunk is not None:
            self.chunk = Chunk(offset, self.chunk.size)


@dataclass(slots=True, eq=False, kw_only=True)
class PinnedAllocation(Allocation):
    """The value lives where its position defines it, in either memory."""


@dataclass(slots=True, eq=False, kw_only=True)
class CopyAllocation(Allocation):
    """An asynchronous copy of `source` into the other memory.

    Attributes:
        source: what is copied; its position is where the bytes come from.
        start_after: the copy is issued right after this step (-1: at the start).
        done_before: the copy has landed before this step.
        resource: seconds of copy bandwidth charged.
        replaces: step of the synchronous copy or slice that it stands in for.
        source_operand: operand of that instruction that is the source.
        existing_start, existing_done: steps of copy instructions that the program
            already has, or None.
    """

    source: Allocation
    start_after: int
    done_before: int
    resource: float = 0.0
    replaces: int | None = None
    source_operand: int = 0
    existing_start: int | None = None
    existing_done: int | None = None

    @property
    def is_copy_like(self) -> bool:
        """Always true."""
        return True

    @property
    def available(self) -> int:
        """The step before which the copy has landed."""
        return self.done_before

    @property
    def depends_on(self) -> Allocation | None:
        """The source."""
        return self.source


@dataclass(frozen=True, slots=True)
class SliceBounds:
    """Half-open `[start, limit)` of one dimension of a slice."""

    start: int
    limit: int


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a value: where it lies and when its copy starts.

    Attributes:
        bounds: per dimension, of the sliced view of the value.
        chunk: where the slice goes.
        start_after: its copy is issued right after this step.
        resource: seconds of copy bandwidth charged.
    """

    bounds: tuple[SliceBounds, ...]
    chunk: Chunk
    start_after: int
    resource: float = 0.0


@dataclass(slots=True, eq=False, kw_only=True)
class SlicedCopyAllocation(Allocation):
    """A prefetch in slices that are joined without moving bytes.

    Attributes:
        source: what is copied.
        slices: by (start, offset); together they cover `chunk`.
        done_before: every slice has landed before this step.
        uniform: slices are of a one-dimensional byte view, not of the shape.
    """

    source: Allocation
    slices: tuple[Slice, ...]
    done_before: int
    uniform: bool = False

    @property
    def is_copy_like(self) -> bool:
        """Always true."""
        return True

    @property
    def available(self) -> int:
        """The step before which all slices have landed."""
        return self.done_before

    @property
    def depends_on(self) -> Allocation | None:
        """The source."""
        return self.source

    def move(self, offset: int) -> None:
        """Shift the hull and every slice."""
        assert self.chunk is not None
        shift = offset - self.chunk.offset
        self.chunk = Chunk(offset, self.chunk.size)
        self.slices = tuple(
            Slice(
                s.bounds,
                Chunk(s.chunk.offset + shift, s.chunk.size),
                s.start_after,
                s.resource,
            )
            for s in self.slices
        )


@dataclass(slots=True, eq=False, kw_only=True)
class WindowPrefetchedAllocation(Allocation):
    """The first bytes of an operand, fetched ahead for one use.

    Attributes:
        source: the operand in default memory.
        use: who reads the window.
        window_bytes: size of the window.
        start_after, done_before: as for a copy.
    """

    source: Allocation
    use: Use
    window_bytes: int
    start_after: int
    done_before: int

    @property
    def available(self) -> int:
        """The step before which the window has landed."""
        return self.done_before

    @property
    def depends_on(self) -> Allocation | None:
        """The source."""
        return self.source


@dataclass(slots=True, eq=False, kw_only=True)
class MirroredAllocation(Allocation):
    """Another name of `original` (through a loop or a branch), same storage."""

    original: Allocation

    @property
    def depends_on(self) -> Allocation | None:
        """The original."""
        return self.original


@dataclass(slots=True, eq=False, kw_only=True)
class ParentAllocation(Allocation):
    """A loop-invariant value's default-memory copy, handed into the loop body.

    The loop gets one more tuple element for it, if anything reads it.

    Attributes:
        original: the default-memory allocation outside the loop.
        loop: step of the `while`.
    """

    original: Allocation
    loop: int

    @property
    def depends_on(self) -> Allocation | None:
        """The original."""
        return self.original


@dataclass(slots=True, eq=False, kw_only=True)
class ScopedAllocation(Allocation):
    """Scratch of one instruction while it runs (`value` is -1)."""

    is_post_module: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class ReservedAllocation(Allocation):
    """Room kept for a coloured value until that value is allocated; not exported."""

    released: bool = False


_KINDS: dict[type[Allocation], str] = {
    PinnedAllocation: "pinned",
    CopyAllocation: "copy",
    SlicedCopyAllocation: "sliced",
    WindowPrefetchedAllocation: "window",
    MirroredAllocation: "mirrored",
    ParentAllocation: "parent",
    ScopedAllocation: "scoped",
    ReservedAllocation: "reserved",
}


class AllocationSequence(list[Allocation]):
    """All allocations of a plan in the order of decision."""

    def copies(self) -> Iterator[CopyAllocation]:
        """The plain copies, in order."""
        for allocation in self:
            if isinstance(allocation, CopyAllocation):
                yield allocation

    def in_alternate(self) -> Iterator[Allocation]:
        """Those in alternate memory, in order."""
        return (a for a in self if a.is_alternate)

    def peak_bytes(self) -> int:
        """Highest chunk end."""
        return max((a.chunk.end for a in self if a.chunk is not None), default=0)
