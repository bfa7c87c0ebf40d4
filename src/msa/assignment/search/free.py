"""Places of values that may be decided by themselves.

A place is free if nothing else hangs on the memory that the value is in there. A place
that a loop, a branch or an operation in place ties to others is free but for where the
value is defined, if that is default memory and the ties are served from there: it may
still be fetched for other uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Final, NamedTuple

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    PinnedAllocation,
    Position,
    SlicedCopyAllocation,
    Use,
)
from msa.assignment.problem import Problem, Value
from msa.hlo.opcode import RUNNING_OPCODES

_ASYNC: Final = ("-start", "-done", "-update")
_OTHER: Final = frozenset({"recv", "send"})
_MADE: Final = frozenset({PinnedAllocation, CopyAllocation, SlicedCopyAllocation})
"""Kinds of allocations that free places have."""

_KINDS: Final = frozenset({"entry", "body", "condition", "branch"})


class FreeUse(NamedTuple):
    """A use at a free place.

    Attributes:
        use: the use.
        size: bytes that it reads, 0 if that is not known.
        default: it has to read default memory.
        trivial: it only names the storage.
    """

    use: Use
    size: float
    default: bool
    trivial: bool


class FreePlace(NamedTuple):
    """A value at a place that may be decided by itself.

    Attributes:
        value, size: id and bytes.
        position, region: where it is defined.
        written: bytes written there.
        definable: it may be defined in alternate memory.
        uses: by step.
    """

    value: int
    size: int
    position: Position
    region: int
    written: float
    definable: bool
    uses: tuple[FreeUse, ...]

    @property
    def step(self) -> int:
        """Step of the definition."""
        return self.position.step

    @property
    def span(self) -> tuple[int, int]:
        """Steps of the definition and of the last use."""
        return self.step, self.uses[-1].use.step if self.uses else self.step


def free_places(
    problem: Problem,
    capacity: int,
    allocations: Iterable[Allocation],
    *,
    bound: Iterable[int] = (),
    in_place: Set[int] | None = None,
) -> dict[Position, FreePlace]:
    """The free places by position. Linear in places.

    Args:
        problem: the problem.
        capacity: bytes of alternate memory.
        allocations: of a plan: ties stay where they are in it.
        bound: values that are not free for other reasons.
        in_place: steps that write into an operand; None: any may.
    """
    finder = _Finder(problem, list(allocations), in_place)
    bound = set(bound)
    found = {}
    for value in problem.values:
        if value.id not in bound and _may_move(value, capacity):
            for place in finder.places(value):
                found[place.position] = place
    return found


def _may_move(value: Value, capacity: int) -> bool:
    return (
        value.placeable
        and not value.is_tuple
        and not value.pinned
        and not value.reserved
        and not value.banned_positions
        and not value.contiguous_positions
        and 0 < value.size <= capacity
    )


class _Finder:
    """Looks for free places, given where a plan has things."""

    def __init__(
        self,
        problem: Problem,
        allocations: Sequence[Allocation],
        in_place: Set[int] | None,
    ) -> None:
        self._problem = problem
        self._in_place = in_place
        self._at: dict[Position, list[Allocation]] = {}
        self._needed: set[Position] = set()
        self._served: dict[tuple[int, Use], Position] = {}
        for allocation in allocations:
            if allocation.value < 0:
                continue
            self._at.setdefault(allocation.position, []).append(allocation)
            for use in allocation.uses:
                self._served[allocation.value, use] = allocation.position
            source = allocation.depends_on
            if source is not None and (
                source.position != allocation.position or not allocation.is_copy_like
            ):
                self._needed |= {source.position, allocation.position}

    def places(self, value: Value) -> list[FreePlace]:
        """The free places of a value."""
        problem = self._problem
        homes = sorted(p for p in value.positions if not problem.is_trivial(p.step))
        uses: dict[Position, list[tuple[int, Use]]] = {home: [] for home in homes}
        for number, use in enumerate(value.uses):
            region = problem.region_of[use.step]
            before = [
                home
                for home in homes
                if home.step < use.step and problem.region_of[home.step] == region
            ]
            if not before:
                return []
            if self._served.get((value.id, use), before[-1]) != before[-1]:
                return []  # several places hold it: the plan reads another one
            uses[before[-1]].append((number, use))
        alone = len(homes) == 1
        found = []
        for home in homes:
            place = self._place(value, home, uses[home], alone=alone)
            if place is not None:
                found.append(place)
        return found

    def _place(
        self,
        value: Value,
        home: Position,
        uses: list[tuple[int, Use]],
        *,
        alone: bool,
    ) -> FreePlace | None:
        problem = self._problem
        region = problem.region_of[home.step]
        here = self._at.get(home, ())
        if problem.regions[region].kind not in _KINDS or home in self._needed:
            return None
        if problem.runs_asynchronously[region]:
            return None  # what lies there would have to last as long as the operation
        if any(type(a) not in _MADE for a in here):
            return None
        ties = self._ties(value, home, [use for _, use in uses])
        tied = not alone or self._is_made_of_another(value, home) or bool(ties)
        if tied and not _is_anchored(here, home, ties):
            return None
        outlet = problem.regions[region].root
        handed = outlet if problem.is_trivial(outlet) else -1
        read = dict(zip(value.uses, value.use_bytes, strict=False))
        written = dict(zip(value.positions, value.position_bytes, strict=False))
        rows = [
            FreeUse(
                use,
                max(0.0, read.get(use, 0.0)),
                number in value.banned_uses or use.step == handed or use in ties,
                problem.is_trivial(use.step),
            )
            for number, use in uses
        ]
        rows.sort(key=lambda item: (item.use.step, item.use))
        return FreePlace(
            value.id,
            value.size,
            home,
            region,
            max(0.0, written.get(home, 0.0)),
            not tied
            and value.definable
            and not value.is_constant
            and home.step not in problem.regions[region].parameters
            and home.step != outlet,
            tuple(rows),
        )

    def _ties(self, value: Value, home: Position, uses: Iterable[Use]) -> set[Use]:
        """Uses that hand the storage on, to a region, a result, or across time."""
        problem = self._problem
        region = problem.region_of[home.step]
        root = problem.regions[region].root
        if not region or not problem.is_trivial(root):
            root = -1
        made = self._made_in_place(value)
        return {
            use
            for use in uses
            if use.index
            or use.step == root
            or use.step in made
            or _hands_on(problem, use.step)
        }

    def _made_in_place(self, value: Value) -> set[int]:
        """Steps at which other values of the buffer are made of what is read there."""
        problem = self._problem
        members = problem.buffers[value.buffer]
        made = {
            position.step
            for member in members
            if member != value.id
            for position in problem.values[member].positions
            if not problem.is_trivial(position.step)
        }
        return made if self._in_place is None else made & self._in_place

    def _is_made_of_another(self, value: Value, home: Position) -> bool:
        """Whether the place is tied where it is defined."""
        problem = self._problem
        region = problem.region_of[home.step]
        if _hands_on(problem, home.step):
            return True
        if region and home.step in problem.regions[region].parameters:
            return True
        if self._in_place is not None and home.step not in self._in_place:
            return False
        return any(
            use.step == home.step
            for member in problem.buffers[value.buffer]
            if member != value.id
            for use in problem.values[member].uses
        )


def _is_anchored(
    here: Sequence[Allocation], home: Position, ties: Iterable[Use]
) -> bool:
    """Whether the value is defined in default memory, and its ties read that."""
    pinned = [a for a in here if not a.is_copy_like]
    if len(pinned) != 1 or pinned[0].is_alternate or pinned[0].position != home:
        return False
    return set(ties) <= set(pinned[0].uses)


def _hands_on(problem: Problem, step: int) -> bool:
    """Whether an instruction runs or is in flight with what it reads or makes."""
    return problem.opcodes[step] in RUNNING_OPCODES or is_in_flight(problem, step)


def is_in_flight(problem: Problem, step: int) -> bool:
    """Whether an instruction is part of an operation that others go on beside."""
    opcode = problem.opcodes[step]
    return opcode in _OTHER or opcode.endswith(_ASYNC)
