"""Which instructions run as steps of a program, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msa.analysis.memory_boundedness import EXCLUDED
from msa.analysis.trip_counts import TripCounts
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module

_RUNS: Final = frozenset({"while", "conditional", "call", "async-start"})
_NO_KERNEL: Final = EXCLUDED | frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "opt-barrier",
        "partition-id",
        "replica-id",
        "add-dependency",
        "while",
        "conditional",
        "call",
        "async-update",
    }
)


def run_counts(
    module: Module, *, trip_counts: TripCounts | None = None, unknown_trips: int = 5
) -> dict[Computation, float]:
    """How often each computation of the control flow runs, in one run of the module.

    Loops whose trips are not known run `unknown_trips` times; every branch counts.
    Bodies of fusions, reductions and the like are not in the result. Linear.
    """
    return _counts(
        module,
        {module.entry: 1.0},
        trip_counts or TripCounts.run(module),
        unknown_trips,
    )


def _counts(
    module: Module,
    counts: dict[Computation, float],
    trips: TripCounts,
    unknown_trips: int,
) -> dict[Computation, float]:
    """Spread counts from callers to what they call; callers come first."""
    for computation in reversed(module.computation_post_order()):
        often = counts.get(computation)
        if often is None:
            continue
        for x in computation.instructions:
            if x.opcode not in _RUNS:
                continue
            known = trips.of(x) if x.opcode == "while" else 1
            factor = float(unknown_trips if known is None else known)
            for callee in x.called_computations:
                counts[callee] = counts.get(callee, 0.0) + often * factor
    return counts


def kernels(
    module: Module, *, trip_counts: TripCounts | None = None, unknown_trips: int = 5
) -> Iterator[tuple[Instruction, float]]:
    """Instructions that do work, with their runs, computation by computation."""
    counts = run_counts(module, trip_counts=trip_counts, unknown_trips=unknown_trips)
    yield from _kernels(module, counts)


def kernels_below(
    loop: Instruction, trip_counts: TripCounts, *, unknown_trips: int = 5
) -> Iterator[tuple[Instruction, float]]:
    """Instructions that do work in one iteration of a loop, with their runs."""
    module = loop.computation.module
    starts = dict.fromkeys(loop.called_computations, 1.0)
    counts = _counts(module, starts, trip_counts, unknown_trips)
    yield from _kernels(module, counts)


def _kernels(
    module: Module, counts: dict[Computation, float]
) -> Iterator[tuple[Instruction, float]]:
    schedule = module.schedule
    for computation, often in counts.items():
        order = computation.instructions
        if schedule is not None and computation in schedule:
            order = list(schedule.sequence(computation))
        for x in order:
            if x.opcode not in _NO_KERNEL:
                yield x, often
