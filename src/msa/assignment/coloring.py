"""Colours: places that the user wants in a given memory.

Room for places coloured alternate is reserved before anything is allocated, for just
the instants that are coloured (or the whole stay of a value that must be in one
piece). When such a value's turn comes, its reservation is given back, and because the
room was free at that instant, a one-instant allocation with copies right before and
after is always possible.

Reference: `ProcessColoredBuffers` in
`xla/service/memory_space_assignment/algorithm.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msa.assignment.allocation import MemorySpace, Position
from msa.assignment.allocation_values import AllocationValue, create_allocation_values
from msa.assignment.intervals import colocated
from msa.assignment.ledgers.free_space import FreeSpace
from msa.assignment.options import BufferColoring
from msa.assignment.problem import Problem
from msa.assignment.request import AllocationRequest
from msa.assignment.state import State
from msa.errors import CapacityError, OptionsError
from msa.heap.chunk import Chunk

Interval = tuple[int, int]


@dataclass(slots=True)
class Reservation:
    """Room held for a coloured buffer in `[start, end]`, until it is released."""

    start: int
    end: int
    chunk: Chunk
    released: bool = False


@dataclass(slots=True)
class Coloring:
    """Coloured intervals of buffers, inclusive steps."""

    default: dict[int, list[Interval]] = field(default_factory=dict)
    reserved: dict[int, list[Reservation]] = field(default_factory=dict)

    def is_default(self, buffer: int, step: int) -> bool:
        """Whether the buffer must be in default memory at the step."""
        return any(s <= step <= e for s, e in self.default.get(buffer, ()))

    def is_alternate(self, buffer: int, step: int) -> bool:
        """Whether the buffer must be in alternate memory at the step."""
        return any(r.start <= step <= r.end for r in self.reserved.get(buffer, ()))

    def opposes(self, buffer: int, step: int, space: MemorySpace) -> bool:
        """Whether a colour forbids the memory at the step."""
        if space is MemorySpace.DEFAULT:
            return self.is_alternate(buffer, step)
        return self.is_default(buffer, step)

    def mark(self, request: AllocationRequest) -> None:
        """Note on the request how its ends are coloured."""
        buffer = request.target.value.buffer
        request.start_in_alternate = self.is_alternate(buffer, request.start)
        request.end_in_alternate = self.is_alternate(buffer, request.end)
        request.start_in_default = self.is_default(buffer, request.start)
        request.end_in_default = self.is_default(buffer, request.end)

    def release(self, state: State, request: AllocationRequest) -> None:
        """Give back what is reserved at coloured ends; undone on rollback."""
        steps = []
        if request.start_in_alternate:
            steps.append(request.start)
        if request.end_in_alternate:
            steps.append(request.end)
        for reservation in self.reserved.get(request.target.value.buffer, ()):
            if not reservation.released and any(
                reservation.start <= step <= reservation.end for step in steps
            ):
                state.space.release(
                    reservation.start, reservation.end, reservation.chunk
                )
                reservation.released = True
                state.transaction.record(setattr, reservation, "released", False)


def process_colors(state: State) -> Coloring | None:
    """Reserve room for everything that is coloured; None if nothing is.

    Raises:
        OptionsError: a colouring names nothing in the schedule, or two contradict.
        CapacityError: coloured buffers do not fit together.
    """
    colorings = state.options.buffer_colorings
    if not colorings:
        return None
    problem = state.problem
    steps = {name: step for step, name in enumerate(problem.names)}
    grouped: dict[int, list[tuple[int, MemorySpace]]] = {}
    for coloring in colorings:
        value, step = _place(state, coloring, steps)
        if problem.values[value].is_constant and state.intervals[value] is None:
            continue
        buffer = problem.values[value].buffer
        grouped.setdefault(buffer, []).append((step, coloring.space))
    result = Coloring()
    for buffer, places in grouped.items():
        stays = _contiguous_stays(state, buffer)
        alternate = _intervals(places, MemorySpace.ALTERNATE, stays)
        default = _intervals(places, MemorySpace.DEFAULT, stays)
        _check_apart(problem, buffer, alternate, default)
        if default:
            result.default[buffer] = default
        if alternate:
            result.reserved[buffer] = [
                _reserve(state.space, problem, buffer, interval)
                for interval in alternate
            ]
            if state.repacking is not None:
                for reservation in result.reserved[buffer]:
                    state.repacking.add_reservation(reservation)
    state.transaction.commit()
    return result


def _place(
    state: State, coloring: BufferColoring, steps: dict[str, int]
) -> tuple[int, int]:
    """Value and step that a colouring names."""
    problem = state.problem
    step = steps.get(coloring.instruction)
    value = None
    if step is not None:
        if coloring.operand is None:
            value = problem.value_at.get(Position(step, coloring.index))
        elif coloring.operand < len(problem.operands[step]):
            operand = problem.operands[step][coloring.operand]
            value = problem.value_at.get(Position(operand, coloring.index))
            step = state.times.corrected(step)
    if step is None or value is None:
        raise OptionsError(
            f"buffer_colorings names {coloring.instruction!r} {coloring.index}, which "
            f"is no place in the schedule of {problem.name!r}"
        )
    return value, step


def _contiguous_stays(state: State, buffer: int) -> list[Interval]:
    """Stays of the buffer's values that must be in one piece, merged."""
    stays = []
    for item in _allocation_values(state, buffer):
        if item.contiguous:
            end = max((u.corrected for u in item.uses), default=item.position.step)
            stays.append((item.position.step, end))
    return _merged(stays)


def _allocation_values(state: State, buffer: int) -> list[AllocationValue]:
    for member in state.problem.buffers[buffer]:
        interval = state.intervals[member]
        if interval is not None and interval.need_allocation:
            group = colocated(interval, state.intervals)
            return create_allocation_values(group, state.problem, state.times)
    return []


def _intervals(
    places: list[tuple[int, MemorySpace]], space: MemorySpace, stays: list[Interval]
) -> list[Interval]:
    found = []
    for step, wanted in places:
        if wanted is space:
            stay = next(((s, e) for s, e in stays if s <= step <= e), (step, step))
            found.append(stay)
    return _merged(found)


def _merged(intervals: list[Interval]) -> list[Interval]:
    """Sorted, with touching and overlapping ones joined."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _check_apart(
    problem: Problem, buffer: int, alternate: list[Interval], default: list[Interval]
) -> None:
    for one in alternate:
        for other in default:
            if one[0] <= other[1] and other[0] <= one[1]:
                name = problem.describe(
                    problem.values[problem.buffers[buffer][0]].position
                )
                raise OptionsError(
                    f"buffer_colorings wants the buffer of {name} in alternate memory "
                    f"in steps {one} and in default memory in steps {other}"
                )


def _reserve(
    space: FreeSpace, problem: Problem, buffer: int, interval: Interval
) -> Reservation:
    start, end = interval
    size = max(problem.values[m].size for m in problem.buffers[buffer])
    offset = space.find(start, end, size)
    if offset is None:
        name = problem.describe(problem.values[problem.buffers[buffer][0]].position)
        raise CapacityError(
            f"no room for the coloured buffer of {name} in steps {start} to {end}",
            step=start,
            needed=size + space.peak.highest(start, end),
            capacity=space.capacity,
            hint="colour fewer buffers, or raise the capacity",
        )
    chunk = Chunk(offset, size)
    space.commit(start, end, chunk)
    return Reservation(start, end, chunk)
