"""Bytes live during a sequence of one computation.

Source: the idea of `xla/service/heap_simulator/heap_simulator.cc`
(NoFragmentationStatsHeap), with in-place results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from msa.analysis.schedulers.local_values import NO_STORAGE, LocalValues
from msa.hlo.opcode import is_elementwise

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction

_IN_PLACE_OPERAND: Final = {
    "dynamic-update-slice": 0,
    "scatter": 0,
    "set-dimension-size": 0,
    "triangular-solve": 1,
    "all-reduce": 0,
    "sort": 0,
}


def in_place_operand(x: Instruction) -> int:
    """The operand whose storage the result may take over, or -1.

    Only single array results of the operand's exact shape count.
    """
    if x.shape.is_tuple or not x.operands:
        return -1
    candidate = _IN_PLACE_OPERAND.get(x.opcode, -1)
    if candidate >= 0:
        return candidate if x.operands[candidate].shape == x.shape else -1
    if x.opcode in ("copy", "constant", "rng"):
        return -1
    for k, operand in enumerate(x.operands):
        if operand.shape == x.shape and is_elementwise(x, k):
            return k
    return -1


class StepBytes:
    """What one step of a computation allocates and may take over.

    Attributes:
        values: the values of the computation.
        inner: per instruction, the most bytes that computations it calls have
            live beyond their parameters and results.
        takes: per instruction, the value whose storage its result may take over
            when this is its last use, or -1.
    """

    __slots__ = ("inner", "takes", "values")

    def __init__(
        self, values: LocalValues, peaks: Mapping[Computation, int] | None = None
    ) -> None:
        self.values = values
        self.inner = [0] * len(values.instructions)
        self.takes = [-1] * len(values.instructions)
        for i, x in enumerate(values.instructions):
            if peaks and x.called_computations:
                self.inner[i] = max(peaks.get(c, 0) for c in x.called_computations)
            k = in_place_operand(x)
            if k >= 0:
                held = values.held[values.number[x.operands[k]]]
                if len(held) == 1 and not values.fixed[held[0]]:
                    self.takes[i] = held[0]


def live_bytes(sequence: Sequence[Instruction], steps: StepBytes) -> NDArray[np.int64]:
    """Bytes live at each step of a sequence, calls included; O(reads).

    Parameters and constants are not counted: they are there whatever the order.
    A value lives from the step that creates it through its last read; values of
    the root live to the end.
    """
    values = steps.values
    counts = values.use_counts()
    sizes = values.bytes
    fixed = values.fixed
    result = np.zeros(len(sequence), dtype=np.int64)
    live = 0
    for t, x in enumerate(sequence):
        i = values.number[x]
        new = values.made[i]
        freed = 0
        taken = 0
        for v in values.read[i]:
            counts[v] -= 1
            if not counts[v] and not fixed[v]:
                freed += sizes[v]
                if v == steps.takes[i]:
                    taken = sizes[v]
        live += new
        result[t] = live - taken + steps.inner[i]
        live -= freed
        if x.opcode not in NO_STORAGE:
            # What nothing reads is dropped at once.
            live -= sum(sizes[v] for v in values.defined[i] if not counts[v])
    return result


def sequence_peak(sequence: Sequence[Instruction], steps: StepBytes) -> int:
    """The most bytes live at a step of a sequence; 0 for an empty one."""
    return int(live_bytes(sequence, steps).max(initial=0))


def peak_bound(steps: StepBytes) -> int:
    """No order has a lower peak: each step needs what it reads and creates. Linear."""
    values = steps.values
    sizes = values.bytes
    bound = 0
    for i, x in enumerate(values.instructions):
        need = steps.inner[i] + values.made[i]
        need += sum(sizes[v] for v in values.read[i] if not values.fixed[v])
        if steps.takes[i] >= 0:
            need -= sizes[steps.takes[i]]
        if x.opcode != "get-tuple-element":
            bound = max(bound, need)
    root = values.number[values.computation.root]
    held = sum(sizes[v] for v in values.held[root] if not values.fixed[v])
    return max(bound, held)
