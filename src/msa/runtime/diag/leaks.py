"""What was not given back: records of all sources, grouped, with growth.

Source of the idea: `xla/tsl/framework/{bfc_allocator,scoped_allocation_trace}.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from msa.dealloc.interpreter import Finding, Misuse
from msa.runtime.collective.devices import DeviceWorld
from msa.runtime.diag.sizes import human_bytes
from msa.runtime.host.bfc import BFCAllocator
from msa.runtime.host.pool import HostMemoryPool, HostValuePool

UNGRACEFUL: Final = "expected after ungraceful exit"


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that was not given back.

    Attributes:
        kind: `pool block`, `host value`, `device allocation`, `mapping`, `buffer`.
        id: within its source.
        size, requested: bytes held, and asked for.
        space: where: the pool, the device, the function.
        sequence: number in order of creation, -1 if unknown.
        annotation: frames of `allocation_scope`, outermost first, as text.
        stack: places in the program that made it, innermost first.
        owner: who still holds it, as far as that is known.
        expected_release: where it should have been given back.

    >>> Leak("buffer", "a", 64, 64, "f").sequence
    -1
    """

    kind: str
    id: str
    size: int
    requested: int
    space: str
    sequence: int = -1
    annotation: str = ""
    stack: tuple[str, ...] = ()
    owner: str = ""
    expected_release: str = ""


@dataclass(frozen=True, slots=True)
class LeakGroup:
    """Leaks of one kind, annotation and place; `owners` still hold them."""

    kind: str
    annotation: str
    stack: tuple[str, ...]
    count: int
    bytes: int
    expected_release: str = ""
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeakReport:
    """All leaks, grouped.

    Attributes:
        groups: most bytes first.
        suppressed_count, suppressed_bytes: of leaks that were to be ignored.
        graceful: whether everything had the chance to be given back.
        strict: count leaks after an ungraceful exit too.

    >>> LeakReport(()).failed
    False
    """

    groups: tuple[LeakGroup, ...]
    suppressed_count: int = 0
    suppressed_bytes: int = 0
    graceful: bool = True
    strict: bool = False

    @property
    def count(self) -> int:
        """Leaks that are not suppressed."""
        return sum(group.count for group in self.groups)

    @property
    def bytes(self) -> int:
        """Bytes of them."""
        return sum(group.bytes for group in self.groups)

    @property
    def failed(self) -> bool:
        """Whether there is something to answer for."""
        return bool(self.groups) and (self.graceful or self.strict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "count": self.count, "bytes": self.bytes}

    def to_text(self) -> str:
        """For a terminal; equal leaks give equal text."""
        head = f"{self.count} leaks, {human_bytes(self.bytes)}"
        if self.suppressed_count:
            head += (
                f" ({self.suppressed_count} of {human_bytes(self.suppressed_bytes)} "
                "suppressed)"
            )
        if self.groups and not self.graceful:
            head += f", {UNGRACEFUL}"
        lines = [head]
        for group in self.groups:
            lines.append(
                f"  {group.count} × {group.kind}, {human_bytes(group.bytes)}"
                + (f" in {group.annotation}" if group.annotation else "")
            )
            lines += [f"    at {place}" for place in group.stack]
            if group.owners:
                lines.append(f"    held by {', '.join(group.owners)}")
            if group.expected_release:
                lines.append(f"    expected: {group.expected_release}")
        return "\n".join(lines)


def leak_report(
    leaks: Iterable[Leak],
    *,
    suppressions: Sequence[tuple[str, str]] = (),
    graceful: bool = True,
    strict: bool = False,
) -> LeakReport:
    """Group leaks by kind, annotation and place.

    Args:
        leaks: of any sources.
        suppressions: patterns `(kind, annotation)` with `*` of what to ignore.
        graceful: False after an exit that did not give back in order: leaks are then
            expected and do not fail the report, unless it is `strict`.
        strict: see above.

    >>> leak = Leak("pool block", "1", 256, 200, "host", annotation="load{}")
    >>> print(leak_report([leak, leak]).to_text())
    2 leaks, 512B
      2 × pool block, 512B in load{}
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[Leak]] = {}
    count = size = 0
    for leak in leaks:
        if any(
            fnmatchcase(leak.kind, kind) and fnmatchcase(leak.annotation, note)
            for kind, note in suppressions
        ):
            count += 1
            size += leak.size
            continue
        groups.setdefault((leak.kind, leak.annotation, leak.stack), []).append(leak)
    rows = [
        LeakGroup(
            kind,
            note,
            stack,
            len(members),
            sum(leak.size for leak in members),
            members[0].expected_release,
            tuple(sorted({leak.owner for leak in members if leak.owner})),
        )
        for (kind, note, stack), members in groups.items()
    ]
    rows.sort(key=lambda g: (-g.bytes, g.kind, g.annotation, g.stack))
    return LeakReport(tuple(rows), count, size, graceful, strict)


# -- sources ---------------------------------------------------------------------------


def pool_leaks(pool: BFCAllocator | HostMemoryPool, since: int = 0) -> list[Leak]:
    """Blocks of a pool that are in use (made since an allocation number).

    >>> pool = HostMemoryPool(1 << 20)
    >>> block = pool.allocate(100)
    >>> [leak.requested for leak in pool_leaks(pool)]
    [100]
    >>> block.release()
    >>> pool.close()
    []
    """
    blocks = pool.bfc if isinstance(pool, HostMemoryPool) else pool
    return [
        Leak(
            "pool block",
            str(record.id),
            record.size,
            record.requested,
            blocks.name,
            record.id,
            record.annotation,
            (record.site,),
            f"pool {blocks.name!r}",
            f"deallocate before {blocks.name!r} is closed",
        )
        for record in blocks.leaks(since)
    ]


def value_pool_leaks(pool: HostValuePool) -> list[Leak]:
    """Host values that are still taken.

    >>> value_pool_leaks(HostValuePool("int32"))
    []
    """
    size = pool.dtype.itemsize
    return [
        Leak(
            "host value",
            str(number),
            size,
            size,
            f"host values of {pool.dtype}",
            stack=(site,),
            expected_release="HostValue.release",
        )
        for number, site in enumerate(pool.close())
    ]


def world_leaks(world: DeviceWorld) -> list[Leak]:
    """Allocations and mappings of simulated devices that are left.

    >>> world = DeviceWorld(2)
    >>> address = world.allocate(1, 4096)
    >>> [leak.space for leak in world_leaks(world)][:1]
    ['device 1']
    """
    found = [
        Leak(
            "device allocation",
            f"{address.opaque:#x}",
            address.size,
            address.size,
            f"device {world.device_of(address)}",
            expected_release="DeviceWorld.free",
        )
        for address in world.live_allocations
    ]
    owned = len(found)
    found += [
        Leak("mapping", str(i), 0, 0, "address space", expected_release="unmap")
        for i in range(max(0, world.memory.mapped_ranges - owned))
    ]
    return found


def buffer_leaks(findings: Iterable[Finding], function: str = "") -> list[Leak]:
    """Buffers that a path of a function of the buffer IR did not free.

    >>> from msa.dealloc import parse_function
    >>> function = parse_function('''
    ... func @f() {
    ... ^entry:
    ...   %a = alloc : buf<4xf32>
    ...   use reads() writes(%a)
    ...   return
    ... }''')
    >>> from msa.dealloc import check
    >>> [leak.id for leak in buffer_leaks(check(function).findings, "f")]
    ['a']
    """
    return [
        Leak(
            "buffer",
            finding.object,
            0,
            0,
            function,
            stack=(f"path {','.join(map(str, finding.decisions)) or 'straight'}",),
            expected_release=f"dealloc of {finding.object} before {finding.operation}",
        )
        for finding in findings
        if finding.kind is Misuse.LEAK
    ]


# -- growth ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Growth:
    """A group that grew in consecutive snapshots; `slope` is bytes a snapshot."""

    kind: str
    annotation: str
    stack: tuple[str, ...]
    snapshots: int
    slope: float


@dataclass(slots=True)
class LeakWatch:
    """Snapshots over time.

    >>> watch = LeakWatch()
    >>> for n in range(1, 5):
    ...     watch.snapshot([Leak("pool block", str(i), 256, 256, "p") for i in range(n)])
    >>> [(g.snapshots, g.slope) for g in watch.growing()]
    [(3, 256.0)]
    """

    history: list[dict[tuple[str, str, tuple[str, ...]], int]] = field(
        default_factory=list
    )

    def snapshot(self, leaks: Iterable[Leak]) -> None:
        """Record what is held now."""
        report = leak_report(leaks)
        self.history.append(
            {(g.kind, g.annotation, g.stack): g.bytes for g in report.groups}
        )

    def growing(self, least: int = 3) -> list[Growth]:
        """Groups that grew from each of the last snapshots to the next.

        Args:
            least: how many times in a row they must have grown.

        Steepest first.
        """
        found = []
        keys = sorted({key for row in self.history for key in row})
        for key in keys:
            series = [row.get(key, 0) for row in self.history]
            times = 0
            while times + 1 < len(series) and series[-1 - times] > series[-2 - times]:
                times += 1
            if times >= least:
                slope = (series[-1] - series[-1 - times]) / times
                found.append(Growth(*key, times, slope))
        found.sort(key=lambda g: (-g.slope, g.kind, g.annotation, g.stack))
        return found
