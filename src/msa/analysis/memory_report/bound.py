"""How much memory a schedule needs, whatever the placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from msa.analysis.buffer_assignment.sharing import pieces_of
from msa.analysis.copy_insertion.conflicts import takes_over
from msa.analysis.operand_sharing import OperandSharing

if TYPE_CHECKING:
    from msa.analysis.buffer_assignment import BufferAssignment
    from msa.analysis.values import Value


def needed_bytes(assignment: BufferAssignment, color: int) -> int:
    """The most bytes of a memory space that hold needed values at one step.

    Arguments that are not given away count all the time, everything else while it is
    live. At the step of an operation that can work in place, its result and an
    operand that dies there count once. Constants do not count. Near linear.
    """
    live = assignment.live
    options = assignment.options
    steps = len(live.schedule)
    change = np.zeros(steps + 3, dtype=np.int64)
    always = 0
    alias = assignment.alias
    sharing = OperandSharing(alias.dataflow, pairs=alias.pairs)
    for buffer in assignment.alias.buffers:
        first = buffer.values[0]
        if not assignment.has_allocation(first):
            continue
        home = assignment.allocation_of(first)
        if home.color != color or home.is_constant or home.is_thread_local:
            continue
        size = max(map(options.size_of, buffer.values))
        if home.is_readonly:
            always += size
            continue
        for start, end in pieces_of(buffer, live):
            change[start] += size
            change[end] -= size
        for value in buffer.values:
            if _is_in_place(assignment, sharing, value):
                bound = live.range_of(value)
                assert bound is not None
                change[bound.start] -= options.size_of(value)
                change[bound.start + 1] += options.size_of(value)
    needed = np.cumsum(change)[:steps]
    return always + int(needed.max(initial=0))


def _is_in_place(
    assignment: BufferAssignment, sharing: OperandSharing, value: Value
) -> bool:
    """Whether a value can take over the bytes of an operand that dies for it."""
    bound = assignment.live.range_of(value)
    x = value.instruction
    if bound is None or not x.operands or x.opcode in ("tuple", "while", "conditional"):
        return False
    size_of = assignment.options.size_of
    flow = assignment.alias.dataflow
    for operand in dict.fromkeys(x.operands):
        for old in flow.flattened_values(operand):
            end = assignment.live.range_of(old)
            if (
                end is not None
                and end.end == bound.start
                and size_of(old) == size_of(value)
                and assignment.alias.buffer_of(old)
                is not assignment.alias.buffer_of(value)
                and takes_over(sharing, assignment.alias.pairs, old, value)
            ):
                return True
    return False
