"""An independent check of a buffer assignment.

Nothing of the assigner is used: live ranges and aliases are looked at anew, and a
sweep over time keeps the byte ranges in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from msa.analysis.buffer_assignment.computations import allocation_classes
from msa.analysis.buffer_assignment.interference import Interference
from msa.analysis.operand_sharing import OperandSharing

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment.allocation import BufferAllocation
    from msa.analysis.buffer_assignment.assignment import BufferAssignment
    from msa.analysis.values import Value


def verify_assignment(assignment: BufferAssignment) -> list[str]:
    """Everything that is wrong, as text. O(values log values).

    Checked: every value of a reachable computation has one byte range; values of a
    buffer share offset and allocation; ranges lie inside; nothing but outputs is
    written into donated arguments and nothing at all into others; no two values
    that are needed at the same time share a byte, except where one is computed in
    place of the other.
    """
    problems: list[str] = []
    for allocation in assignment.allocations:
        problems += allocation.check()
    problems += _unassigned(assignment)
    for buffer in assignment.alias.buffers:
        places = {
            (s.allocation, s.offset)
            for s in (
                assignment.slice_of(v)
                for v in buffer.values
                if assignment.has_allocation(v)
            )
        }
        if len(places) > 1:
            problems.append(f"{buffer} lies at {sorted(places)}")
    for allocation in assignment.allocations:
        if not allocation.is_thread_local:
            problems += _overlaps(assignment, allocation)
            problems += _foreign(assignment, allocation)
    return problems


def _unassigned(assignment: BufferAssignment) -> list[str]:
    options = assignment.options
    reachable = set(allocation_classes(assignment.module).global_)
    problems: list[str] = []
    for buffer in assignment.alias.buffers:
        if buffer.values[0].instruction.computation not in reachable:
            continue
        if any(v.instruction.opcode == "constant" for v in buffer.values):
            continue
        if any(options.color_of(v) == options.view_color for v in buffer.values):
            continue
        problems.extend(
            f"{value} has no storage"
            for value in buffer.values
            if not assignment.has_allocation(value)
        )
    return problems


def _foreign(assignment: BufferAssignment, allocation: BufferAllocation) -> list[str]:
    if not allocation.is_readonly or len(allocation.assigned) < 2:
        return []
    value_of = assignment.alias.dataflow.value
    buffers = {assignment.alias.buffer_of(value_of(v)).id for v in allocation.assigned}
    if len(buffers) > 1:
        return [f"read-only allocation {allocation.index} holds {len(buffers)} buffers"]
    return []


def _overlaps(assignment: BufferAssignment, allocation: BufferAllocation) -> list[str]:
    """Sweep over the steps; ranges in use are disjoint, so neighbours suffice."""
    live = assignment.live
    value_of = assignment.alias.dataflow.value
    rows = []
    for number, (offset, size) in allocation.assigned.items():
        bound = live.range_of(value_of(number))
        if bound is not None and size:
            rows.append((bound.start, number, offset, size, bound.end))
    rows.sort()
    endings = sorted((row[4], row[1], row[2]) for row in rows)
    alias = assignment.alias
    sharing = OperandSharing(alias.dataflow, pairs=alias.pairs)
    interference = Interference(live, sharing)
    in_use: SortedDict[int, dict[int, tuple[int, int]]] = SortedDict()
    problems: list[str] = []
    done = 0
    for start, number, offset, size, end in rows:
        while done < len(endings) and endings[done][0] < start:
            _, gone, at = endings[done]
            in_use[at].pop(gone, None)
            if not in_use[at]:
                del in_use[at]
            done += 1
        value = value_of(number)
        place = in_use.bisect_left(offset + size)
        while place:
            place -= 1
            at, holders = in_use.peekitem(place)
            reach = max(at + extent for extent, _ in holders.values())
            for other, (extent, until) in holders.items():
                if at + extent > offset and not _legal(
                    interference, value_of(other), value, until == start, at == offset
                ):
                    problems.append(
                        f"allocation {allocation.index}: {value} "
                        f"[{offset}, {offset + size}) and {value_of(other)} "
                        f"[{at}, {at + extent}) are both needed at step {start}"
                    )
            if reach <= offset:
                break
        in_use.setdefault(offset, {})[number] = (size, end)
    return problems


def _legal(
    interference: Interference, old: Value, new: Value, touches: bool, same: bool
) -> bool:
    """Whether two values may hold the same bytes at the step where they meet."""
    if not touches or not same:
        return False
    dataflow = interference.dataflow
    if interference.aliased(old, new):
        return True
    user, index = new.position
    return any(
        old in dataflow.values_at(operand, ())
        and interference.sharing.can_share(operand, (), user, index)
        for operand in dict.fromkeys(user.operands)
    )
