"""Places that an asynchronous operation may write to at any moment of its flight."""

from __future__ import annotations

from msa.hlo.instruction import Instruction
from msa.runtime.machine.placement import Placement
from msa.runtime.machine.storage_sets import leaf_indices, position_text

Places = dict[str, tuple[int, int]]
"""Name of a value -> (offset, size) in the alternate memory."""


def inner_places(operation: Instruction, placement: Placement) -> Places:
    """Planned places of what an asynchronous computation makes for itself.

    Those of its operands and of its result, which others see, are not among them, nor
    what lies in their place: the lives of operands and results guard those.
    """
    planned = placement.planned
    outer = {root for _, root in placement.leaf_sets(operation)}
    seen = [planned[root] for root in outer if root in planned]
    places: Places = {}
    work, known = list(operation.called_computations), set()
    while work:
        computation = work.pop()
        if computation in known:
            continue
        known.add(computation)
        for instruction in computation.instructions:
            work += instruction.called_computations
            for index in leaf_indices(instruction):
                if not placement.sets.has(instruction, index):
                    continue  # inside a fusion
                place = planned.get(placement.sets.set_of(instruction, index))
                if place is not None and not any(_overlap(place, x) for x in seen):
                    places[position_text(instruction, index)] = place
    return places


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[0] + b[1] and b[0] < a[0] + a[1]
