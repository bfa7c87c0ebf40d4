"""What a pool looks like: occupancy, memory map, out-of-memory report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msa.runtime.host.annotations import render_annotation
from msa.runtime.host.chunks import BIN_COUNT, QUANTUM, bin_for
from msa.units import format_bytes

if TYPE_CHECKING:
    from msa.runtime.host.bfc import BFCAllocator


@dataclass(frozen=True, slots=True)
class BinRow:
    """One bin: chunks by their size; bytes and counts in use and in all."""

    number: int
    minimum: int
    chunks_in_use: int
    bytes_in_use: int
    chunks: int
    bytes: int


def bin_table(pool: BFCAllocator) -> list[BinRow]:
    """All bins with at least one chunk."""
    used, used_bytes = Counter[int](), Counter[int]()
    every, every_bytes = Counter[int](), Counter[int]()
    for chunk in pool.walk():
        number = bin_for(chunk.size)
        every[number] += 1
        every_bytes[number] += chunk.size
        if chunk.in_use:
            used[number] += 1
            used_bytes[number] += chunk.size
    return [
        BinRow(b, QUANTUM << b, used[b], used_bytes[b], every[b], every_bytes[b])
        for b in range(BIN_COUNT)
        if every[b]
    ]


def memory_map(pool: BFCAllocator) -> dict[str, Any]:
    """Statistics, bins and every chunk as plain data."""
    stats = pool.stats()
    return {
        "name": pool.name,
        "bytes_in_use": stats.bytes_in_use,
        "pool_bytes": stats.pool_bytes,
        "bytes_limit": stats.bytes_limit,
        "external_fragmentation": stats.external_fragmentation,
        "internal_waste": stats.internal_waste,
        "bins": [
            {
                "bin": row.number,
                "minimum": row.minimum,
                "chunks_in_use": row.chunks_in_use,
                "bytes_in_use": row.bytes_in_use,
                "chunks": row.chunks,
                "bytes": row.bytes,
            }
            for row in bin_table(pool)
        ],
        "chunks": [
            {
                "in_use": chunk.in_use,
                "address": chunk.address,
                "size": chunk.size,
                "requested": chunk.requested,
                "bin": bin_for(chunk.size),
                "freed_at": chunk.freed_at,
            }
            for chunk in pool.walk()
        ],
    }


def render_occupancy(pool: BFCAllocator, width: int = 100) -> str:
    """The pool as `width` characters: `*` requested, `x` waste, `_` free."""
    total = pool.pool_bytes
    if not pool.regions:
        return "<allocator contains no memory>"
    cells = ["_"] * width

    def paint(begin: int, end: int, mark: str) -> None:
        if end <= begin:
            return
        first, last = begin * width // total, (end - 1) * width // total
        for cell in range(first, last + 1):
            cells[cell] = mark

    spans = []
    base = 0
    for region in pool.regions:
        for chunk in pool.walk():
            if chunk.region is region and chunk.in_use:
                start = base + chunk.address - region.base
                spans.append((start, chunk.requested, chunk.size))
        base += region.size
    for start, requested, size in spans:
        paint(start + requested, start + size, "x")
    for start, requested, _ in spans:
        paint(start, start + requested, "*")
    return "".join(cells)


def out_of_memory_report(
    pool: BFCAllocator, size: int, rounded: int, end: str, requester: str = ""
) -> str:
    """Why a request failed, and what holds the memory."""
    stats = pool.stats()
    who = f" for {requester}" if requester else ""
    lines = [
        (
            f"{pool.name}: cannot allocate {size} bytes ({rounded} rounded) at the {end} "
            f"end{who}"
        ),
        "bins (minimum: chunks in use / all, bytes in use / all):",
    ]
    lines += [
        f"  {format_bytes(row.minimum)}: {row.chunks_in_use}/{row.chunks}, "
        f"{format_bytes(row.bytes_in_use)}/{format_bytes(row.bytes)}"
        for row in bin_table(pool)
    ]
    wanted = bin_for(rounded)
    lines.append(f"free chunks of the wanted bin {wanted}, with their neighbours:")
    for chunk in pool.walk():
        if not chunk.in_use and bin_for(chunk.size) == wanted:
            lines.append(f"  {chunk.previous!r} {chunk!r} {chunk.next!r}")
    lines.append("chunks by address:")
    sizes = Counter[int]()
    for chunk in pool.walk():
        note = render_annotation(chunk.annotation)
        lines.append(f"  {chunk!r}{' ' + note if note else ''}")
        if chunk.in_use:
            sizes[chunk.size] += 1
    lines.append("live chunks by size:")
    lines += [f"  {n} of {format_bytes(s)}" for s, n in sorted(sizes.items())]
    lines += [
        (
            f"in use {format_bytes(stats.bytes_in_use)}, free in the pool "
            f"{format_bytes(stats.free_bytes)}, largest free block "
            f"{format_bytes(stats.largest_free_block_bytes)}"
        ),
        (
            f"not taken from the system yet {format_bytes(pool.limit - stats.pool_bytes)}, "
            f"pool {format_bytes(stats.pool_bytes)}, limit {format_bytes(pool.limit)}"
        ),
        (
            f"next region {format_bytes(pool.next_region_bytes)}, growth "
            f"{'on' if pool.options.allow_growth else 'off'}"
        ),
        render_occupancy(pool),
    ]
    return "\n".join(lines)
