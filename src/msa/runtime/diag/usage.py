"""Who takes the memory: allocations by space and size, and the values in each.

Source: `xla/service/buffer_assignment.cc` (MemoryUsageReport).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from msa.analysis.buffer_assignment import BufferAssignment
from msa.passes.binding import Platform
from msa.runtime.diag.sizes import human_bytes, percent


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value of an allocation: id, offset, bytes, and its shape as text."""

    id: int
    offset: int
    size: int
    shape: str


@dataclass(frozen=True, slots=True)
class PlacedAllocation:
    """An allocation as reports see it: index, bytes, space, values, positions."""

    index: int
    size: int
    color: int
    values: tuple[PlacedValue, ...] = ()
    positions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueGroup:
    """Values that share an offset.

    Attributes:
        size: of the largest; `cumulative`: of this group and all before.
        share: cumulative, of all groups of the allocation, in [0, 1].
        offset: bytes.
        count: of values.
        shapes: equal ones as `n×shape`.
    """

    size: int
    cumulative: int
    share: float
    offset: int
    count: int
    shapes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """What a cut-off table does not show: entries, and their share in [0, 1]."""

    count: int
    share: float


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """One allocation.

    Attributes:
        index, size: of the allocation.
        cumulative, share: of it and all before, of the space.
        positions: where its values are defined.
        groups: its values; `left`: those not shown.
    """

    index: int
    size: int
    cumulative: int
    share: float
    positions: tuple[str, ...]
    groups: tuple[ValueGroup, ...]
    left: Left | None


@dataclass(frozen=True, slots=True)
class SpaceUsage:
    """One memory space: number, name, bytes of all allocations, the largest first."""

    color: int
    name: str
    total: int
    entries: tuple[UsageEntry, ...]
    left: Left | None


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Spaces by number."""

    spaces: tuple[SpaceUsage, ...]
    percentile: float
    more_than_k: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def to_text(self) -> str:
        """For a terminal or a file; equal assignments give equal text."""
        lines: list[str] = []
        for space in self.spaces:
            lines.append(
                f"Space {space.color} ({space.name}): {human_bytes(space.total)}"
            )
            for entry in space.entries:
                lines += self._entry(entry)
            lines += self._rest(space.left, "allocations", "  ")
        return "\n".join(lines)

    def _entry(self, entry: UsageEntry) -> Iterable[str]:
        yield (
            f"  allocation {entry.index}: {human_bytes(entry.size)}, cumulative "
            f"{human_bytes(entry.cumulative)} ({entry.share:.1%})"
            + _places(entry.positions)
        )
        for group in entry.groups:
            yield (
                f"    {human_bytes(group.cumulative):>10} ({group.share:6.1%})"
                f"{human_bytes(group.size):>11} @{group.offset:<10}"
                f"{group.count:>4}  {', '.join(group.shapes)}"
            )
        yield from self._rest(entry.left, "offsets", "    ")

    def _rest(self, left: Left | None, what: str, pad: str) -> Iterable[str]:
        if left is not None:
            yield (
                f"{pad}{left.count} {what} left, {left.share:.1%}, below "
                f"{self.percentile:.0%}"
            )


def _places(positions: Sequence[str], most: int = 4) -> str:
    """The first few places, and how many more there are."""
    shown = "".join(f", {place}" for place in positions[:most])
    more = len(positions) - most
    return shown + (f" and {more} more" if more > 0 else "")


def usage_report(
    subject: BufferAssignment | Iterable[PlacedAllocation],
    *,
    percentile: float = 0.05,
    more_than_k: int = 50,
    print_layout: bool = False,
    platform: Platform | None = None,
) -> UsageReport:
    """Allocations by memory space, largest first, with the values in each.

    A table ends after a row beyond the `more_than_k`-th once the rest takes less than
    `percentile` of the whole; how much is left is then told.

    Args:
        subject: an assignment, or allocations of any origin.
        percentile: share in [0, 1].
        more_than_k: rows that are shown in any case.
        print_layout: write layouts in shapes (of assignments).
        platform: names the memory spaces; a TPU by default.

    O(n log n).

    >>> report = usage_report([PlacedAllocation(0, 4096, 0), PlacedAllocation(1, 1024, 0)])
    >>> print(report.to_text())
    Space 0 (hbm): 5.0KiB
      allocation 0: 4.0KiB, cumulative 4.0KiB (80.0%)
      allocation 1: 1.0KiB, cumulative 5.0KiB (100.0%)
    """
    known = platform or Platform.preset("tpu")
    if isinstance(subject, BufferAssignment):
        subject = placed_allocations(subject, print_layout=print_layout)
    colors: dict[int, list[PlacedAllocation]] = {}
    for allocation in subject:
        colors.setdefault(allocation.color, []).append(allocation)
    cut = _Cut(percentile, more_than_k)
    spaces = tuple(
        _space(color, known.space_name(color), colors[color], cut)
        for color in sorted(colors)
    )
    return UsageReport(spaces, percentile, more_than_k)


def placed_allocations(
    assignment: BufferAssignment, *, print_layout: bool = False
) -> list[PlacedAllocation]:
    """The allocations of an assignment, embedded computations left out."""
    value_of = assignment.alias.dataflow.value
    found = []
    for allocation in assignment.allocations:
        if allocation.is_thread_local:
            continue
        values = [
            (value_of(number), offset, size)
            for number, (offset, size) in allocation.assigned.items()
        ]
        found.append(
            PlacedAllocation(
                allocation.index,
                allocation.size,
                allocation.color,
                tuple(
                    PlacedValue(
                        value.id,
                        offset,
                        size,
                        value.shape.to_text(with_layout=print_layout),
                    )
                    for value, offset, size in values
                ),
                tuple(str(value.position) for value, _, _ in values),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class _Cut:
    percentile: float
    more_than_k: int

    def shown(self, sizes: Sequence[int]) -> tuple[int, Left | None]:
        """How many rows to show, and what is left."""
        total, seen = sum(sizes), 0
        for number, size in enumerate(sizes, 1):
            seen += size
            rest = total - seen
            if number == len(sizes):
                break
            if number > self.more_than_k and rest < self.percentile * total:
                return number, Left(len(sizes) - number, percent(rest, total) / 100)
        return len(sizes), None


def _space(
    color: int, name: str, allocations: Sequence[PlacedAllocation], cut: _Cut
) -> SpaceUsage:
    ordered = sorted(allocations, key=lambda a: (-a.size, a.index))
    total = sum(a.size for a in ordered)
    count, left = cut.shown([a.size for a in ordered])
    entries, cumulative = [], 0
    for allocation in ordered[:count]:
        cumulative += allocation.size
        groups, hidden = _groups(allocation.values, cut)
        entries.append(
            UsageEntry(
                allocation.index,
                allocation.size,
                cumulative,
                percent(cumulative, total) / 100,
                allocation.positions,
                groups,
                hidden,
            )
        )
    return SpaceUsage(color, name, total, tuple(entries), left)


def _groups(
    values: Iterable[PlacedValue], cut: _Cut
) -> tuple[tuple[ValueGroup, ...], Left | None]:
    by_offset: dict[int, list[PlacedValue]] = {}
    for value in values:
        by_offset.setdefault(value.offset, []).append(value)
    rows = sorted(
        by_offset.values(),
        key=lambda group: (-max(v.size for v in group), group[-1].id),
    )
    sizes = [max(v.size for v in group) for group in rows]
    total = sum(sizes)
    count, left = cut.shown(sizes)
    found, cumulative = [], 0
    for size, group in list(zip(sizes, rows, strict=True))[:count]:
        cumulative += size
        found.append(
            ValueGroup(
                size,
                cumulative,
                percent(cumulative, total) / 100,
                group[0].offset,
                len(group),
                _shapes(v.shape for v in group),
            )
        )
    return tuple(found), left


def _shapes(shapes: Iterable[str]) -> tuple[str, ...]:
    counts = Counter(shapes)
    ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    return tuple(f"{n}×{shape}" if n > 1 else shape for shape, n in ordered)
