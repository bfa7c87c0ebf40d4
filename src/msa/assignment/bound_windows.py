"""A bound from windows of time: what has to pass default memory within each.

What a window reads that was made before it is in alternate memory when it begins, which
holds no more than its capacity, or passes default memory while it lasts. What it makes
that is read later is in alternate memory when it ends, or has passed. So each window
takes the work in it, or that traffic, whichever is more, and windows that follow each
other add up; the best cut of the program into windows is found by dynamic programming.

The argument is that of Hong and Kung (*I/O complexity: the red-blue pebble game*, 1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from msa.assignment.bound_residency import Traffic
from msa.assignment.problem import Problem

_CUTS: Final = 2048
"""Places where windows may begin and end, at most."""

_Moves = list[list[tuple[int, float]]]
"""Per step, (an earlier step, bytes)."""


def windows_bound(
    problem: Problem,
    fastest: Sequence[float],
    known: Traffic,
    capacity: int,
) -> float:
    """Seconds that every plan takes at least.

    Args:
        problem: the problem.
        fastest: per step, seconds of all its runs with everything fast.
        known: the accesses that count.
        capacity: bytes of alternate memory.

    Windows begin and end between steps of the program's entry; a loop is in one window.
    In long programs they do so at evenly spread places: any cut gives a bound.
    O((steps + accesses) · cuts) on arrays.
    """
    top = problem.outermost
    work = np.zeros(problem.end + 1)
    np.add.at(work, np.array(top, np.int64) + 1, np.asarray(fastest, float))
    work = np.cumsum(work)
    reads, makes, leaves = _moves(problem, known, top)
    steps = [s for s in range(problem.end) if problem.region_of[s] == 0]
    cuts = np.array([0, *(step + 1 for step in steps[:-1])])
    if len(cuts) > _CUTS:
        cuts = cuts[np.linspace(0, len(cuts) - 1, _CUTS).astype(np.int64)]
    # Per step, how many cuts are before it.
    before_step = np.searchsorted(cuts, np.arange(problem.end + 2)).tolist()
    worked = work[cuts]
    coming, going, best = np.zeros((3, len(cuts)))
    start = np.full(len(cuts), float(capacity))
    start[0] = 0.0
    rate = problem.machine.default_bandwidth
    reached = 0.0
    for step in steps:
        count = before_step[step + 1]
        for before, amount in reads[step]:
            coming[before_step[before + 1] : count] += amount
        for _, amount in makes[step]:
            going[:count] += amount
        for made, amount in leaves[step]:
            going[: before_step[made + 1]] -= amount
        is_last = step == steps[-1]
        is_cut = count < len(cuts) and cuts[count] == step + 1
        if not (is_last or is_cut):
            continue
        kept = 0.0 if is_last else float(capacity)
        moved = np.maximum(coming[:count] - start[:count], 0.0)
        moved += np.maximum(going[:count] - kept, 0.0)
        spent = np.maximum(moved / rate, work[step + 1] - worked[:count])
        reached = max(reached, float((best[:count] + spent).max()))
        if is_cut:
            best[count] = reached
    return reached


def _moves(
    problem: Problem, known: Traffic, top: Sequence[int]
) -> tuple[_Moves, _Moves, _Moves]:
    """Reads with the access before, definitions, and last reads with the definition."""
    reads: _Moves = [[] for _ in range(problem.end)]
    makes: _Moves = [[] for _ in range(problem.end)]
    leaves: _Moves = [[] for _ in range(problem.end)]
    for value in problem.values:
        if value.pinned or value.is_tuple or not value.positions:
            continue
        step = value.position.step
        is_input = known.given.get(value.id)
        if not known.is_plain(value):
            if is_input:
                _first_reads(reads, known.reads(value), top)
            continue
        if problem.region_of[step] != 0:
            continue
        rest = known.accesses(value)
        before = -1 if is_input else step
        for at, amount in rest:
            reads[at].append((before, amount))
            before = at
        made = 0.0 if is_input else known.write(value)
        if made:
            makes[step].append((step, made))
            if is_input is None:
                leaves[rest[-1][0] if rest else step].append((step, made))
    return reads, makes, leaves


def _first_reads(
    reads: _Moves, rows: Sequence[tuple[int, float]], top: Sequence[int]
) -> None:
    """Bytes of an input that are first needed at a step: more than any before needs."""
    most = 0.0
    for step, amount in sorted((top[step], amount) for step, amount in rows):
        if amount > most:
            reads[step].append((-1, amount - most))
            most = amount
