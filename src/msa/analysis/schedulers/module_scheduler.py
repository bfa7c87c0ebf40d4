"""Scheduling a module: every computation that runs as part of the schedule.

Source: `xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc`
(ScheduleModule, DefaultModuleScheduler).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msa.analysis.schedulers.delay import delay_growth
from msa.analysis.schedulers.depth_first import (
    bfs_order,
    dfs_order,
    post_order,
    trivial_order,
)
from msa.analysis.schedulers.exact import exact_order, is_small
from msa.analysis.schedulers.list_scheduler import list_order
from msa.analysis.schedulers.live_bytes import StepBytes, peak_bound, sequence_peak
from msa.analysis.schedulers.local_values import LocalValues
from msa.errors import OptionsError, ScheduleError
from msa.hlo.schedule import Schedule

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module

Order = Callable[["Computation", LocalValues], "list[Instruction]"]

ALGORITHMS: Final = MappingProxyType(
    {
        "list": list_order,
        "dfs": dfs_order,
        "postorder": post_order,
        "bfs": bfs_order,
        "trivial": trivial_order,
    }
)
"""Orders of one computation by name; `best` and `exact` combine them."""

_DEFAULT_CANDIDATES: Final = ("list", "dfs", "postorder")


@dataclass(frozen=True, slots=True)
class ComputationSchedule:
    """How one computation was ordered.

    Attributes:
        computation: its name.
        algorithm: the order that was taken.
        peak_bytes: the most bytes live at a step, computations that it calls
            included; parameters and constants are not counted.
        optimal: no order has a lower peak (exact search completed).
    """

    computation: str
    algorithm: str
    peak_bytes: int
    optimal: bool = False


def schedule(module: Module, algorithm: str = "best") -> Module:
    """A scheduled copy of a module; the module itself is not changed.

    Args:
        module: any module; a schedule that it already has is replaced.
        algorithm: `list` (greedy by bytes freed), `dfs`, `postorder`, `bfs`,
            `trivial`, `best` (the order of least peak among list, dfs and
            postorder for each computation, exact where it is small) or `exact`
            (as best, with search wherever the effort allows).

    Raises:
        OptionsError: no such algorithm.
        ScheduleError: a computation has a cycle.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   p = f32[8] parameter(0)
    ...   a = f32[8] negate(p)
    ...   ROOT b = f32[8] add(a, p)
    ... }''')
    >>> scheduled = msa.schedule(module)
    >>> [x.name for x in scheduled.schedule.sequence(scheduled.entry)]
    ['p', 'a', 'b']
    """
    copy = module.clone()
    copy.schedule, _ = find_schedule(copy, algorithm)
    return copy


def find_schedule(
    module: Module, algorithm: str = "best"
) -> tuple[Schedule, list[ComputationSchedule]]:
    """An order of every computation of a module that needs one, callees first.

    The module is not changed. Near linear in instructions, except for the search
    of small computations, which a count of steps bounds.

    Raises:
        OptionsError, ScheduleError: see `schedule`.
    """
    if algorithm not in ALGORITHMS and algorithm not in ("best", "exact"):
        known = ", ".join((*ALGORITHMS, "best", "exact"))
        raise OptionsError(
            f"unknown scheduling algorithm {algorithm!r}", hint=f"one of {known}"
        )
    embedded = module.embedded_computations()
    sequences: dict[Computation, tuple[Instruction, ...]] = {}
    peaks: dict[Computation, int] = {}
    rows: list[ComputationSchedule] = []
    for computation in module.computation_post_order():
        if computation in embedded:
            continue
        sequence, row = _order(computation, algorithm, peaks)
        sequences[computation] = tuple(sequence)
        peaks[computation] = row.peak_bytes
        rows.append(row)
    # Sequences are kept in the order of the module's computations.
    ordered = {c: sequences[c] for c in module.computations if c in sequences}
    return Schedule(ordered), rows


def _order(
    computation: Computation, algorithm: str, peaks: dict[Computation, int]
) -> tuple[list[Instruction], ComputationSchedule]:
    values = LocalValues(computation)
    steps = StepBytes(values, peaks)
    if algorithm not in ("best", "exact"):
        sequence = _ordered(computation, algorithm, values)
        peak = sequence_peak(sequence, steps)
        return sequence, ComputationSchedule(computation.name, algorithm, peak)
    bound = peak_bound(steps)
    best: tuple[int, str, list[Instruction]] | None = None
    for name in _DEFAULT_CANDIDATES:
        plain = _ordered(computation, name, values)
        for label, sequence in (
            (name, plain),
            (f"{name}, delayed", delay_growth(plain, values)),
        ):
            peak = sequence_peak(sequence, steps)
            if best is None or peak < best[0]:
                best = (peak, label, sequence)
    assert best is not None
    peak, label, sequence = best
    if peak <= bound:
        row = ComputationSchedule(computation.name, label, peak, optimal=True)
        return sequence, row
    if algorithm == "exact" or is_small(computation):
        effort = 200_000 if algorithm == "exact" else 500
        found = exact_order(computation, steps, start=sequence, effort=effort)
        if found.peak_bytes < peak:
            label = "exact"
        row = ComputationSchedule(
            computation.name, label, found.peak_bytes, found.optimal
        )
        return found.sequence, row
    return sequence, ComputationSchedule(computation.name, label, peak)


def _ordered(
    computation: Computation, name: str, values: LocalValues
) -> list[Instruction]:
    sequence = ALGORITHMS[name](computation, values)
    if len(sequence) != len(computation.instructions):
        raise ScheduleError(
            f"computation {computation.name!r} cannot be ordered: its "
            "instructions wait for each other in a cycle",
            where=computation.name,
        )
    return sequence
