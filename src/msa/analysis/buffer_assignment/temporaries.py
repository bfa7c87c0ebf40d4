"""Packing temporaries: one block per colour, pages or heaps where limited.

Source: `xla/service/buffer_assignment.cc`
(AssignBuffersWithSequentialOrdering, AssignBuffersFromHeapSimulator).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msa.analysis.buffer_assignment.assigner import Strategy
from msa.analysis.buffer_assignment.holes import (
    Host,
    Tenant,
    fill_holes,
    overlap,
)
from msa.analysis.buffer_assignment.sharing import (
    ShareClass,
    merge_pieces,
    pieces_of,
    share_classes,
)
from msa.errors import OptionsError
from msa.heap import Buffer, align_up, pack

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment.allocation import BufferAllocation
    from msa.analysis.buffer_assignment.assigner import Assigner
    from msa.analysis.values import HloBuffer
    from msa.hlo.computation import Computation


_PAGED: Final = (0, 1)
"""Colours whose temporaries are cut into pages when a page size is set."""


def assign_temporaries(assigner: Assigner) -> None:
    """Give every delayed buffer a place.

    Colours that may use other colours' allocations come after those; in `tight`
    sharing temporaries fill what is free of outputs and donated arguments first.
    """
    by_color: dict[int, list[HloBuffer]] = {}
    for buffer in assigner.delayed:
        by_color.setdefault(assigner.color_of(buffer), []).append(buffer)
    assigner.delayed = []
    for color in _color_order(assigner, list(by_color)):
        buffers = by_color[color]
        if color in assigner.options.private_stacks:
            _assign_private(assigner, color, buffers)
            continue
        buffers = _reuse_other_colors(assigner, color, buffers)
        _assign_heap(assigner, color, buffers)


def _color_order(assigner: Assigner, colors: list[int]) -> list[int]:
    """Colours in an order in which those whose storage is borrowed come first."""
    usable = assigner.options.usable
    rest = sorted(colors)
    order: list[int] = []
    while rest:
        free = [c for c in rest if not any(usable(c, o) for o in rest if o != c)]
        chosen = free[0] if free else rest[0]
        order.append(chosen)
        rest.remove(chosen)
    return order


# -- one heap ----------------------------------------------------------------------


def _assign_heap(
    assigner: Assigner,
    color: int,
    buffers: Sequence[HloBuffer],
    *,
    use_hosts: bool = True,
) -> list[BufferAllocation]:
    """Pack buffers of one colour into new allocations."""
    options = assigner.options
    borrow = assigner.strategy is not Strategy.STANDARD and use_hosts
    hosts = _hosts(assigner, color) if borrow else []
    rows = [(b, assigner.size_of(b), -1) for b in buffers]
    if assigner.strategy is Strategy.CLASSES_FIRST:
        for number, host in enumerate(hosts):
            if len(host.buffers) == 1:
                rows.append((host.buffers[0], host.allocation.size, number))
    classes = share_classes(rows, assigner.live, assigner.sharing, options.size_of)
    free: list[ShareClass] = []
    empty: list[ShareClass] = []
    for group in classes:
        if group.host >= 0:
            _join_host(assigner, hosts[group.host], group)
        else:
            (free if group.size and group.pieces else empty).append(group)
    if hosts:
        free = _into_hosts(assigner, color, free, hosts)
    made: list[BufferAllocation] = []
    paged = options.page_bytes is not None and color in _PAGED
    for page, heap in enumerate(_heaps(assigner, color, free)):
        size = max(offset + group.size for group, offset in heap)
        allocation = assigner.new_allocation(size, color)
        allocation.page = page if paged else -1
        made.append(allocation)
        for group, offset in heap:
            for buffer in group.buffers:
                assigner.put(allocation, buffer, offset)
    if empty:
        allocation = made[0] if made else assigner.new_allocation(0, color)
        for group in empty:
            # A buffer that is never live still has an address, within bounds.
            if group.size > allocation.size:
                allocation = assigner.new_allocation(group.size, color)
                made.append(allocation)
            for buffer in group.buffers:
                assigner.put(allocation, buffer, 0)
    return made


def _heaps(
    assigner: Assigner, color: int, classes: list[ShareClass]
) -> list[list[tuple[ShareClass, int]]]:
    """Offsets of classes, in one heap or in several of limited size."""
    options = assigner.options
    alignment = options.alignment_of(color)
    limit = options.page_bytes if color in _PAGED else None
    if limit is not None:
        for group in classes:
            if group.size > limit and not any(
                assigner.lives_out(b) for b in group.buffers
            ):
                raise OptionsError(
                    f"{group.buffers[0].values[0]} needs {group.size} bytes, more than "
                    f"a page of {limit}",
                    hint="raise page_bytes",
                )
    else:
        limit = options.heap_limit
    if not classes:
        return []
    if limit is None:
        return [_packed(classes, alignment, options.effort)]
    heaps = []
    rest = sorted(
        classes, key=lambda g: (-g.size, g.pieces[0][0] - g.pieces[-1][1], _id(g))
    )
    while rest:
        heap: list[tuple[ShareClass, int]] = []
        left: list[ShareClass] = []
        for group in rest:
            offset = _first_fit(heap, group, alignment)
            if offset + group.size <= limit or not heap:
                heap.append((group, offset))
            else:
                left.append(group)
        heaps.append(heap)
        rest = left
    return heaps


def _id(group: ShareClass) -> int:
    return min(buffer.values[0].id for buffer in group.buffers)


def _first_fit(
    heap: list[tuple[ShareClass, int]], group: ShareClass, alignment: int
) -> int:
    taken = sorted(
        (offset, offset + other.size)
        for other, offset in heap
        if overlap(other.pieces, group.pieces)
    )
    at = 0
    for start, end in taken:
        if at + group.size <= start:
            break
        at = max(at, align_up(end, alignment))
    return at


def _packed(
    classes: list[ShareClass], alignment: int, effort: int | None
) -> list[tuple[ShareClass, int]]:
    """One heap, as low as the packer gets it."""
    rows = []
    for number, group in enumerate(classes):
        pieces = group.pieces
        gaps = tuple((a[1], b[0]) for a, b in pairwise(pieces))
        rows.append(Buffer(number, pieces[0][0], pieces[-1][1], group.size, gaps=gaps))
    if effort is None:
        plan = pack(rows, alignment=alignment)
    else:
        plan = pack(rows, alignment=alignment, effort=effort)
    return list(zip(classes, plan.offsets, strict=True))


# -- storage of outputs and donated arguments --------------------------------------


@dataclass(slots=True)
class _Host:
    """An allocation that may be borrowed while its owner does not need it.

    Attributes:
        allocation: the storage.
        buffers: what was assigned to it so far; the owner first.
    """

    allocation: BufferAllocation
    buffers: list[HloBuffer]


def _hosts(assigner: Assigner, color: int) -> list[_Host]:
    """Outputs and donated arguments of a colour, in order of their allocations."""
    found: list[_Host] = []
    for allocation in assigner.allocations:
        borrowed = allocation.maybe_live_out or allocation.aliased_with_output
        if not borrowed or allocation.color != color or not allocation.size:
            continue
        if allocation.is_readonly or not allocation.is_reusable or allocation.preset:
            continue
        values = [assigner.alias.dataflow.value(v) for v in allocation.assigned]
        if any(v.shape.is_tuple for v in values):
            continue
        buffers = {b.id: b for b in map(assigner.alias.buffer_of, values)}
        found.append(_Host(allocation, list(buffers.values())))
    return found


def _join_host(assigner: Assigner, host: _Host, group: ShareClass) -> None:
    """Members of a class that contains the host's owner take its storage."""
    owner = host.buffers[0]
    for buffer in group.buffers:
        if buffer is not owner:
            assigner.put(host.allocation, buffer, 0)
            host.buffers.append(buffer)


def _into_hosts(
    assigner: Assigner, color: int, classes: list[ShareClass], hosts: list[_Host]
) -> list[ShareClass]:
    """Move classes into free windows; what stays is returned."""
    hidden = assigner.options.must_not_live_out
    movable = [
        group
        for group in classes
        if hidden is None or not any(hidden(v) for b in group.buffers for v in b.values)
    ]
    busy = [
        merge_pieces(
            [p for buffer in host.buffers for p in pieces_of(buffer, assigner.live)]
        )
        for host in hosts
    ]
    filling = fill_holes(
        [Tenant(group.size, tuple(group.pieces)) for group in movable],
        [
            Host(host.allocation.size, tuple(pieces))
            for host, pieces in zip(hosts, busy, strict=True)
        ],
        steps=len(assigner.live.schedule) + 1,
        alignment=assigner.options.alignment_of(color),
    )
    gone: set[int] = set()
    for number, (host, offset) in filling.placed.items():
        gone.add(id(movable[number]))
        for buffer in movable[number].buffers:
            assigner.put(hosts[host].allocation, buffer, offset)
    return [group for group in classes if id(group) not in gone]


# -- colours -----------------------------------------------------------------------


def _reuse_other_colors(
    assigner: Assigner, color: int, buffers: list[HloBuffer]
) -> list[HloBuffer]:
    """Put temporaries into gaps of other colours' blocks; what stays is returned."""
    options = assigner.options
    blocks = [
        a
        for a in assigner.allocations
        if a.is_temporary and a.color != color and options.usable(color, a.color)
    ]
    if not blocks:
        return buffers
    left = []
    value_of = assigner.alias.dataflow.value
    for buffer in sorted(buffers, key=lambda b: (-assigner.size_of(b), b.id)):
        size = assigner.size_of(buffer)
        pieces = pieces_of(buffer, assigner.live)
        best: tuple[int, int, int] | None = None
        for place, block in enumerate(blocks):
            taken = []
            for number, (offset, extent) in block.assigned.items():
                bound = assigner.live.range_of(value_of(number))
                if bound and overlap([(bound.start, bound.end + 1)], pieces):
                    taken.append((offset, offset + extent))
            gap = _tightest_gap(
                sorted(taken), size, block.size, options.alignment_of(block.color)
            )
            if gap is not None and (best is None or gap[0] < best[0]):
                best = (gap[0], place, gap[1])
        if best is None:
            left.append(buffer)
            continue
        block = blocks[best[1]]
        assigner.put(block, buffer, best[2])
        block.cross_color.extend(v.id for v in buffer.values)
    return left


def _tightest_gap(
    taken: list[tuple[int, int]], size: int, limit: int, alignment: int
) -> tuple[int, int] | None:
    """(slack, offset) of the gap with the least slack, the lowest among equals."""
    best: tuple[int, int] | None = None
    at = 0
    for start, end in (*taken, (limit, limit)):
        offset = align_up(at, alignment)
        slack = start - offset - size
        if slack >= 0 and (best is None or slack < best[0]):
            best = (slack, offset)
        at = max(at, end)
    return best


def _assign_private(assigner: Assigner, color: int, buffers: list[HloBuffer]) -> None:
    """One block per listed computation; the rest shares the colour's own."""
    groups: dict[Computation | None, list[HloBuffer]] = {}
    listed = {
        inner: computation
        for computation in assigner.options.private_stacks[color]
        for inner in _reachable(computation)
    }
    for buffer in buffers:
        owner = listed.get(buffer.values[0].instruction.computation)
        groups.setdefault(owner, []).append(buffer)
    for group in groups.values():
        _assign_heap(assigner, color, group, use_hosts=False)


def _reachable(computation: Computation) -> list[Computation]:
    found = [computation]
    seen = {computation}
    for inner in found:
        for x in inner.instructions:
            for callee in x.called_computations:
                if callee not in seen:
                    seen.add(callee)
                    found.append(callee)
    return found
