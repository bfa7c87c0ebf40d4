"""One depth-first search with a limit, over parts that fall apart in time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from msa.heap.packing.search.branching import Branching, Weights, choose, placeable
from msa.heap.packing.search.core import Core
from msa.heap.packing.search.inference import infer
from msa.heap.packing.search.state import PLACED, State


class Outcome(Enum):
    """How a search ended."""

    SOLVED = "solved"
    REFUTED = "refuted"
    LIMIT = "limit"


@dataclass(slots=True)
class _Frame:
    """A part under search: its current node and the open right branches.

    `parts` holds the independent parts that the current node fell into, still to be
    solved (the last is under search in the frame above).
    """

    core: Core
    state: State
    alternatives: list[State]
    parts: list[tuple[Core, State]] | None = None


class Dive:
    """Depth-first search for a packing of `core` into `capacity`.

    Left branches place an item where it falls, right branches postpone it; both are
    complete, so an exhausted search refutes the capacity. When no unplaced item
    crosses some time, the two sides are searched apart, tightest first.

    Attributes:
        offsets: per item of the root core, valid once solved.
        nodes: decisions made.
        weights: per section of the root, 1 + the failures that it caused.
    """

    __slots__ = (
        "_branching",
        "_capacity",
        "_frames",
        "_limit",
        "nodes",
        "offsets",
        "weights",
    )

    def __init__(
        self,
        core: Core,
        capacity: int,
        *,
        limit: int,
        branching: Branching = "lowest",
        weights: Weights | None = None,
    ) -> None:
        self._capacity = capacity
        self._limit = limit
        self._branching = branching
        self.weights = (
            np.ones(int(core.section_ids.max(initial=0)) + 1)
            if weights is None
            else weights
        )
        self.offsets = np.zeros(int(core.ids.max(initial=0)) + 1, dtype=np.int64)
        self.nodes = 0
        lower = np.maximum(core.fixed, 0)
        state = State.enter(core, lower, np.zeros_like(lower), capacity)
        self._frames = [_Frame(core, state, [])]

    def run(self) -> Outcome:
        """Search until solved, refuted or out of nodes."""
        frames = self._frames
        if not self._infer(frames[0].core, frames[0].state):
            return Outcome.REFUTED
        while self.nodes < self._limit:
            if not self._step(frames[-1]):
                if not self._backtrack():
                    return Outcome.REFUTED
            elif frames[-1].state.left == 0:
                outcome = self._close()
                if outcome is not None:
                    return outcome
        return Outcome.LIMIT

    def _infer(self, core: Core, state: State) -> bool:
        failed = infer(core, state)
        if failed >= 0:
            self.weights[core.section_ids[failed]] += 1
        return failed < 0

    def _step(self, frame: _Frame) -> bool:
        """Make one decision in the frame; False if it leads nowhere."""
        core, state = frame.core, frame.state
        candidates = placeable(core, state)
        if not len(candidates):
            return False
        self.nodes += 1
        item = choose(
            core, state, candidates, self._branching, self._capacity, self.weights
        )
        if core.fixed[item] < 0:
            frame.alternatives.append(_postponed(core, state, item))
        self.offsets[core.ids[item]] = state.place(core, item)
        if state.left == 0:
            return True
        if not self._infer(core, state):
            return False
        return self._split(frame)

    def _split(self, frame: _Frame) -> bool:
        """Open a frame if the rest fell into parts, or shrank to a half."""
        core, state = frame.core, frame.state
        unplaced = np.flatnonzero(state.lower < PLACED)
        low, high = core.low[unplaced], core.high[unplaced]
        crossing = np.zeros(core.sections + 1, dtype=np.int64)
        np.add.at(crossing, low + 1, 1)
        np.subtract.at(crossing, high, 1)
        cuts = np.cumsum(crossing)[:-1] == 0
        cuts[0] = False
        if not cuts.any() and 2 * len(unplaced) >= core.items:
            return True
        part = np.cumsum(cuts)[low]
        parts = []
        for each in np.unique(part).tolist():
            items = unplaced[part == each]
            sub = core.part(items)
            slack = int(
                state.room[low[part == each].min() : high[part == each].max()].min()
            )
            entered = State.enter(
                sub, state.lower[items], state.support[items], self._capacity
            )
            parts.append((slack, each, sub, entered))
        # The tightest is searched first: popped from the end.
        parts.sort(key=lambda entry: (-entry[0], -entry[1]))
        frame.parts = [(sub, entered) for _, _, sub, entered in parts]
        return self._open_part(frame)

    def _open_part(self, frame: _Frame) -> bool:
        assert frame.parts is not None
        core, state = frame.parts.pop()
        if not self._infer(core, state):
            frame.parts = None
            return False
        self._frames.append(_Frame(core, state, []))
        return True

    def _close(self) -> Outcome | None:
        """The top part is solved: open the next one; an outcome if that ends it."""
        frames = self._frames
        frames.pop()
        while frames:
            if frames[-1].parts:
                if self._open_part(frames[-1]) or self._backtrack():
                    return None
                return Outcome.REFUTED
            frames.pop()
        return Outcome.SOLVED

    def _backtrack(self) -> bool:
        """Go to the latest open right branch that does not fail; False if none."""
        frames = self._frames
        while frames:
            frame = frames[-1]
            frame.parts = None
            while frame.alternatives:
                frame.state = frame.alternatives.pop()
                if self._infer(frame.core, frame.state):
                    return True
            frames.pop()
        return False


def _postponed(core: Core, state: State, item: int) -> State:
    """The right branch: the item, and its twins, rest on something unplaced."""
    later = state.copy()
    if core.has_twins:
        same = core.twin == core.twin[item]
        same &= state.lower == state.lower[item]
        np.copyto(later.lower, state.reach, where=same)
    else:
        later.lower[item] = state.reach[item]
    if core.has_alignment:
        unplaced = later.lower < PLACED
        aligned = -(-later.lower // core.alignment) * core.alignment
        np.copyto(later.lower, aligned, where=unplaced)
    return later
