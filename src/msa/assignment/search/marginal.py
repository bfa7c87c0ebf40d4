"""What fast memory would bring each value, given where all others are.

The greedy order asks what a value brings with everything else in slow memory. Once
others are placed, an operation may be bound by arithmetic already and gain nothing
more; these figures tell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msa.assignment.problem import Problem
from msa.assignment.search.access import Access

Floats = NDArray[np.float64]


def trip_counts(problem: Problem) -> Floats:
    """Per step, how often it runs: the product over enclosing loops."""
    trips = np.ones(problem.end + 1)
    for region in problem.regions:
        if region.trip_count != 1.0:
            trips[region.start : region.end] *= max(region.trip_count, 1.0)
    return trips


def start_times(problem: Problem, seconds: Floats) -> Floats:
    """Modelled time before each step, loops entered once."""
    return np.concatenate(([0.0], np.cumsum(seconds[: problem.end])))


def durations(problem: Problem, times: Floats) -> Floats:
    """Per value, modelled seconds that it is live; at least a tiny share."""
    last = len(times) - 1
    starts = np.array([min(max(v.live[0], 0), last) for v in problem.values], int)
    ends = np.array([min(max(v.live[1], 0) + 1, last) for v in problem.values], int)
    least = times[-1] * 1e-9 + 1e-15
    found: Floats = np.maximum(times[ends] - times[starts], least)
    return found


def spans(problem: Problem) -> Floats:
    """Per value, number of steps that it is live; at least 1."""
    return np.array([max(1, v.live[1] - v.live[0]) for v in problem.values], float)


def marginal_seconds(problem: Problem, access: Access, trips: Floats) -> Floats:
    """Per value, seconds that its buffer saves in fast memory, others as placed.

    Uses and definitions count with their trips. O(uses).
    """
    gains = np.zeros(len(problem.values))
    for value in problem.values:
        total = 0.0
        for use in value.uses:
            total += access.read_gain(use) * trips[use.step]
        for position in value.positions:
            total += access.write_gain(position) * trips[position.step]
        gains[value.id] = total
    # Values of one buffer move together: each is worth what the buffer is.
    for members in problem.buffers:
        if len(members) > 1:
            gains[list(members)] = gains[list(members)].sum()
    return gains
