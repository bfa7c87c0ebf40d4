"""Starting copies earlier, and letting evictions end later, where they stall.

The algorithm places a copy where its overlap looks right by itself. Simulated with all
others, some end late. Their chunks are often free before: starting sooner costs
nothing but the order of the queue, which the simulation judges.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from msa.analysis.simulation.engine import Run
from msa.assignment.allocation import AllocationSequence, CopyAllocation
from msa.assignment.estimate import Flow
from msa.assignment.problem import Problem
from msa.assignment.refine.room import Room

_REACHES: Final = (2.0, 8.0, math.inf)
"""How far a start moves back, as a multiple of the stall."""


class Move(NamedTuple):
    """New times of a copy: its start, or its end."""

    copy: CopyAllocation
    start_after: int
    done_before: int
    source_end: int


class Retimer:
    """Moves the copies of one draft, whose flow is given, in time.

    Attributes:
        draft: the allocations; copies in it are changed.
        run: the simulated run of the draft as it is.
    """

    __slots__ = (
        "_flow",
        "_problem",
        "_room",
        "_runs_left",
        "_steps_of",
        "_waiting",
        "draft",
        "run",
    )

    def __init__(self, problem: Problem, draft: AllocationSequence, flow: Flow) -> None:
        self._problem = problem
        self._room = Room(draft)
        self._steps_of: list[list[int]] = [[] for _ in problem.regions]
        for step, region in enumerate(problem.region_of):
            self._steps_of[region].append(step)
        # Moving copies in time changes nothing of what steps access.
        self._flow = flow
        # What waits for each copy to end: other copies of its result.
        self._waiting: dict[CopyAllocation, list[CopyAllocation]] = {}
        for copy in draft.copies():
            if isinstance(copy.source, CopyAllocation):
                self._waiting.setdefault(copy.source, []).append(copy)
        self.draft = draft
        self.run: Run = flow.run()
        self._runs_left = 0

    def improve(self, runs: int) -> None:
        """Move copies until nothing gets better, with at most so many simulations."""
        self._runs_left = runs
        before = float("inf")
        while self.run.seconds < before * (1.0 - 1e-4):
            before = self.run.seconds
            for reach in _REACHES:
                self._try(self._moves(reach))

    # -- proposing -------------------------------------------------------------------

    def _moves(self, reach: float) -> list[Move]:
        """Moves of the copies that stall, the worst first.

        A start moves back by `reach` times the stall, or as far as there is room.
        """
        stalls = self.run.stalls
        late: dict[int, list[CopyAllocation]] = {}
        for copy in self.draft.copies():
            late.setdefault(copy.done_before, []).append(copy)
        moves: list[Move] = []
        for step, stall in sorted(stalls.items(), key=lambda item: (-item[1], item[0])):
            for copy in late.get(step, ()):
                move = (
                    self._earlier(copy, stall * reach)
                    if copy.is_alternate
                    else self._later(copy)
                )
                if move is not None:
                    moves.append(move)
        return moves

    def _earlier(self, copy: CopyAllocation, seconds: float) -> Move | None:
        """Start a prefetch earlier by so many modelled seconds, if there is room."""
        if copy.start_after < 0 or copy.existing_start is not None:
            return None
        problem = self._problem
        region = problem.region_of[copy.position.step]
        earliest = max(copy.source.available, problem.regions[region].start)
        free = max(earliest, self._room.free_since(copy, earliest + 1) - 1)
        starts = self.run.starts
        place = min(copy.start_after + 1, len(starts) - 1)
        wanted = bisect_left(starts, starts[place] - seconds, 0, place) - 1
        after = self._in_region(max(free, wanted), region)
        if after >= copy.start_after:
            return None
        return Move(copy, after, copy.done_before, copy.source.end)

    def _later(self, copy: CopyAllocation) -> Move | None:
        """Let an eviction end as late as its room and its readers allow."""
        source = copy.source
        if not source.is_alternate or source.chunk is None:
            return None
        if copy.existing_done is not None:
            return None
        region = self._problem.region_of[copy.position.step]
        readers = [use.step for use in copy.uses]
        readers += [c.start_after + 1 for c in self._waiting.get(copy, ())]
        latest = min(readers, default=self._problem.regions[region].end - 1)
        until = self._room.free_until(source, latest)
        steps = self._steps_of[region]
        place = bisect_right(steps, min(latest, until)) - 1
        done = steps[place] if place >= 0 else -1
        if done <= copy.done_before:
            return None
        return Move(copy, copy.start_after, done, max(source.end, done))

    def _in_region(self, step: int, region: int) -> int:
        """The first step at or after `step` in a region."""
        steps = self._steps_of[region]
        return steps[min(bisect_left(steps, step), len(steps) - 1)]

    # -- trying ----------------------------------------------------------------------

    def _try(self, moves: Sequence[Move]) -> None:
        """Make the moves, or the worst stalls' half of them, … while it pays."""
        while moves and self._runs_left > 0:
            self._runs_left -= 1
            made = [move for move in map(self._make, moves) if move is not None]
            run = self._flow.run()
            if run.seconds < self.run.seconds * (1.0 - 1e-9):
                self.run = run
                return
            for move in reversed(made):
                self._apply(move)
            moves = moves[: len(moves) // 3]

    def _make(self, move: Move) -> Move | None:
        """Make one move if there is still room; returns the move back."""
        copy = move.copy
        back = Move(copy, copy.start_after, copy.done_before, copy.source.end)
        if copy.is_alternate:
            free = self._room.free_since(copy, move.start_after + 1)
            if free > move.start_after + 1 or move.start_after >= copy.start_after:
                return None
        else:
            if self._room.free_until(copy.source, move.done_before) < move.done_before:
                return None
            if move.done_before <= copy.done_before:
                return None
            move = move._replace(source_end=max(copy.source.end, move.done_before))
        self._apply(move)
        return back

    def _apply(self, move: Move) -> None:
        copy = move.copy
        if copy.is_alternate:
            self._room.remove(copy)
            copy.start_after = move.start_after
            copy.start = move.start_after + 1
            self._room.add(copy)
            return
        source = copy.source
        self._room.remove(source)
        source.end = move.source_end
        self._room.add(source)
        copy.done_before = move.done_before
        copy.extend(move.done_before)
