"""What the tensors of one iteration are."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from msa.assignment.allocation import Allocation, Position, Use
from msa.assignment.loop_optimizer.detect import Loop
from msa.assignment.problem import Problem


class ValueType(Enum):
    """What could be done with a tensor of the loop."""

    TEMPORARY = "defined and read within an iteration"
    LOOP_CARRIED = "read by the next iteration after it is defined again"
    PINNED = "read by every iteration"
    PREFETCH = "read by one iteration"
    UNSUPPORTED = "anything else"


@dataclass(slots=True, eq=False)
class LoopValue:
    """A buffer that an iteration touches. Indices count from its first step.

    Attributes:
        buffer: number of the buffer; `value`: its first value.
        size: bytes.
        positions, uses: `(index, place)` in the iteration.
        next_uses: `(index, use)` in the next iteration.
        header: where it is defined before the loop, or None.
        kind: what it is.
        savings: bytes of default-memory traffic saved in alternate memory.
        allocations: what is decided; times are indices of the iteration.
    """

    buffer: int
    value: int
    size: int
    value_count: int
    positions: list[tuple[int, Position]] = field(default_factory=list)
    previous_positions: list[tuple[int, Position]] = field(default_factory=list)
    uses: list[tuple[int, Use]] = field(default_factory=list)
    next_uses: list[tuple[int, Use]] = field(default_factory=list)
    header: Position | None = None
    has_footer: bool = False
    kind: ValueType = ValueType.UNSUPPORTED
    savings: float = 0.0
    allocations: list[Allocation] = field(default_factory=list)

    @property
    def savings_per_byte(self) -> float:
        """What a byte of alternate memory saves."""
        return self.savings / self.size if self.size else 0.0

    @property
    def last_use(self) -> int:
        """Index of the last read, those of the next iteration counted on."""
        return self.uses[-1][0] if self.uses else -1


def loop_values(problem: Problem, loop: Loop) -> list[LoopValue]:
    """Values of the second iteration, in the order in which it touches them."""
    first = loop.start + loop.size
    buffers: dict[int, None] = {}
    at_step = _values_at(problem, first, first + loop.size)
    for step in range(first, first + loop.size):
        for number in at_step.get(step, ()):
            buffers.setdefault(problem.values[number].buffer)
    found = []
    for buffer in buffers:
        value = _describe(problem, loop, buffer)
        if (value.positions or value.uses) and not value.previous_positions:
            found.append(value)
    return found


def _values_at(problem: Problem, start: int, end: int) -> dict[int, list[int]]:
    """Array values defined at or read by each step of the range."""
    at_step: dict[int, list[int]] = {}
    for value in problem.values:
        if value.is_tuple:
            continue
        for position in value.positions:
            if start <= position.step < end:
                at_step.setdefault(position.step, []).append(value.id)
        for use in value.uses:
            if start <= use.step < end:
                at_step.setdefault(use.step, []).append(value.id)
    return at_step


def _describe(problem: Problem, loop: Loop, buffer: int) -> LoopValue:
    members = [problem.values[m] for m in problem.buffers[buffer]]
    found = LoopValue(buffer, members[0].id, max(m.size for m in members), len(members))
    home = problem.region_of[loop.start]
    first, size = loop.start + loop.size, loop.size
    moved = 0.0
    for value in members:
        sizes = value.position_bytes or (0.0,) * len(value.positions)
        for position, written in zip(value.positions, sizes, strict=True):
            index = position.step - first
            if problem.opcodes[position.step] == "get-tuple-element":
                continue
            if 0 <= index < size:
                found.positions.append((index, position))
                moved += written
            elif -size <= index < 0:
                found.previous_positions.append((index + size, position))
                moved += written
            elif (
                not found.positions
                and not found.previous_positions
                and found.header is None
                and problem.region_of[position.step] == home
            ):
                found.header = position
    for value in members:
        sizes = value.use_bytes or (0.0,) * len(value.uses)
        for use, read in zip(value.uses, sizes, strict=True):
            index = use.step - first
            if problem.opcodes[use.step] == "get-tuple-element":
                continue
            if 0 <= index < size:
                found.uses.append((index, use))
                moved += read
            elif size <= index < 2 * size:
                found.next_uses.append((index - size, use))
                moved += read
            elif found.positions or found.uses:
                found.has_footer = True
    found.positions.sort(key=lambda row: row[0])
    found.uses.sort(key=lambda row: row[0])
    found.next_uses.sort(key=lambda row: row[0])
    found.kind = _kind(found)
    found.savings = (
        moved
        - found.size * (found.header is not None)
        - found.size * bool(found.positions and found.has_footer)
    )
    return found


def _kind(value: LoopValue) -> ValueType:
    uses, later = value.uses, value.next_uses
    if value.positions:
        if not later:
            return ValueType.TEMPORARY if uses else ValueType.UNSUPPORTED
        if later[-1][0] >= value.positions[0][0]:
            return ValueType.LOOP_CARRIED
        return ValueType.TEMPORARY
    if value.header is not None and uses:
        if len(uses) == len(later) and uses[0][0] == later[0][0]:
            return ValueType.PINNED
        if not later or later[-1][0] < uses[0][0]:
            return ValueType.PREFETCH
    return ValueType.UNSUPPORTED
