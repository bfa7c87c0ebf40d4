"""How a memory is cut up: free blocks, waste, and what would still fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from msa.heap import HeapPlan
from msa.runtime.diag.sizes import human_bytes, percent
from msa.runtime.host.bfc import BFCAllocator
from msa.runtime.host.reports import bin_table, render_occupancy


@dataclass(frozen=True, slots=True)
class FragmentationReport:
    """The free memory of a pool or of a packing at one moment; bytes.

    Attributes:
        name: of the memory.
        capacity, in_use: bytes.
        waste: bytes in use that nobody asked for.
        free_blocks: sizes, largest first.
        bins: rows `(minimum, chunks in use, chunks, bytes in use, bytes)` of a pool.
        occupancy: the memory as a bar: `*` in use, `x` waste, `_` free.

    >>> report = FragmentationReport("pool", 100, 40, 0, (40, 20), (), "")
    >>> report.free, report.fits(50), report.fits_if_compacted(50)
    (60, False, True)
    """

    name: str
    capacity: int
    in_use: int
    waste: int
    free_blocks: tuple[int, ...]
    bins: tuple[tuple[int, int, int, int, int], ...]
    occupancy: str

    @property
    def free(self) -> int:
        """Free bytes."""
        return sum(self.free_blocks)

    @property
    def largest_free_block(self) -> int:
        """Bytes of the largest free block."""
        return self.free_blocks[0] if self.free_blocks else 0

    @property
    def external(self) -> float:
        """Share of the free bytes outside the largest free block, in [0, 1]."""
        free = self.free
        return (free - self.largest_free_block) / free if free else 0.0

    @property
    def histogram(self) -> dict[int, int]:
        """Free blocks by size: largest power of two not above it → count."""
        counts = Counter(1 << (size.bit_length() - 1) for size in self.free_blocks)
        return dict(sorted(counts.items()))

    def fits(self, size: int) -> bool:
        """Whether one free block can take so many bytes."""
        return size <= self.largest_free_block

    def fits_if_compacted(self, size: int) -> bool:
        """Whether all free bytes together could."""
        return size <= self.free

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **asdict(self),
            "free": self.free,
            "external": self.external,
            "histogram": self.histogram,
        }

    def to_text(self, request: int | None = None) -> str:
        """For a terminal; with the fate of a request, if one is given."""
        lines = [
            (
                f"{self.name}: {human_bytes(self.in_use)} of "
                f"{human_bytes(self.capacity)} in use, {human_bytes(self.waste)} wasted, "
                f"{human_bytes(self.free)} free in {len(self.free_blocks)} blocks, "
                f"largest {human_bytes(self.largest_free_block)} "
                f"({100 * self.external:.1f}% external fragmentation)"
            ),
            self.occupancy,
        ]
        lines += [
            f"  free blocks of {human_bytes(size)} and more: {count}"
            for size, count in self.histogram.items()
        ]
        lines += [
            f"  bin {human_bytes(b)}: {used}/{n} chunks, {human_bytes(held)}/"
            f"{human_bytes(size)}, {percent(held, size):.0f}%"
            for b, used, n, held, size in self.bins
        ]
        if request is not None:
            fate = "fits"
            if not self.fits(request):
                whole = self.fits_if_compacted(request)
                fate = "would fit if compacted" if whole else "does not fit at all"
            lines.append(f"  a request of {human_bytes(request)} {fate}")
        return "\n".join(lines)


def pool_fragmentation(pool: BFCAllocator) -> FragmentationReport:
    """The state of a pool.

    >>> from msa.runtime.host import BFCAllocator, SimSubAllocator
    >>> pool = BFCAllocator(SimSubAllocator(), 1 << 20)
    >>> blocks = [pool.allocate(300) for _ in range(3)]
    >>> pool.deallocate(blocks[1])
    >>> report = pool_fragmentation(pool)
    >>> report.in_use, report.waste, report.free_blocks[-1]
    (1024, 424, 512)
    """
    chunks = list(pool.walk())
    used = [c for c in chunks if c.in_use]
    return FragmentationReport(
        pool.name,
        sum(c.size for c in chunks),
        sum(c.size for c in used),
        sum(c.size - c.requested for c in used),
        tuple(sorted((c.size for c in chunks if not c.in_use), reverse=True)),
        tuple(
            (r.minimum, r.chunks_in_use, r.chunks, r.bytes_in_use, r.bytes)
            for r in bin_table(pool)
        ),
        render_occupancy(pool),
    )


def packing_fragmentation(
    plan: HeapPlan, time: int, *, capacity: int | None = None, width: int = 100
) -> FragmentationReport:
    """A packing at one moment.

    Args:
        plan: the packing.
        time: moment; buffers are live in `[start, end)`.
        capacity: bytes of the memory; the height of the packing by default.
        width: characters of the bar.

    >>> import msa
    >>> plan = msa.pack([("a", 0, 2, 4), ("b", 0, 4, 4), ("c", 2, 4, 2)])
    >>> packing_fragmentation(plan, 3).free
    2
    """
    held = sorted(
        (offset, offset + b.size)
        for b, offset in zip(plan.buffers, plan.offsets, strict=True)
        if b.start <= time < b.end and b.size
    )
    total = plan.height if capacity is None else capacity
    blocks = sorted(_gaps(held, total), reverse=True)
    return FragmentationReport(
        f"packing at {time}",
        total,
        sum(end - start for start, end in held),
        0,
        tuple(blocks),
        (),
        _bar(held, total, width),
    )


def _gaps(held: Sequence[tuple[int, int]], total: int) -> Iterable[int]:
    end = 0
    for start, stop in held:
        if start > end:
            yield start - end
        end = max(end, stop)
    if end < total:
        yield total - end


def _bar(held: Sequence[tuple[int, int]], total: int, width: int) -> str:
    cells = ["_"] * width
    for start, end in held:
        for cell in range(start * width // total, (end - 1) * width // total + 1):
            cells[cell] = "*"
    return "".join(cells)
