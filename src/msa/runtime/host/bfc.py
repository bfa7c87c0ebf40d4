"""Best fit with coalescing over growing regions.

Source: `xla/tsl/framework/bfc_allocator.cc`.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

from msa.errors import RuntimeMemoryError
from msa.runtime.arguments import whole
from msa.runtime.host.annotations import ANNOTATIONS
from msa.runtime.host.chunks import (
    FREE,
    GAP,
    LOWER,
    QUANTUM,
    UPPER,
    Chunk,
    Holes,
    Region,
    round_up,
)
from msa.runtime.host.errors import (
    DoubleFree,
    InvalidPointer,
    LeakError,
    LeakRecord,
)
from msa.runtime.host.pool_options import BFCOptions, PoolStats
from msa.runtime.host.requests import DEFAULT_ALIGNMENT, End, checked_request
from msa.runtime.host.suballocator import SubAllocator
from msa.runtime.host.timing import TimingCounter, next_time
from msa.runtime.sites import Site, format_site

_LOG = logging.getLogger("msa.runtime")
INITIAL_GROWTH: Final = 2 << 20
MAX_INTERNAL_FRAGMENTATION: Final = 128 << 20
RETRY_SECONDS: Final = 10.0
MAX_RETRY_WARNINGS: Final = 10
_SHRINK: Final = 0.9


class BFCAllocator:
    """A pool of chunks: best fit in size, lowest address first, neighbours merged.

    Sizes are rounded up to 256 bytes. Addresses are integers; the bytes behind them
    belong to the sub-allocator. Thread-safe. Allocation and free are binary searches
    in the number of holes.

    Invariant (`check`): chunks tile their regions without gaps; neighbours are never
    both free and mergeable; holes hold exactly the free chunks (the central gap of a
    partitioned pool apart).

    >>> from msa.runtime.host.suballocator import SimSubAllocator
    >>> pool = BFCAllocator(SimSubAllocator(0), limit=1 << 30)
    >>> a = pool.allocate(1 << 20)
    >>> pool.stats().pool_bytes, pool.stats().largest_free_block_bytes
    (2097152, 1048576)
    >>> pool.deallocate(a)
    >>> pool.close()
    []
    """

    def __init__(
        self,
        source: SubAllocator,
        limit: int,
        options: BFCOptions | None = None,
        *,
        name: str = "pool",
        counter: TimingCounter | None = None,
    ) -> None:
        whole(limit, "BFCAllocator", "the limit")
        self.source = source
        self.limit = limit
        self.options = options or BFCOptions()
        self.name = name
        self.counter = counter
        self.regions: list[Region] = []
        self.chunks: dict[int, Chunk] = {}
        self.holes = {LOWER: Holes(), UPPER: Holes()}
        self.gap: Chunk | None = None
        growth = min(limit, INITIAL_GROWTH) if self.options.allow_growth else limit
        self.next_region_bytes = round_up(growth)
        self.pool_bytes = self.peak_pool_bytes = 0
        self.bytes_in_use = self.peak_bytes_in_use = 0
        self.num_allocs = self.largest_alloc_size = 0
        self._partitioned = self.options.enable_spatial_partitioning
        self._next_id = 0
        self._frontier = 0
        self._last_time = 0
        self._pending: deque[tuple[Chunk, int]] = deque()
        self._freed_sites: dict[int, Site] = {}
        self._warnings = 0
        fraction = self.options.fragmentation_fraction
        self._max_internal = (
            int(fraction * limit) if fraction > 0 else MAX_INTERNAL_FRAGMENTATION
        )
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._waiters = 0

    # -- public --------------------------------------------------------------------

    def allocate(
        self,
        size: int,
        alignment: int = DEFAULT_ALIGNMENT,
        *,
        end: End = LOWER,
        freed_before: int = 0,
        retry_on_failure: bool = True,
        site: Site | None = None,
    ) -> int | None:
        """Address of `size` bytes, or None for size 0 and when nothing fits.

        `site` is the place that leaks and double frees name; the caller by default.

        Raises:
            BadRequest: the alignment is not a power of two, or the size negative.
        """
        plain = type(size) is int and alignment is DEFAULT_ALIGNMENT and end is LOWER
        if not plain or size <= 0:
            size, alignment = checked_request(size, alignment, end)
        if size == 0:
            return None
        if site is None:
            caller = sys._getframe(1)
            site = (caller.f_code.co_filename, caller.f_lineno)
        rounded = (size + QUANTUM - 1) // QUANTUM * QUANTUM
        if alignment < QUANTUM:
            alignment = QUANTUM
        with self._lock:
            if plain and not (freed_before or self._pending):
                chunk = self._take_first(rounded)
            else:
                chunk = None
            if chunk is None:
                chunk = self._take(rounded, alignment, end, freed_before)
            if (
                chunk is None
                and retry_on_failure
                and self.options.allow_retry_on_failure
            ):
                chunk = self._await(rounded, alignment, end, freed_before)
            if chunk is not None:
                chunk.requested = size
                chunk.id = self._next_id
                self._next_id += 1
                chunk.freed_at = 0
                chunk.site = site
                chunk.annotation = ANNOTATIONS.frames
                self.num_allocs += 1
                length = chunk.size
                self.bytes_in_use += length
                if self.bytes_in_use > self.peak_bytes_in_use:
                    self.peak_bytes_in_use = self.bytes_in_use
                if length > self.largest_alloc_size:
                    self.largest_alloc_size = length
                return chunk.address
        self._report_failure(size, rounded, end)
        return None

    def deallocate(self, address: int | None) -> None:
        """Free an allocation; None is ignored.

        Raises:
            DoubleFree: it was freed already (the place of its allocation is named).
            InvalidPointer: it is not the start of an allocation.
            InvalidArgument: the counter goes backwards; nothing is freed.
        """
        if address is None:
            return
        with self._lock:
            try:
                chunk = self.chunks.get(address)
            except TypeError:  # what cannot be hashed is no address
                chunk = None
            if chunk is None or chunk.id == FREE:
                raise self._bad_free(address)
            time_ = 0
            if self.counter is not None:
                self._last_time = time_ = next_time(self.counter, self._last_time)
            self._freed_sites[address] = chunk.site
            self.bytes_in_use -= chunk.size
            chunk.id = FREE
            if time_:
                chunk.freed_at = time_
                self.holes[chunk.tag].add(chunk.size, chunk.address)
                self._pending.append((chunk, chunk.freed_at))
            else:
                self._settle(chunk)
            if self._waiters:
                self._freed.notify_all()

    def set_safe_frontier(self, time_: int) -> None:
        """Timestamped frees before this time are safe; it never goes back."""
        with self._lock:
            self._frontier = max(self._frontier, time_)

    def live_chunks(self) -> list[Chunk]:
        """Chunks in use, by address."""
        with self._lock:
            return [c for c in self.walk() if c.id != FREE]

    def leaks(self, since: int = 0) -> list[LeakRecord]:
        """Live allocations numbered at least `since`, largest first."""
        records = [
            LeakRecord.of(chunk) for chunk in self.live_chunks() if chunk.id >= since
        ]
        return sorted(records, key=lambda r: (-r.size, r.id))

    @property
    def next_allocation_id(self) -> int:
        """Number that the next allocation gets: a mark for `leaks(since=…)`."""
        return self._next_id

    def close(self, *, strict: bool = True) -> list[LeakRecord]:
        """Return all regions; live allocations are leaks.

        Raises:
            LeakError: strict, and something is still allocated.
        """
        leaked = self.leaks()
        with self._lock:
            for region in self.regions:
                self._release(region)
            self.regions.clear()
            self.chunks.clear()
            self.holes = {LOWER: Holes(), UPPER: Holes()}
            self.gap = None
            self._pending.clear()
        if leaked and strict:
            raise LeakError(self.name, leaked)
        return leaked

    def walk(self) -> Iterator[Chunk]:
        """All chunks in address order of their regions (take no lock)."""
        for region in self.regions:
            chunk: Chunk | None = region.first
            while chunk is not None:
                yield chunk
                chunk = chunk.next

    # -- allocation ------------------------------------------------------------------

    def _take(
        self, rounded: int, alignment: int, end: End, freed_before: int
    ) -> Chunk | None:
        """A chunk for the request, by every means in order."""
        if self._pending:
            self._merge_pending(0)
        chunk = self._find(rounded, alignment, end, freed_before)
        if chunk is not None:
            return chunk
        if self._extend(rounded, alignment):
            chunk = self._find(rounded, alignment, end, freed_before)
        if chunk is None and not freed_before and self._pending:
            self._merge_pending(rounded)
            chunk = self._find(rounded, alignment, end, freed_before)
        if (
            chunk is None
            and self.options.garbage_collection
            and self._drop_free_regions(rounded)
            and self._extend(rounded, alignment)
        ):
            chunk = self._find(rounded, alignment, end, freed_before)
        return chunk

    def _await(
        self, rounded: int, alignment: int, end: End, freed_before: int
    ) -> Chunk | None:
        """Try again after each free, for a limited time."""
        deadline = time.monotonic() + RETRY_SECONDS
        chunk: Chunk | None = None
        self._waiters += 1
        while chunk is None:
            left = deadline - time.monotonic()
            if left <= 0 or not self._freed.wait(left):
                break
            chunk = self._take(rounded, alignment, end, freed_before)
        self._waiters -= 1
        return chunk

    def _take_first(self, rounded: int) -> Chunk | None:
        """The common case: the first hole that is large enough fits."""
        address = self.holes[LOWER].pop_first(rounded)
        if address < 0:
            return None
        chunk = self.chunks[address]
        if chunk.size == rounded:
            return chunk
        return self._carve(chunk, address, rounded, LOWER)

    def _find(
        self, rounded: int, alignment: int, end: End, freed_before: int
    ) -> Chunk | None:
        """A free chunk cut to the request, taken out of the holes."""
        holes, chunks = self.holes[end], self.chunks
        if alignment == QUANTUM and end == LOWER and not freed_before:
            first = self._take_first(rounded)
            if first is not None:
                return first
        for address in holes.at_least(rounded):
            chunk = chunks[address]
            if freed_before and chunk.freed_at > freed_before:
                continue
            if end == LOWER:
                start = address + -address % alignment
            else:
                start = (chunk.end - rounded) // alignment * alignment
            if start < address or start + rounded > chunk.end:
                continue
            holes.remove(chunk.size, address)
            return self._carve(chunk, start, rounded, end)
        gap = self.gap
        if gap is None or gap.size < rounded:
            return None
        if end == LOWER:
            start = gap.address + -gap.address % alignment
        else:
            start = (gap.end - rounded) // alignment * alignment
        if start < gap.address or start + rounded > gap.end:
            return None
        self.gap = None
        return self._carve(gap, start, rounded, end)

    def _carve(self, chunk: Chunk, start: int, rounded: int, end: End) -> Chunk:
        """Cut `[start, start + rounded)` out of a free chunk that is in no index."""
        source = chunk.tag
        if start > chunk.address:
            rest = self._split(chunk, start - chunk.address)
            # What an upper request leaves below stays with its source; what
            # alignment cuts off a lower request belongs to the lower end.
            chunk.tag = source if end == UPPER else LOWER
            self._enter(chunk)
            chunk = rest
        surplus = chunk.size - rounded
        split = surplus > 0 and (
            end == UPPER or chunk.size >= 2 * rounded or surplus >= self._max_internal
        )
        if split:
            rest = self._split(chunk, rounded)
            rest.tag = source if end == LOWER else UPPER
            self._enter(rest)
        chunk.tag = end
        return chunk

    def _split(self, chunk: Chunk, size: int) -> Chunk:
        """Shorten a chunk to `size`; the rest is a new free chunk after it."""
        rest = Chunk(chunk.address + size, chunk.size - size, chunk.region, chunk.tag)
        rest.freed_at = chunk.freed_at
        rest.previous, rest.next = chunk, chunk.next
        if chunk.next is not None:
            chunk.next.previous = rest
        else:
            chunk.region.last = rest
        chunk.next = rest
        chunk.size = size
        self.chunks[rest.address] = rest
        return rest

    def _enter(self, chunk: Chunk) -> None:
        """Put a free chunk where it is found: the gap or its end's holes."""
        if chunk.tag == GAP:
            self.gap = chunk
        else:
            self.holes[chunk.tag].add(chunk.size, chunk.address)

    def _leave(self, chunk: Chunk) -> None:
        if chunk.tag == GAP:
            self.gap = None
        else:
            self.holes[chunk.tag].remove(chunk.size, chunk.address)

    # -- free and merge ----------------------------------------------------------------

    def _settle(self, chunk: Chunk) -> Chunk:
        """Merge a free chunk that is in no index with its neighbours and enter it."""
        if self._partitioned:
            after, before = chunk.next, chunk.previous
            lower_edge = chunk.tag == LOWER and (after is None or after.tag != LOWER)
            upper_edge = chunk.tag == UPPER and (before is None or before.tag != UPPER)
            if lower_edge or upper_edge:
                chunk.tag = GAP
        after = chunk.next
        if after is not None and after.id == FREE and not after.freed_at:
            self._leave(after)
            self._join(chunk, after)
        before = chunk.previous
        if before is not None and before.id == FREE and not before.freed_at:
            self._leave(before)
            self._join(before, chunk)
            chunk = before
        if chunk.tag == GAP:
            self.gap = chunk
        else:
            self.holes[chunk.tag].add(chunk.size, chunk.address)
        return chunk

    def _join(self, first: Chunk, second: Chunk) -> None:
        """Merge `second` into its left neighbour `first`; both free, in no index."""
        if first.tag != second.tag:
            first.tag = GAP
        first.freed_at = max(first.freed_at, second.freed_at)
        first.size += second.size
        first.next = second.next
        if second.next is not None:
            second.next.previous = first
        else:
            second.region.last = first
        del self.chunks[second.address]

    def _merge_pending(self, required: int) -> None:
        """Settle timestamped frees that are safe; others too if `required` bytes are.

        Unsafe ones are merged, oldest first, until one chunk is large enough.
        """
        waiting: deque[tuple[Chunk, int]] = deque()
        satisfied = required == 0
        for chunk, freed_at in self._pending:
            alive = self.chunks.get(chunk.address) is chunk
            if not alive or chunk.id != FREE or chunk.freed_at < freed_at:
                continue
            if chunk.freed_at < self._frontier or not satisfied:
                self._leave(chunk)
                chunk.freed_at = 0
                merged = self._settle(chunk)
                satisfied = satisfied or merged.size >= required
            else:
                waiting.append((chunk, chunk.freed_at))
        self._pending = waiting

    def _bad_free(self, address: int) -> RuntimeMemoryError:
        address = whole(address, "deallocate", "an address")
        site = self._freed_sites.get(address)
        if site is not None:
            return DoubleFree(
                f"{address:#x} was freed already; it was allocated at "
                f"{format_site(site)}",
                address=address,
                site=format_site(site),
            )
        return InvalidPointer(
            f"{address:#x} is not the start of an allocation of {self.name!r}",
            address=address,
        )

    # -- regions -----------------------------------------------------------------------

    def _extend(self, rounded: int, alignment: int) -> bool:
        """Get one more region that can hold the request."""
        available = (self.limit - self.pool_bytes) // QUANTUM * QUANTUM
        if rounded > available:
            return False
        increased = False
        while rounded > self.next_region_bytes:
            self.next_region_bytes *= 2
            increased = True
        size = min(self.next_region_bytes, available)
        got = self.source.alloc(max(alignment, QUANTUM), size)
        while got is None:
            size = round_up(math.ceil(size * _SHRINK))
            if size < rounded or size <= QUANTUM:
                if size < rounded:
                    return False
                got = self.source.alloc(max(alignment, QUANTUM), size)
                if got is None:
                    return False
                break
            got = self.source.alloc(max(alignment, QUANTUM), size)
        if not increased:
            self.next_region_bytes *= 2
        self._add_region(*got)
        return True

    def _add_region(self, base: int, size: int) -> None:
        self.pool_bytes += size
        self.peak_pool_bytes = max(self.peak_pool_bytes, self.pool_bytes)
        tag = GAP if self.options.enable_spatial_partitioning else LOWER
        for region in self.regions:
            if self.source.supports_coalescing and region.base + region.size == base:
                chunk = Chunk(base, size, region, tag)
                region.parts.append((base, size))
                region.size += size
                chunk.previous = region.last
                region.last.next = chunk
                region.last = chunk
                self.chunks[base] = chunk
                self._settle(chunk)
                return
        region = Region(base, size)
        region.first = region.last = chunk = Chunk(base, size, region, tag)
        self.regions.append(region)
        self.chunks[base] = chunk
        self._enter(chunk)

    def _drop_free_regions(self, rounded: int) -> bool:
        """Return wholly free regions if that makes room for the request."""
        free = [r for r in self.regions if r.first is r.last and not r.first.in_use]
        total = sum(region.size for region in free)
        if not free or rounded > self.limit - self.pool_bytes + total:
            return False
        for region in free:
            self._leave(region.first)
            del self.chunks[region.first.address]
            self._release(region)
            self.regions.remove(region)
        return True

    def _release(self, region: Region) -> None:
        for base, size in region.parts:
            self.source.free(base, size)
        self.pool_bytes -= region.size

    def _report_failure(self, size: int, rounded: int, end: End) -> None:
        if self._warnings >= MAX_RETRY_WARNINGS:
            return
        self._warnings += 1
        from msa.runtime.host.reports import out_of_memory_report

        if _LOG.isEnabledFor(logging.WARNING):
            _LOG.warning("%s", out_of_memory_report(self, size, rounded, end))

    # -- statistics --------------------------------------------------------------------

    def stats(self) -> PoolStats:
        """Counts in bytes; see `PoolStats`."""
        with self._lock:
            largest = max(holes.largest() for holes in self.holes.values())
            if self.gap is not None:
                largest = max(largest, self.gap.size)
            return PoolStats(
                self.num_allocs,
                self.bytes_in_use,
                self.peak_bytes_in_use,
                self.largest_alloc_size,
                self.limit,
                self.pool_bytes,
                self.peak_pool_bytes,
                largest,
                sum(c.size - c.requested for c in self.walk() if c.id != FREE),
            )

    def clear_stats(self) -> None:
        """Start counting anew: peak becomes the current use."""
        with self._lock:
            self.num_allocs = self.largest_alloc_size = 0
            self.peak_bytes_in_use = self.bytes_in_use

    def check(self) -> None:
        """Assert the invariant; linear in the number of chunks."""
        with self._lock:
            free: dict[str, set[tuple[int, int]]] = {LOWER: set(), UPPER: set()}
            gaps, used, count = [], 0, 0
            for region in self.regions:
                place = region.base
                before: Chunk | None = None
                chunk: Chunk | None = region.first
                while chunk is not None:
                    assert chunk.address == place
                    assert chunk.previous is before
                    assert chunk.size % QUANTUM == 0 or chunk.next is None
                    assert self.chunks[place] is chunk
                    if chunk.id != FREE:
                        used += chunk.size
                        assert 0 < chunk.requested <= chunk.size
                    elif chunk.tag == GAP:
                        gaps.append(chunk)
                    else:
                        free[chunk.tag].add((chunk.size, place))
                    if before is not None and before.id == FREE == chunk.id:
                        assert before.freed_at or chunk.freed_at, "unmerged neighbours"
                    place += chunk.size
                    count += 1
                    before, chunk = chunk, chunk.next
                assert place == region.base + region.size
                assert region.last is before
            assert count == len(self.chunks)
            assert used == self.bytes_in_use
            assert gaps == ([] if self.gap is None else [self.gap])
            for tag, holes in self.holes.items():
                holes.check()
                held = {(s, a) for s, places in holes.by_size.items() for a in places}
                assert held == free[tag]
