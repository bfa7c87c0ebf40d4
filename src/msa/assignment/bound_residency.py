"""A bound from room: traffic that a memory of that size cannot save.

Between two accesses a value either stays in alternate memory, which takes room all the
while, or its bytes pass default memory again. The most traffic that staying can save is
bounded by a linear relaxation (values may stay in part): any prices of room, one per
step, give a bound, and a few rounds of raising them where room is short and lowering
them where it is not make it a good one.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msa.assignment.estimate import FREE, bytes_of_places
from msa.assignment.problem import TRIVIAL_OPCODES, Problem, Value
from msa.hlo.opcode import RUNNING_OPCODES

Floats = NDArray[np.float64]

_ROUNDS: Final = 60


class Stay(NamedTuple):
    """A value between two accesses.

    Attributes:
        first, last: inclusive steps in which it takes room.
        size: bytes of room.
        saved: bytes that need not pass default memory if it stays.
    """

    first: int
    last: int
    size: float
    saved: float


def residency_bound(problem: Problem, known: Traffic, capacity: int) -> float:
    """Seconds that default memory is busy at least.

    Args:
        problem: the problem.
        known: the accesses that count.
        capacity: bytes of alternate memory.

    O((steps + accesses) · rounds) on arrays.
    """
    must, stays = passing(problem, known, capacity)
    total = must + sum(stay.saved for stay in stays)
    saved = most_saved(stays, problem.end, capacity)
    return (total - saved) / problem.machine.default_bandwidth


def passing(
    problem: Problem, known: Traffic, capacity: int
) -> tuple[float, list[Stay]]:
    """Bytes that pass default memory in any plan, and what staying could save."""
    must = 0.0
    stays: list[Stay] = []
    for value in problem.values:
        if value.pinned or value.is_tuple or not value.positions:
            continue
        is_input = known.given.get(value.id)
        if is_input is False:
            must += known.result(value)
        if not known.is_plain(value):
            if is_input:
                must += max((amount for _, amount in known.reads(value)), default=0.0)
            continue
        rest = known.accesses(value)
        made = 0.0 if is_input is not None else known.write(value)
        if value.size > capacity:
            must += made + sum(amount for _, amount in rest)
            continue
        size, before = float(value.size), value.position.step
        if is_input and rest:
            # The first read has to come from default memory.
            before, amount = rest.pop(0)
            must += amount
        for step, amount in rest:
            # Unless it is written in any case, one that leaves before its first read
            # has been written.
            stays.append(Stay(before + 1, step, size, amount + made))
            before, made = step, 0.0
    return must, stays


class Traffic:
    """Accesses that count: plain reads and writes whose bytes are known.

    Attributes:
        given: value → whether the program is given it, or gives it (False).
    """

    def __init__(
        self, problem: Problem, trips: Sequence[float], free: Set[int]
    ) -> None:
        self._problem = problem
        self._trips = trips
        self._free = free
        self._bytes = bytes_of_places(problem)
        parts = [0.0] * problem.end
        for value in problem.values:
            for use in value.uses:
                parts[use.step] += self._bytes.get(use, 0.0)
            for position in value.positions:
                parts[position.step] += self._bytes.get(position, 0.0)
        # Where operands overlap, reading all of them takes less than their sum.
        self._adds_up = [
            part <= max(total, 0.0) * (1 + 1e-9)
            for part, total in zip(parts, problem.total_bytes, strict=True)
        ]
        self.given = self._given()

    def _given(self) -> dict[int, bool]:
        inputs = set(self._problem.regions[0].parameters)
        found = {}
        for value in self._problem.values:
            if value.pinned or value.is_tuple or not value.positions:
                continue
            step = value.position.step
            if step in inputs or value.is_constant:
                found[value.id] = True
            elif value.live_out and step not in self._free and self._trips[step] > 0:
                found[value.id] = False
        return found

    def _counts(self, step: int) -> bool:
        return (
            step not in self._free
            and self._adds_up[step]
            and self._trips[step] > 0
            and self._problem.opcodes[step] not in FREE
        )

    def is_plain(self, value: Value) -> bool:
        """Whether it has one place, and is read in the same region only."""
        problem = self._problem
        region = problem.region_of[value.position.step]
        return (
            value.placeable
            and all(problem.is_trivial(p.step) for p in value.positions[1:])
            and all(problem.region_of[use.step] == region for use in value.uses)
        )

    def reads(self, value: Value) -> list[tuple[int, float]]:
        """(step, bytes of one read, at most all of it) of uses, as they come."""
        rows = []
        for use in value.uses:
            size = self._bytes.get(use, 0.0)
            if size and self._counts(use.step):
                rows.append((use.step, min(size, float(value.size))))
        return rows

    def accesses(self, value: Value) -> list[tuple[int, float]]:
        """(step, bytes of all runs that pass if it is not there) of reads, by step."""
        found: dict[int, float] = {}
        for step, amount in self.reads(value):
            found[step] = found.get(step, 0.0) + amount
        return [
            (step, min(found[step], float(value.size)) * self._trips[step])
            for step in sorted(found)
        ]

    def write(self, value: Value) -> float:
        """Bytes of all runs that pass if it is not defined in alternate memory."""
        step = value.position.step
        size = self._bytes.get(value.position, 0.0)
        if not size or not self._counts(step):
            return 0.0
        return min(size, float(value.size)) * self._trips[step]

    def result(self, value: Value) -> float:
        """Bytes of a result of the program that pass, at its definition or later."""
        opcode = self._problem.opcodes[value.position.step]
        if (
            opcode in RUNNING_OPCODES
            or opcode in TRIVIAL_OPCODES
            or not value.position_bytes
        ):
            return 0.0
        return max(0.0, min(value.position_bytes[0], float(value.size)))


def most_saved(stays: Sequence[Stay], steps: int, capacity: float) -> float:
    """At least as many bytes as any choice of stays saves that fits at every step.

    The value of the dual of the fractional choice, at the best prices found.
    """
    if not stays:
        return 0.0
    first = np.array([s.first for s in stays])
    last = np.array([s.last for s in stays]) + 1
    size = np.array([s.size for s in stays], float)
    saved = np.array([s.saved for s in stays], float)
    best = float(saved.sum())
    usage = _usage(first, last, size, steps)
    if float(usage.max()) <= capacity:
        return best
    prices = np.zeros(steps + 1)
    ahead = 1.0
    for _ in range(_ROUNDS):
        rent = np.concatenate(([0.0], np.cumsum(prices)))
        kept = saved - size * (rent[last] - rent[first])
        value = float(np.maximum(kept, 0.0).sum() + capacity * prices.sum())
        if value < best:
            best = value
        else:
            ahead *= 0.8
        wanted = kept > 0
        slope = capacity - _usage(first[wanted], last[wanted], size[wanted], steps)
        slope[(prices <= 0) & (slope > 0)] = 0.0
        norm = float((slope * slope).sum())
        if norm <= 0.0:
            break
        stride = ahead * max(value - 0.9 * best, 1e-3 * best) / norm
        prices = np.maximum(0.0, prices - stride * slope)
    return best


def _usage(
    first: NDArray[np.int64], last: NDArray[np.int64], size: Floats, steps: int
) -> Floats:
    """Bytes of room taken per step."""
    change = np.bincount(first, size, steps + 2) - np.bincount(last, size, steps + 2)
    taken: Floats = np.cumsum(change)[: steps + 1]
    return taken
