"""Why memory ran out, and what to try, with the bytes that each way gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from msa.analysis.buffer_assignment import BufferAssignment
from msa.runtime.diag.fragmentation import pool_fragmentation
from msa.runtime.diag.peak import LiveValue, ValueKind, peak_report
from msa.runtime.diag.sizes import human_bytes
from msa.runtime.diag.totals import statistics
from msa.runtime.host.bfc import BFCAllocator
from msa.runtime.host.reports import out_of_memory_report

_CHEAP = frozenset({"broadcast", "iota", "convert", "reshape", "transpose", "copy"})


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something to try, the bytes that it gives at best, and where to look."""

    what: str
    bytes: int
    subject: str


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """A request that failed; bytes.

    Attributes:
        subject: the module or pool.
        request, limit: bytes wanted in all, and what there is.
        shortfall: bytes that are missing.
        remedies: most bytes first.
        details: statistics, the largest values, or a dump of the pool.
    """

    subject: str
    request: int
    limit: int
    shortfall: int
    remedies: tuple[Remedy, ...]
    details: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def to_text(self) -> str:
        """For a terminal."""
        lines = [
            (
                f"{self.subject}: needs {human_bytes(self.request)}, limit "
                f"{human_bytes(self.limit)}, {human_bytes(self.shortfall)} short"
            )
        ]
        lines += [
            f"  try: {r.what} {r.subject} ({human_bytes(r.bytes)})"
            for r in self.remedies
        ]
        return "\n".join([*lines, self.details])


def assignment_shortfall(
    assignment: BufferAssignment, limit: int, *, space: int = 0, top: int = 15
) -> OutOfMemory | None:
    """Why a space does not hold an assignment; None when it does.

    >>> import msa
    >>> from msa.analysis import BufferAssignment
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) b = f32[1024] broadcast(f32[] constant(1)), dimensions={}
    ...           n = f32[1024] negate(b) ROOT s = f32[256] slice(n), slice={[0:256]} }'''))
    >>> found = assignment_shortfall(BufferAssignment.run(module), 4096)
    >>> found.shortfall > 0, [r.what for r in found.remedies][:1]
    (True, ['offload to the host'])
    """
    total = assignment.total_by_color().get(space, 0)
    if total <= limit:
        return None
    peaks = [p for p in peak_report(assignment).spaces if p.space == space]
    values = peaks[0].values if peaks else ()
    remedies = _from_values(values)
    if peaks and peaks[0].padding:
        remedies.append(Remedy("less padding of layouts in", peaks[0].padding, "all"))
    waste = statistics(assignment).temporary_fragmentation
    if waste > 0:
        remedies.append(Remedy("defragment", waste, "the temporaries"))
    remedies.sort(key=lambda r: (-r.bytes, r.what, r.subject))
    shown = [
        f"  {human_bytes(v.size):>10}  {v.name}  {v.producer} {v.shape}"
        for v in values[:top]
    ]
    details = "\n".join([statistics(assignment).to_text(), *shown])
    return OutOfMemory(
        assignment.module.name, total, limit, total - limit, tuple(remedies), details
    )


def _from_values(values: tuple[LiveValue, ...]) -> list[Remedy]:
    """One remedy per way and value; small values are left out."""
    largest = values[0].size if values else 0
    found = []
    for value in values:
        if value.size * 10 < largest:
            break
        if value.kind is ValueKind.TEMPORARY and value.producer in _CHEAP:
            found.append(Remedy("rematerialize", value.size, value.name))
        if value.kind in (ValueKind.TEMPORARY, ValueKind.PARAMETER):
            found.append(Remedy("offload to the host", value.size, value.name))
        if value.kind is ValueKind.TEMPORARY and value.space == 0:
            found.append(Remedy("place in fast memory", value.size, value.name))
    return found


def pool_shortfall(pool: BFCAllocator, request: int, rounded: int) -> OutOfMemory:
    """Why a pool could not serve a request.

    >>> from msa.runtime.host import BFCOptions, SimSubAllocator
    >>> pool = BFCAllocator(SimSubAllocator(), 4096, BFCOptions(allow_growth=False))
    >>> block = pool.allocate(3072)
    >>> pool_shortfall(pool, 2000, 2048).shortfall
    2048
    """
    state = pool_fragmentation(pool)
    unused = max(0, pool.limit - state.capacity)
    remedies = []
    if state.fits_if_compacted(rounded) and not state.fits(rounded):
        remedies.append(Remedy("defragment", state.free, f"pool {pool.name!r}"))
    if state.waste:
        remedies.append(Remedy("smaller alignment of", state.waste, "the blocks"))
    sizes: dict[str, int] = {}
    for record in pool.leaks():
        where = record.annotation or record.site
        sizes[where] = sizes.get(where, 0) + record.size
    remedies += [
        Remedy("lower the parallelism of, or release earlier in,", size, where)
        for where, size in sorted(sizes.items(), key=lambda row: (-row[1], row[0]))[:5]
    ]
    remedies.sort(key=lambda r: (-r.bytes, r.what, r.subject))
    short = rounded - max(state.largest_free_block, unused)
    return OutOfMemory(
        pool.name,
        state.in_use + rounded,
        pool.limit,
        max(0, short),
        tuple(remedies),
        out_of_memory_report(pool, request, rounded, "lower"),
    )
