"""Exact scheduling of small graphs: the least peak over all topological orders.

The bytes live after a set of instructions has run do not depend on their order, so
an order is a path through sets. The search visits sets in order of the peak needed
to reach them and takes steps that cannot hurt without branching.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from msa.analysis.schedulers.live_bytes import StepBytes, sequence_peak
from msa.analysis.schedulers.local_values import NO_STORAGE, LocalValues

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction


@dataclass(frozen=True, slots=True)
class ExactResult:
    """An order and what is known about it.

    Attributes:
        sequence: the best order found.
        peak_bytes: the most bytes live at a step, parameters and constants apart.
        optimal: no order has a lower peak (the search completed).
        visited: sets of instructions that the search expanded.
    """

    sequence: list[Instruction]
    peak_bytes: int
    optimal: bool
    visited: int


def exact_order(
    computation: Computation,
    steps: StepBytes | None = None,
    *,
    start: list[Instruction] | None = None,
    effort: int = 20_000,
) -> ExactResult:
    """The order of least peak, by best-first search over sets of run instructions.

    Args:
        computation: what to order; worthwhile up to some tens of instructions.
        steps: sizes per step; made from the computation by default.
        start: an order to beat (default: the order of insertion or post order).
        effort: sets to expand before giving up; the result is then `start` or
            better but not proved.

    Exponential in the width of the graph; `effort` bounds it.
    """
    if steps is None:
        steps = StepBytes(LocalValues(computation))
    if start is None:
        start = computation.post_order()
    return _Search(steps, start, effort).run()


class _Search:
    """States are bit sets of instructions that have run."""

    __slots__ = (
        "_best",
        "_effort",
        "_needs",
        "_readers",
        "_start",
        "_steps",
        "_users",
        "_values",
    )

    def __init__(self, steps: StepBytes, start: list[Instruction], effort: int) -> None:
        self._steps = steps
        self._values = values = steps.values
        self._start = start
        self._effort = effort
        number = values.number
        self._needs = [0] * len(values.instructions)
        self._users: list[list[int]] = [[] for _ in values.instructions]
        for i, x in enumerate(values.instructions):
            for before in dict.fromkeys((*x.operands, *x.control_predecessors)):
                self._needs[i] |= 1 << number[before]
                self._users[number[before]].append(i)
        # Per value the set of its readers; bit n stands for the root's hold.
        self._readers = [0] * len(values.bytes)
        for i, read in enumerate(values.read):
            for v in read:
                self._readers[v] |= 1 << i
        hold = 1 << len(values.instructions)
        for v in values.held[number[values.computation.root]]:
            self._readers[v] |= hold
        self._best = sequence_peak(start, steps)

    def run(self) -> ExactResult:
        values = self._values
        full = (1 << len(values.instructions)) - 1
        done, live, forced = self._settle(0, 0)
        # peak needed to reach a set; how it was reached.
        reached: dict[int, int] = {done: 0}
        origin: dict[int, tuple[int, tuple[int, ...]]] = {done: (-1, forced)}
        queue = [(0, -done.bit_count(), done, live)]
        closed: set[int] = set()
        while queue:
            peak, _, done, live = heappop(queue)
            if done in closed:
                continue
            if done == full:
                return ExactResult(self._path(origin, done), peak, True, len(closed))
            if peak >= self._best:
                # Every set still queued needs at least this much.
                break
            if len(closed) >= self._effort:
                return ExactResult(self._start, self._best, False, len(closed))
            closed.add(done)
            for i in self._ready(done):
                step, after = self._step(i, done, live)
                new_peak = max(peak, step)
                if new_peak >= self._best:
                    continue
                new_done, new_live, forced = self._settle(done | 1 << i, after)
                if reached.get(new_done, self._best) <= new_peak:
                    continue
                reached[new_done] = new_peak
                origin[new_done] = (done, (i, *forced))
                heappush(queue, (new_peak, -new_done.bit_count(), new_done, new_live))
        return ExactResult(self._start, self._best, True, len(closed))

    def _ready(self, done: int) -> list[int]:
        return [
            i
            for i, needs in enumerate(self._needs)
            if not done >> i & 1 and needs & ~done == 0
        ]

    def _step(self, i: int, done: int, live: int) -> tuple[int, int]:
        """Bytes live while `i` runs after the set `done`, and afterwards."""
        values, steps = self._values, self._steps
        after = done | 1 << i
        freed = taken = 0
        for v in values.read[i]:
            if self._readers[v] & ~after == 0 and not values.fixed[v]:
                freed += values.bytes[v]
                if v == steps.takes[i]:
                    taken = values.bytes[v]
        new = values.made[i]
        during = live + new - taken + steps.inner[i]
        if new:
            freed += sum(
                values.bytes[v] for v in values.defined[i] if not self._readers[v]
            )
        return during, live + new - freed

    def _settle(self, done: int, live: int) -> tuple[int, int, tuple[int, ...]]:
        """Run everything that adds nothing, neither during nor after its step.

        Such a step can move to the front of any order without raising its peak.
        """
        forced: list[int] = []
        progress = True
        while progress:
            progress = False
            for i in self._ready(done):
                during, after = self._step(i, done, live)
                if during <= live and after <= live:
                    done |= 1 << i
                    live = after
                    forced.append(i)
                    progress = True
        return done, live, tuple(forced)

    def _path(
        self, origin: dict[int, tuple[int, tuple[int, ...]]], done: int
    ) -> list[Instruction]:
        parts: list[tuple[int, ...]] = []
        while done >= 0:
            done, ran = origin[done]
            parts.append(ran)
        instructions = self._values.instructions
        return [instructions[i] for part in reversed(parts) for i in part]


def is_small(computation: Computation, limit: int = 40) -> bool:
    """Whether exact search is worth trying: few instructions that make storage."""
    made = 0
    for x in computation.instructions:
        made += x.opcode not in NO_STORAGE
        if made > limit:
            return False
    return True
