"""Who holds the fast memory while a value would need it, and how much is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from msa.assignment.allocation import (
    Allocation,
    ScopedAllocation,
    SlicedCopyAllocation,
)
from msa.assignment.problem import Problem, Value
from msa.heap.chunk import Chunk, align_up


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

    O(k log k · active) for the k allocations of that span.

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
    machine = problem.machine
    mates = frozenset(problem.buffers[value.buffer]) | {value.id}
    pieces = [
        piece
        for piece in _holders(problem, allocations, mates)
        if piece.start <= end and piece.end >= start
    ]
    pieces.sort(key=lambda piece: piece.start)
    step, taken, there = _fullest(pieces, start)
    there.sort(key=lambda piece: (-piece.chunk.size, piece.chunk.offset, piece.name))
    needed = align_up(value.size, machine.alignment)

    def hole(without: str = "") -> int:
        kept = [p.chunk for p in pieces if p.name != without]
        return _largest_hole(kept, machine.capacity, machine.alignment)

    names = dict.fromkeys(piece.name for piece in there)
    return Crowding(
        needed=needed,
        start=start,
        end=end,
        step=step,
        taken=taken,
        hole=hole(),
        holders=tuple(there),
        enough=tuple(name for name in names if hole(name) >= needed),
        capacity=machine.capacity,
    )


def holder_name(problem: Problem, allocation: Allocation) -> str:
    """What an allocation keeps: the value, or the scratch of an instruction."""
    if isinstance(allocation, ScopedAllocation):
        return f"scratch of {problem.names[allocation.position.step]}"
    return problem.describe(problem.values[allocation.value].position)


def _holders(
    problem: Problem, allocations: Iterable[Allocation], mates: Collection[int]
) -> Iterator[Holder]:
    """What occupies fast memory; the slices of a copy each from their own start."""
    for x in allocations:
        if not x.is_alternate or x.chunk is None or x.chunk.size == 0:
            continue
        if x.value in mates:
            continue
        name = holder_name(problem, x)
        if isinstance(x, SlicedCopyAllocation):
            for part in x.slices:
                yield Holder(name, part.chunk, part.start_after + 1, x.end)
        else:
            yield Holder(name, x.chunk, x.start, x.end)


def _fullest(pieces: Sequence[Holder], start: int) -> tuple[int, int, list[Holder]]:
    """The first step with most bytes taken: the bytes, and what takes them.

    The most is reached where the span or a piece starts.
    """
    best: tuple[int, int, list[Holder]] = (start, 0, [])
    active: list[Holder] = []
    number = 0
    while number < len(pieces):
        step = max(start, pieces[number].start)
        while number < len(pieces) and max(start, pieces[number].start) == step:
            active.append(pieces[number])
            number += 1
        active = [piece for piece in active if piece.end >= step]
        taken = _covered(piece.chunk for piece in active)
        if taken > best[1]:
            best = (step, taken, list(active))
    return best


def _covered(chunks: Iterable[Chunk]) -> int:
    """Addresses in at least one chunk."""
    covered = top = 0
    for chunk in sorted(chunks):
        covered += max(0, chunk.end - max(top, chunk.offset))
        top = max(top, chunk.end)
    return covered


def _largest_hole(chunks: Iterable[Chunk], capacity: int, alignment: int) -> int:
    """The largest run of free addresses from an aligned address on."""
    largest = top = 0
    for chunk in sorted(chunks):
        largest = max(largest, chunk.offset - align_up(top, alignment))
        top = max(top, chunk.end)
    return max(largest, capacity - align_up(top, alignment), 0)
