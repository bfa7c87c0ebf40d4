"""Buffers tied by loops, branches, calls or operations in place, and their places.

The values of such a buffer are not decided one by one: where one is handed on, the
others have to be in the same place. What may become of such a buffer as a whole is
that it is in alternate memory throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from msa.assignment.allocation import Position
from msa.assignment.allocation_values import (
    AllocationValue,
    SegmentUse,
    create_allocation_values,
)
from msa.assignment.intervals import colocated, create_buffer_intervals
from msa.assignment.problem import Problem
from msa.assignment.search.free import FreePlace, FreeUse, is_in_flight
from msa.assignment.times import UseTimes
from msa.hlo.opcode import RUNNING_OPCODES


class TiedPlace(NamedTuple):
    """A place of a tied buffer.

    Attributes:
        place: it and its uses; definable, if the value is in alternate memory there.
        handed: first step that needs it in alternate memory; None: no step does.
        last: last step that looks at its storage, in alternate memory.
    """

    place: FreePlace
    handed: int | None
    last: int


class TiedBuffer(NamedTuple):
    """Values that share storage, all of which may be in alternate memory.

    Attributes:
        buffer, size: number and bytes.
        places: sources of what is handed on before what it is handed to.
    """

    buffer: int
    size: int
    places: tuple[TiedPlace, ...]


def tied_buffers(
    problem: Problem, kept: Iterable[int] = (), dead: Set[int] = frozenset()
) -> list[TiedBuffer]:
    """The buffers that may be in alternate memory throughout.

    Not those of the values `kept`. Lowering removes `dead` steps, unless what they make
    is copied. Linear but for sorting.
    """
    finder = _Finder(problem, dead)
    intervals = create_buffer_intervals(problem)
    fixed = {problem.values[value].buffer for value in kept}
    found = []
    for interval in intervals:
        if interval is None or not interval.need_allocation:
            continue
        buffer = problem.values[interval.value].buffer
        group = colocated(interval, intervals)
        if buffer in fixed or not finder.may_move(buffer):
            continue
        places = finder.places(create_allocation_values(group, problem, finder.times))
        if places:
            found.append(TiedBuffer(buffer, interval.size, tuple(places)))
    return found


class _Finder:
    """Looks for places of tied buffers, and how their uses are to be served."""

    def __init__(self, problem: Problem, dead: Set[int]) -> None:
        self._problem = problem
        self._dead = dead
        self._making = {
            value.position.step
            for value in problem.values
            if not value.is_tuple and any(use.step not in dead for use in value.uses)
        }
        self.times = UseTimes(problem)
        self._entry = problem.regions[0]

    def may_move(self, buffer: int) -> bool:
        """Whether the values of a buffer may be in alternate memory, as one."""
        values = [self._problem.values[v] for v in self._problem.buffers[buffer]]
        return all(
            value.placeable
            and not value.is_tuple
            and not value.pinned
            and not value.reserved
            and not value.banned_positions
            and not value.contiguous_positions
            and 0 < value.size == values[0].size
            for value in values
        )

    def places(self, items: Sequence[AllocationValue]) -> list[TiedPlace]:
        """Places of one buffer; none, if it is not tied or has to be elsewhere."""
        aliases = {p for item in items for use in item.uses for p in use.aliases}
        if len(items) == 1 and not aliases:
            return []
        outside = {item.position for item in items if self._is_outside(item)}
        if outside & aliases or not all(self._is_simple(item) for item in items):
            return []
        if any(self._is_result_of_others(item) for item in items):
            return []
        first: dict[tuple[int, int], AllocationValue] = {}
        for item in sorted(items, key=lambda item: item.position):
            first.setdefault((item.value.id, item.region), item)
        served: dict[Position, list[FreeUse]] = {item.position: [] for item in items}
        for item in items:
            for use in item.uses:
                default = self._is_default(item, use)
                if default and use.aliases:
                    return []
                source = self._source(item, first) if default else item
                served[source.position].append(self._served(use, default=default))
        return [
            self._place(
                item, served[item.position], inside=item.position not in outside
            )
            for item in items
        ]

    def _is_outside(self, item: AllocationValue) -> bool:
        """Whether the place is one in default memory, whatever is decided."""
        value, step = item.value, item.position.step
        if item.position == value.position and (
            value.is_constant or not value.definable
        ):
            return True
        return step in self._entry.parameters or step == self._entry.root

    def _is_result_of_others(self, item: AllocationValue) -> bool:
        """Whether what a branch, loop or call makes is the program's result itself."""
        root = self._entry.root
        return (
            item.position.step == root
            and self._problem.opcodes[root] in RUNNING_OPCODES
        )

    def _is_simple(self, item: AllocationValue) -> bool:
        """Whether all that reads or makes it does so at its step."""
        problem = self._problem
        if problem.runs_asynchronously[item.region]:
            return False
        steps = [item.position.step, *(use.use.step for use in item.uses)]
        return not any(is_in_flight(problem, s) or s in problem.views for s in steps)

    def _is_default(self, item: AllocationValue, use: SegmentUse) -> bool:
        """Whether a use has to read default memory."""
        problem, step = self._problem, use.use.step
        if use.number in item.value.banned_uses:
            return True
        if step == self._entry.root and problem.is_trivial(step):
            return True
        runs = problem.opcodes[step] in RUNNING_OPCODES
        return bool(use.use.index) and not runs and not problem.is_trivial(step)

    def _source(
        self, item: AllocationValue, first: Mapping[tuple[int, int], AllocationValue]
    ) -> AllocationValue:
        """Where a use finds a value in default memory that the place has.

        What a loop hands through, as an element of its own, is where it came from, too;
        but the loop has to be needed for something else.
        """
        step = item.position.step
        if len(item.position.index) > 1 or (
            step not in self._dead and step not in self._making
        ):
            return item
        return first[item.value.id, item.region]

    def _served(self, use: SegmentUse, *, default: bool) -> FreeUse:
        trivial = self._problem.is_trivial(use.use.step)
        return FreeUse(use.use, max(0.0, use.read_bytes), default, trivial)

    def _place(
        self, item: AllocationValue, served: list[FreeUse], *, inside: bool
    ) -> TiedPlace:
        problem, value, position = self._problem, item.value, item.position
        region = problem.regions[item.region]
        written = dict(zip(value.positions, value.position_bytes, strict=False))
        served.sort(key=lambda row: (row.use.step, row.use))
        fast = [row.use.step for row in served if not row.default]
        last = max([position.step, *map(self.times.corrected, fast)])
        handed = [use.use.step for use in item.uses if use.aliases]
        if problem.is_trivial(region.root) and region.root in fast:
            handed.append(region.root)
        if region.root in (position.step, *handed):
            last = max(last, region.caller)
        place = FreePlace(
            value.id,
            value.size,
            position,
            item.region,
            max(0.0, written.get(position, 0.0)),
            inside,
            tuple(served),
        )
        return TiedPlace(place, min(handed, default=None), last)
