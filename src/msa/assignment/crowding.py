"""Who holds the fast memory while a value would need it, and how much is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msa.assignment.allocation import (
    Allocation,
    ScopedAllocation,
    SlicedCopyAllocation,
)
from msa.assignment.problem import Problem, Value
from msa.heap.chunk import Chunk, align_up

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Holder:
    """A piece of fast memory that something else keeps.

    Attributes:
        name: `name{index}` of the value, or `scratch of name`.
        chunk: its addresses.
        start, end: inclusive steps.
    """

    name: str
    chunk: Chunk
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Crowding:
    """What stands in the way of room for a value in a span of steps.

    Attributes:
        needed: bytes that the value takes, rounded up to the alignment.
        start, end: the span, inclusive steps.
        step: the first of its steps with the most bytes taken by others.
        taken: bytes taken there; addresses shared by two holders count once.
        hole: size of the largest aligned hole that is free in the whole span.
        holders: what is there at `step`, largest first.
        enough: names of holders any one of which leaves a hole that is large enough
            when it goes alone, with all others where they are.
        capacity: of the fast memory.
    """

    needed: int
    start: int
    end: int
    step: int
    taken: int
    hole: int
    holders: tuple[Holder, ...]
    enough: tuple[str, ...]
    capacity: int

    @property
    def missing(self) -> int:
        """Bytes too few at `step`, however well the holders were packed; or 0."""
        return max(0, self.taken + self.needed - self.capacity)

    @property
    def missing_in_one_piece(self) -> int:
        """Bytes by which the largest hole of the whole span is too small; or 0."""
        return max(0, self.needed - self.hole)


def crowding(
    problem: Problem,
    allocations: Iterable[Allocation],
    value: Value,
    start: int,
    end: int,
) -> Crowding:
    """Measure how full the fast memory is where a value would need room.

    Storage of the value itself and of values that share its buffer does not count.

    Args:
        problem: what was planned.
        allocations: the plan.
        value: what would be placed.
        start, end: inclusive steps in which it would need the room.

    For many questions about one plan, make one `Occupancy`.

    >>> import msa
    >>> from msa.assignment.crowding import crowding
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   x = f32[16384]{0} parameter(0)
    ...   y = f32[16384]{0} tanh(x)
    ...   ROOT z = f32[16384]{0} multiply(y, y)
    ... }''')
    >>> plan = msa.assign(module, msa.Target.preset("tpu_v5e"))
    >>> x = plan.problem.values[0]
    >>> found = crowding(plan.problem, plan.allocations, x, 1, 2)
    >>> found.step, found.taken, [holder.name for holder in found.holders]
    (1, 65536, ['y{}'])
    """
    return Occupancy(problem, allocations).crowding(value, start, end)


class Occupancy:
    """Who holds which addresses of fast memory when, for many questions.

    Addresses are cut where a holder begins or ends; a cut lies in a holder or does not.
    Making one is O(holders · cuts) in plain array operations.
    """

    __slots__ = (
        "_cuts",
        "_ends",
        "_high",
        "_low",
        "_machine",
        "_name_of",
        "_numbers",
        "_owners",
        "_pieces",
        "_problem",
        "_starts",
        "_taken",
        "_widths",
    )

    def __init__(self, problem: Problem, allocations: Iterable[Allocation]) -> None:
        self._problem = problem
        self._machine = problem.machine
        rows = list(_holders(problem, allocations))
        self._pieces = [piece for _, piece in rows]
        self._owners = np.array([owner for owner, _ in rows], np.int64)
        names = dict.fromkeys(piece.name for piece in self._pieces)
        self._numbers = {name: number for number, name in enumerate(names)}
        self._name_of = np.array(
            [self._numbers[p.name] for p in self._pieces], np.int64
        )
        self._starts = np.array([p.start for p in self._pieces], np.int64)
        self._ends = np.array([p.end for p in self._pieces], np.int64)
        low = np.array([p.chunk.offset for p in self._pieces], np.int64)
        high = np.array([p.chunk.end for p in self._pieces], np.int64)
        bounds = np.array([0, self._machine.capacity], np.int64)
        self._cuts = np.unique(np.concatenate((low, high, bounds)))
        self._widths = np.diff(self._cuts)
        self._low = np.searchsorted(self._cuts, low)
        self._high = np.searchsorted(self._cuts, high)
        everything = np.arange(len(self._pieces))
        self._taken = self._profile(everything, 0, problem.end)

    def crowding(self, value: Value, start: int, end: int) -> Crowding:
        """How full the memory is where a value would need room; see `crowding`."""
        end = max(start, end)
        there = (self._starts <= end) & (self._ends >= start)
        mates = self._problem.buffers[value.buffer]
        mine = there & self._belongs(mates)
        others = np.flatnonzero(there & ~mine)
        taken = self._taken[start : end + 1]
        if mine.any():  # buffers share no addresses while both are there
            taken = taken - self._profile(np.flatnonzero(mine), start, end)
        step = start + int(taken.argmax())
        now = others[(self._starts[others] <= step) & (self._ends[others] >= step)]
        needed = align_up(value.size, self._machine.alignment)
        hole = self._hole(others)
        holders = sorted((self._pieces[i] for i in now), key=_largest_first)
        return Crowding(
            needed=needed,
            start=start,
            end=end,
            step=step,
            taken=int(taken.max()),
            hole=hole,
            holders=tuple(holders),
            enough=self._enough(others, holders, hole, needed),
            capacity=self._machine.capacity,
        )

    def free_hole(self, value: Value, start: int, end: int) -> int | None:
        """The largest hole that is left for a whole span; None if the value does not fit.

        The same as `crowding` says, without saying who stands in the way.
        """
        there = (self._starts <= end) & (self._ends >= start)
        there &= ~self._belongs(self._problem.buffers[value.buffer])
        hole = self._hole(np.flatnonzero(there))
        return hole if hole >= align_up(value.size, self._machine.alignment) else None

    def _belongs(self, values: Sequence[int]) -> NDArray[np.bool_]:
        """Which pieces are of one of these values."""
        mine: NDArray[np.bool_] = self._owners == values[0]
        return mine if len(values) == 1 else np.isin(self._owners, values)

    def _count(self, low: Ints, high: Ints) -> Ints:
        """Per cut, in how many pieces from `low` to `high` it lies."""
        size = len(self._cuts)
        count = np.bincount(low, minlength=size) - np.bincount(high, minlength=size)
        return np.cumsum(count)[:-1]

    def _hole(self, pieces: Ints) -> int:
        """The largest aligned run of bytes without any of the pieces."""
        free = self._count(self._low[pieces], self._high[pieces]) <= 0
        busy_until = np.where(free, 0, self._cuts[1:])
        start = np.maximum.accumulate(busy_until)
        return int(
            np.where(free, self._usable(start, self._cuts[1:]), 0).max(initial=0)
        )

    def _usable(self, start: Ints, end: Ints) -> Ints:
        """Bytes of runs of addresses, from the first that is aligned."""
        alignment = self._machine.alignment
        # Nothing lies beyond the capacity but what has been given too much.
        end = np.minimum(end, self._machine.capacity)
        usable: Ints = end - -(-start // alignment) * alignment
        return usable

    def _enough(
        self, others: Ints, holders: Sequence[Holder], hole: int, needed: int
    ) -> tuple[str, ...]:
        """Names of holders without any one of which the hole is large enough.

        One sweep over the runs of cuts in which nobody or only one holder is.
        """
        names = list(dict.fromkeys(holder.name for holder in holders))
        if hole >= needed or not names:
            return tuple(names)
        owner, low, high = self._joined(others)
        count = self._count(low, high)
        size = len(self._cuts)
        sums = np.bincount(low, owner, size) - np.bincount(high, owner, size)
        busy = np.flatnonzero(count)
        # Cuts of more than one owner are runs by themselves, of nobody.
        alone = np.where(
            count[busy] == 1, np.rint(np.cumsum(sums)[busy]), -1 - np.arange(len(busy))
        )
        first = np.flatnonzero(np.diff(alone, prepend=np.nan) != 0)
        edges = np.concatenate(([-1], busy, [size - 1]))
        after = np.append(first[1:], len(busy))
        large = (
            self._usable(self._cuts[edges[first] + 1], self._cuts[edges[after + 1]])
            >= needed
        )
        found = set(alone[first[large]].astype(np.int64).tolist())
        return tuple(name for name in names if self._numbers[name] in found)

    def _joined(self, pieces: Ints) -> tuple[Ints, Ints, Ints]:
        """Who owns which runs of cuts, where those of one owner do not overlap."""
        pieces = pieces[np.lexsort((self._low[pieces], self._name_of[pieces]))]
        owner = self._name_of[pieces]
        shift = owner * len(self._cuts)  # owners lie behind each other
        low, high = self._low[pieces] + shift, self._high[pieces] + shift
        high = np.maximum.accumulate(high)
        first = np.flatnonzero(np.append(True, low[1:] >= high[:-1]))
        last = np.append(first[1:], len(pieces)) - 1
        shift = shift[first]
        return owner[first], low[first] - shift, high[last] - shift

    def _profile(self, pieces: Ints, start: int, end: int) -> Ints:
        """Per step of a span, the bytes taken; shared addresses count once."""
        taken = np.zeros(end - start + 1, np.int64)
        count = np.zeros(len(self._widths), np.int64)
        first = np.maximum(self._starts[pieces], start)
        gone = np.minimum(self._ends[pieces], end) + 1
        events = sorted(
            [(step, 1, i) for step, i in zip(first.tolist(), pieces, strict=True)]
            + [(step, -1, i) for step, i in zip(gone.tolist(), pieces, strict=True)]
        )
        for place, (step, change, i) in enumerate(events):
            count[self._low[i] : self._high[i]] += change
            following = events[place + 1][0] if place + 1 < len(events) else end + 1
            if following > step:
                held = int(self._widths[count > 0].sum())
                taken[step - start : following - start] = held
        return taken


def holder_name(problem: Problem, allocation: Allocation) -> str:
    """What an allocation keeps: the value, or the scratch of an instruction."""
    if isinstance(allocation, ScopedAllocation):
        return f"scratch of {problem.names[allocation.position.step]}"
    return problem.describe(problem.values[allocation.value].position)


def _holders(
    problem: Problem, allocations: Iterable[Allocation]
) -> Iterator[tuple[int, Holder]]:
    """What occupies fast memory, with its value; slices each from their own start."""
    for x in allocations:
        if not x.is_alternate or x.chunk is None or x.chunk.size == 0:
            continue
        name = holder_name(problem, x)
        if isinstance(x, SlicedCopyAllocation):
            for part in x.slices:
                yield x.value, Holder(name, part.chunk, part.start_after + 1, x.end)
        else:
            yield x.value, Holder(name, x.chunk, x.start, x.end)


def _largest_first(piece: Holder) -> tuple[int, int, str]:
    return -piece.chunk.size, piece.chunk.offset, piece.name
