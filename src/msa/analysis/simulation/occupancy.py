"""How full alternate memory is, as layouts alone tell it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msa.analysis.manager import AnalysisManager
from msa.analysis.operand_sharing import OperandSharing
from msa.analysis.residency import Residency, handovers
from msa.analysis.values import Value


def alternate_bytes(analyses: AnalysisManager, space: int) -> NDArray[np.int64]:
    """Bytes of memory `space` that hold needed values, per step.

    O(n log n) in the positions and uses of values in that memory.
    """
    schedule = analyses.schedule
    residency = Residency(analyses.alias, schedule)
    change = np.zeros(len(schedule) + 1, np.int64)
    ending: list[tuple[int, Value]] = []
    beginning: list[tuple[int, Value]] = []
    for buffer in analyses.alias.buffers:
        inside = [v for v in buffer.values if _is_in(v, space)]
        if not inside:
            continue
        size = max(v.byte_size() for v in inside)
        spans = residency.of_buffer(inside)
        for start, end in spans:
            change[start] += size
            change[end] -= size
        ending += [(end, inside[-1]) for _, end in spans]
        beginning += [(start, inside[0]) for start, _ in spans]
    shared = _shared_bytes(analyses, ending, beginning)
    for step, size in shared.items():
        change[step] -= size
        change[step + 1] += size
    return np.cumsum(change)[: len(schedule)]


def _is_in(value: Value, space: int) -> bool:
    shape = value.shape
    return shape.is_array and shape.memory_space == space


def _shared_bytes(
    analyses: AnalysisManager,
    ending: list[tuple[int, Value]],
    beginning: list[tuple[int, Value]],
) -> dict[int, int]:
    """Per step, bytes of results that can lie over a dying operand."""
    sharing = OperandSharing(analyses.dataflow)
    taken: set[Value] = set()
    shared: dict[int, int] = {}
    for step, old, new in handovers(ending, beginning):
        if old in taken or new in taken:
            continue
        user = analyses.schedule.instructions[step]
        if new.instruction is user and any(
            sharing.can_share(x.operand, x.operand_index, user, new.index)
            for x in old.uses
            if x.instruction is user
        ):
            taken |= {old, new}
            shared[step] = shared.get(step, 0) + new.byte_size()
    return shared
