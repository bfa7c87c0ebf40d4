"""What an edit is, and when it made a module simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msa.analysis.trip_counts import stated_trips
from msa.hlo.module import Module
from msa.testing.shrinking.draft import Draft

Edit = Callable[[Draft], bool]
"""Changes a draft; False if it does not fit it any more."""

Kind = Callable[[Module], Iterator[Edit]]
"""The edits of one kind that a module offers."""

_WEIGHTS: Final = {
    "constant": 1,
    "iota": 1,
    "parameter": 1,
    "broadcast": 2,
    "get-tuple-element": 3,
    "tuple": 3,
}
_OTHERS: Final = 6


def weight(module: Module) -> tuple[int, int]:
    """How large a module is: every edit that is kept makes it smaller.

    First what its instructions weigh, then trips and elements of tuples.
    """
    weights = trips = size = 0
    for computation in module.computations:
        for x in computation.instructions:
            weights += _WEIGHTS.get(x.opcode, _OTHERS) + len(x.operands)
            size += sum(1 for _ in x.shape.leaves())
            if x.opcode == "while":
                trips += stated_trips(x) or 0
    return weights, trips + size
