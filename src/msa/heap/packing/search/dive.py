"""One depth-first search with a limit, over parts that fall apart in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from msa.heap.packing.instance import Ints
from msa.heap.packing.search.branching import Branching, choose, placeable
from msa.heap.packing.search.core import Core
from msa.heap.packing.search.inference import infer
from msa.heap.packing.search.state import PLACED, State

#: Entries (items times sections) that cost one unit of effort to look at, once.
_ENTRIES_PER_UNIT = 4000
#: Items of a search whose preparation costs one unit.
_ITEMS_PER_UNIT = 4


def node_cost(entries: int) -> int:
    """The effort of a node: 1, and more the more entries it looks at.

    An entry that is looked at in several passes counts as often.
    """
    return 1 + entries // _ENTRIES_PER_UNIT


class Outcome(Enum):
    """How a search ended: `EXHAUSTED` is a search that skipped some branches."""

    SOLVED = "solved"
    REFUTED = "refuted"
    EXHAUSTED = "exhausted"
    LIMIT = "limit"


@dataclass(slots=True)
class _Choice:
    """A decision on the way to the current node.

    Attributes:
        later: the right branch while it is open, then None.
        low, high: the sections of the root that the decided item lives in.
        conflict: once the right branch is entered, why the left one failed: the
            sections `[low, high)` in which the failures of its subtree arose.
    """

    later: State | None
    low: int
    high: int
    conflict: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class _Frame:
    """A part under search: its current node and the decisions that led to it.

    `parts` holds the independent parts that the current node fell into, still to be
    solved (the last is under search in the frame above).
    """

    core: Core
    state: State
    choices: list[_Choice]
    parts: list[tuple[Core, State]] | None = None


class Dive:
    """Depth-first search for a packing of `core` into `capacity`.

    Left branches place an item where it falls, right branches postpone it; both are
    complete, so an exhausted search refutes the capacity. When no unplaced item
    crosses some time, the two sides are searched apart, tightest first.

    A failure arises in a section, from items that live there. With `jumping`,
    decisions about items that share no time with any of these are skipped on the way
    back: undoing them could change the failure only over a chain of others. Without
    this, a failure in one place is retried with all the choices made since in other
    places. A search that skipped something refutes nothing.

    Attributes:
        offsets: per item of the root core, valid once solved.
        nodes: decisions made. spent: effort of all nodes visited, see `node_cost`.
        touched: entries looked at, as often as they were.
        weights: per section of the root, 1 + the failures that it caused.

    The search ends after `limit` decisions without getting further than before.

    With `start`, ids that are placed first where they can be, without alternatives,
    the search is not complete either: it explores what follows these decisions.
    """

    __slots__ = (
        "_branching",
        "_capacity",
        "_conflict",
        "_deepest",
        "_effort",
        "_fewest",
        "_frames",
        "_high",
        "_jumping",
        "_limit",
        "_low",
        "_placed_at",
        "_skipped",
        "_start",
        "_stop",
        "nodes",
        "offsets",
        "spent",
        "touched",
        "weights",
    )

    def __init__(
        self,
        core: Core,
        capacity: int,
        *,
        limit: int,
        effort: int,
        branching: Branching = "lowest",
        jumping: bool = False,
        start: Sequence[int] = (),
    ) -> None:
        self._capacity = capacity
        self._limit = self._stop = limit
        self._effort = effort
        self._branching = branching
        self._start = list(reversed(start))
        self._jumping = jumping
        self._skipped = bool(start)
        self._conflict = (0, core.sections)
        self._fewest = core.items
        self._deepest: tuple[Ints, Ints] | None = None
        ids = int(core.ids.max(initial=0)) + 1
        self._low = np.zeros(ids, dtype=np.int64)
        self._high = np.zeros(ids, dtype=np.int64)
        self._low[core.ids], self._high[core.ids] = core.low, core.high
        self._placed_at = np.full(ids, -1, dtype=np.int64)
        self.weights = np.ones(int(core.section_ids.max(initial=0)) + 1)
        self.offsets = np.zeros(ids, dtype=np.int64)
        self.nodes = 0
        self.spent = 1 + core.items // _ITEMS_PER_UNIT
        self.touched = 0
        lower = np.maximum(core.fixed, 0)
        state = State.enter(core, lower, np.zeros_like(lower), capacity)
        self._frames = [_Frame(core, state, [])]

    def run(self) -> Outcome:
        """Search until solved, refuted or out of nodes."""
        frames = self._frames
        if not self._infer(frames[0].core, frames[0].state):
            return Outcome.REFUTED
        while self.nodes < self._stop and self.spent < self._effort:
            if not self._step(frames[-1]):
                if not self._backtrack():
                    return self._exhausted()
            elif frames[-1].state.left == 0:
                outcome = self._close()
                if outcome is not None:
                    return outcome
        return Outcome.LIMIT

    def _exhausted(self) -> Outcome:
        return Outcome.EXHAUSTED if self._skipped else Outcome.REFUTED

    def _infer(self, core: Core, state: State) -> bool:
        failed, touched = infer(core, state)
        self.touched += touched
        self.spent += node_cost(touched)
        if failed < 0:
            return True
        self.weights[core.section_ids[failed]] += 1
        if self._jumping:
            members = core.entry_item[core.entries_of(failed, failed + 1)]
            ids = core.ids[members[state.lower[members] < PLACED]]
            low, high = self._low[ids].min(), self._high[ids].max()
            self._conflict = (int(low), int(high))
        return False

    def _step(self, frame: _Frame) -> bool:
        """Make one decision in the frame; False if it leads nowhere."""
        core, state = frame.core, frame.state
        candidates = placeable(core, state)
        if not len(candidates):
            return False
        self.nodes += 1
        item = self._next_of_start(core, candidates)
        if item < 0:
            item = choose(
                core, state, candidates, self._branching, self._capacity, self.weights
            )
            if core.fixed[item] < 0:
                later = _postponed(core, state, item)
                number = core.ids[item]
                low, high = int(self._low[number]), int(self._high[number])
                frame.choices.append(_Choice(later, low, high))
        self.offsets[core.ids[item]] = state.place(core, item)
        self._placed_at[core.ids[item]] = self.nodes
        if state.left == 0:
            return True
        if not self._infer(core, state):
            return False
        self._note_depth()
        return self._split(frame)

    def _next_of_start(self, core: Core, candidates: Ints) -> int:
        """The first of the given decisions that is possible now, or -1."""
        while self._start:
            found = np.flatnonzero(core.ids[candidates] == self._start.pop())
            if len(found):
                return int(candidates[found[0]])
        return -1

    def _note_depth(self) -> None:
        """Remember the decisions if fewer items are left than ever before."""
        frames = self._frames
        left = frames[-1].state.left
        for frame in frames:
            for part, _ in frame.parts or ():
                left += part.items
        if left >= self._fewest:
            return
        self._fewest = left
        self._stop = self.nodes + self._limit
        top = frames[-1]
        unplaced = [top.core.ids[top.state.lower < PLACED]]
        unplaced += [part.ids for frame in frames for part, _ in frame.parts or ()]
        self._deepest = (self._placed_at.copy(), np.concatenate(unplaced))

    def deepest(self) -> list[int]:
        """The ids placed when the fewest items were left, in order."""
        if self._deepest is None:
            return []
        placed_at = self._deepest[0].copy()
        placed_at[self._deepest[1]] = -1
        order = np.argsort(placed_at, kind="stable")
        placed: list[int] = order[placed_at[order] >= 0].tolist()
        return placed

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
                return self._exhausted()
            frames.pop()
        return Outcome.SOLVED

    def _backtrack(self) -> bool:
        """Go to the latest open right branch that may help; False if none does."""
        frames = self._frames
        while frames:
            frame = frames[-1]
            frame.parts = None
            while frame.choices:
                choice = frame.choices[-1]
                low, high = self._conflict
                if self._jumping and (choice.low >= high or choice.high <= low):
                    frame.choices.pop()
                    self._skipped |= choice.later is not None
                elif choice.later is None:
                    frame.choices.pop()
                    self._conflict = (
                        min(low, choice.conflict[0]),
                        max(high, choice.conflict[1]),
                    )
                else:
                    frame.state, choice.later = choice.later, None
                    choice.conflict = self._conflict
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
