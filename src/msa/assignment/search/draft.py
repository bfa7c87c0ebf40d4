"""A draft of a plan that is changed place by place: allocations, room, and time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Final, NamedTuple

from msa.assignment.allocation import (
    AliasedOffset,
    Allocation,
    AllocationSequence,
    Position,
)
from msa.assignment.problem import Problem
from msa.assignment.search.layout import Layout
from msa.assignment.search.limits import Limits
from msa.assignment.search.timeline import Timeline
from msa.heap.chunk import Chunk


class Change(NamedTuple):
    """Allocations at one place that went, and those that came, by number."""

    place: Position
    gone: tuple[tuple[int, Allocation], ...]
    came: tuple[tuple[int, Allocation], ...]


class Draft:
    """Allocations by number, with the room that they take and the time that they make.

    Attributes:
        timeline: of the allocations.
        layout: chunks of those in alternate memory.
        allocations: by number; numbers ascend in order of decision.
        of_place: position → numbers of the allocations there.
        keeps_limits: whether no limit was broken at the beginning; later, none is.
    """

    def __init__(
        self,
        problem: Problem,
        allocations: Iterable[Allocation],
        capacity: int,
        alignment: int,
        dead: Set[int] = frozenset(),
        limits: Limits | None = None,
    ) -> None:
        self.timeline = Timeline(problem, dead)
        self.layout = Layout(capacity, alignment)
        self.allocations: dict[int, Allocation] = {}
        self.of_place: dict[Position, list[int]] = {}
        self.keeps_limits = True
        self._limits = limits
        self._next = 0
        for allocation in allocations:
            self.keeps_limits &= self._is_admitted(allocation)
            self._enter(self._next, allocation)
            self._next += 1
        self.timeline.commit()

    def _is_admitted(self, allocation: Allocation) -> bool:
        return self._limits is None or self._limits.admit(allocation)

    def _enter(self, number: int, allocation: Allocation) -> None:
        self.allocations[number] = allocation
        self.of_place.setdefault(_place(allocation), []).append(number)
        self.timeline.add(number, allocation)
        if self._limits is not None:
            self._limits.add(allocation)
        if allocation.is_alternate and allocation.chunk is not None:
            chunk = allocation.chunk
            self.layout.add(
                number, allocation.start, allocation.end, chunk.offset, chunk.size
            )

    def _leave(self, number: int) -> Allocation:
        allocation = self.allocations.pop(number)
        self.of_place[_place(allocation)].remove(number)
        self.timeline.remove(number, allocation)
        if self._limits is not None:
            self._limits.remove(allocation)
        if allocation.is_alternate and allocation.chunk is not None:
            self.layout.remove(number)
        return allocation

    def lift(self, place: Position) -> tuple[tuple[int, Allocation], ...]:
        """Take away all allocations at a place."""
        return tuple((n, self._leave(n)) for n in tuple(self.of_place.get(place, ())))

    def take(self, number: int) -> Allocation:
        """Take away one allocation."""
        return self._leave(number)

    def put(
        self, allocations: Sequence[Allocation], size: int
    ) -> tuple[tuple[int, Allocation], ...] | None:
        """Add allocations at one place, with chunks; None, and nothing done: no room.

        Nor may they break a limit.
        """
        came: list[tuple[int, Allocation]] = []
        for allocation in allocations:
            if not self._is_admitted(allocation):
                self.take_out(came)
                return None
            if allocation.is_alternate:
                offset = self.layout.find(allocation.start, allocation.end, size)
                if offset is None:
                    self.take_out(came)
                    return None
                allocation.chunk = Chunk(offset, size)
                allocation.aliased_offset = AliasedOffset(offset)
            came.append((self._next, allocation))
            self._enter(self._next, allocation)
            self._next += 1
        return tuple(came)

    def put_together(
        self, allocations: Sequence[Allocation], offset: int, size: int
    ) -> tuple[tuple[int, Allocation], ...] | None:
        """Add allocations, those in alternate memory at one offset that is free.

        None, and nothing done, if they break a limit.
        """
        came: list[tuple[int, Allocation]] = []
        shared = AliasedOffset(offset)
        for allocation in allocations:
            if not self._is_admitted(allocation):
                self.take_out(came)
                return None
            if allocation.is_alternate:
                allocation.chunk = Chunk(offset, size)
                allocation.aliased_offset = shared
            came.append((self._next, allocation))
            self._enter(self._next, allocation)
            self._next += 1
        return tuple(came)

    def take_out(self, came: Iterable[tuple[int, Allocation]]) -> None:
        """Take away what `put` added."""
        for number, _ in came:
            self._leave(number)

    def put_back(self, gone: Iterable[tuple[int, Allocation]]) -> None:
        """Bring back what `lift` took away."""
        for number, allocation in gone:
            self._enter(number, allocation)

    def undo(self, changes: Sequence[Change]) -> None:
        """Take changes back, the last first."""
        for change in reversed(changes):
            self.take_out(change.came)
            self.put_back(change.gone)

    def restore(self, allocations: dict[int, Allocation]) -> None:
        """Have just these allocations, by number. Linear."""
        for number in sorted(self.allocations.keys() - allocations.keys()):
            self._leave(number)
        for number in sorted(allocations.keys() - self.allocations.keys()):
            self._enter(number, allocations[number])

    def sequence(self) -> AllocationSequence:
        """The allocations in order of decision."""
        return AllocationSequence(self.allocations[n] for n in sorted(self.allocations))


_SCRATCH: Final = Position(-1)


def _place(allocation: Allocation) -> Position:
    return allocation.position if allocation.value >= 0 else _SCRATCH
