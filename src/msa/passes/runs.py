"""How often the computations of a module run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msa.analysis.trip_counts import TripCounts
from msa.hlo.computation import Computation
from msa.hlo.module import Module

MOST_RUNS: Final = 1e30
"""Runs that are counted at most: products with them stay finite."""


def runs_of(module: Module) -> Mapping[Computation, float]:
    """Runs of each computation per run of the module; unknown loops count once.

    What runs asynchronously runs once for all the steps of its chain.

    >>> import msa
    >>> module = msa.parse("ENTRY e { ROOT x = f32[4] parameter(0) }")
    >>> runs_of(module)[module.entry]
    1.0
    """
    trips = TripCounts.run(module)
    runs: dict[Computation, float] = {module.entry: 1.0}
    for computation in reversed(module.computation_post_order()):
        times = runs.get(computation, 0.0)
        for x in computation.instructions:
            if x.opcode in ("async-update", "async-done"):
                continue
            inner = times * ((trips.of(x) or 1) if x.opcode == "while" else 1)
            for callee in x.called_computations:
                runs[callee] = min(runs.get(callee, 0.0) + inner, MOST_RUNS)
    return runs
