"""Combining temporaries into few allocations, and taking suspects apart.

Source: `xla/service/buffer_assignment.cc` (CombineTempAllocations, IsolateHeapBuffers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.heap import align_up

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment.allocation import BufferAllocation
    from msa.analysis.buffer_assignment.assigner import Assigner


def combine_temporaries(assigner: Assigner) -> None:
    """Lay temporaries of a colour (and page) one behind another in one block.

    Private stacks overlay each other at offset 0. Everything else keeps its order;
    allocations are numbered anew. Linear.
    """
    options = assigner.options
    kept = [a for a in assigner.allocations if not a.is_temporary or a.preset]
    current: dict[tuple[int, int], BufferAllocation] = {}
    for allocation in _order(assigner):
        key = (allocation.color, allocation.page)
        combined = current.get(key)
        limit = options.heap_limit
        full = (
            combined is not None
            and limit is not None
            and combined.size + allocation.size >= limit
        )
        if combined is None or full:
            current[key] = allocation
            allocation.is_tuple = False
            kept.append(allocation)
            continue
        _absorb(assigner, combined, allocation)
    for number, allocation in enumerate(kept):
        allocation.index = number
        if (
            options.temp_color is not None
            and allocation.is_temporary
            and allocation.color == 0
        ):
            allocation.color = options.temp_color
    assigner.allocations = kept


def _order(assigner: Assigner) -> list[BufferAllocation]:
    """Temporaries as they were made, the one that wastes most on alignment last.

    The last of a block needs no padding behind it.
    """

    def waste(allocation: BufferAllocation) -> int:
        return -allocation.size % assigner.options.alignment_of(allocation.color)

    found = [a for a in assigner.allocations if a.is_temporary and not a.preset]
    last: dict[tuple[int, int], BufferAllocation] = {}
    for a in found:
        key = (a.color, a.page)
        if a.color in assigner.options.private_stacks:
            continue
        if key not in last or waste(a) > waste(last[key]):
            last[key] = a
    ends = set(map(id, last.values()))
    return [a for a in found if id(a) not in ends] + list(last.values())


def _absorb(
    assigner: Assigner, combined: BufferAllocation, other: BufferAllocation
) -> None:
    options = assigner.options
    if other.color in options.private_stacks:
        base = 0
        size = other.size if options.strict_source else max(combined.size, other.size)
    else:
        base = align_up(combined.size, options.alignment_of(combined.color))
        size = base + other.size
    combined.size = size
    for value, (offset, extent) in other.assigned.items():
        # Not `assign`: a strict private stack may end before its slices do.
        combined.assigned[value] = (base + offset, extent)
        assigner.home[value] = combined
    combined.cross_color.extend(other.cross_color)


def isolate(assigner: Assigner, allocation: BufferAllocation) -> None:
    """Move the first values of a block behind its end, one apart from the other."""
    isolation = assigner.options.isolation
    if isolation is None or allocation.color not in isolation.colors:
        return
    alignment = assigner.options.alignment_of(allocation.color)
    value_of = assigner.alias.dataflow.value
    order = isolation.order or (lambda value: value.id)
    values = sorted((value_of(v) for v in allocation.assigned), key=order)
    start = align_up(isolation.base + allocation.size + isolation.padding, alignment)
    end = allocation.size
    for rank, value in enumerate(values):
        offset, size = allocation.assigned[value.id]
        if rank < isolation.fuel:
            offset = start
            start += align_up(size + isolation.padding, alignment)
        else:
            offset = align_up(offset + isolation.base, alignment)
        allocation.assigned[value.id] = (offset, size)
        end = max(end, offset + size)
    allocation.size = end
