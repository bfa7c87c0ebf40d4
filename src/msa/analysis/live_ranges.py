"""Live ranges of values in the flattened schedule.

Ranges are inclusive `[start, end]`, as XLA states them; `TimeBound.half_open` gives
the half-open interval that the rest of this library uses.

Source: `xla/hlo/utils/hlo_live_range.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msa.analysis.alias import AliasAnalysis
from msa.analysis.async_chains import chain_done
from msa.analysis.flatten import FlattenedSchedule
from msa.analysis.values import Position, Value
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import UNBOUNDED, Shape


@dataclass(frozen=True, slots=True)
class TimeBound:
    """When a value is live.

    Attributes:
        start, end: first and last step, inclusive.
        end_position: the last position at which the value appears.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.analysis import LiveRanges
    >>> live = LiveRanges.run(module)
    >>> [live.range_of(v).half_open for v in live.alias.dataflow.values]
    [(0, 4), (1, 3), (2, 4)]
    """

    start: int
    end: int
    end_position: Position

    @property
    def half_open(self) -> tuple[int, int]:
        """`[start, end + 1)`."""
        return self.start, self.end + 1


class LiveRanges:
    """Live ranges of all values whose definition is scheduled.

    Attributes:
        module: the module.
        schedule: the time axis.
        alias: values and buffers.
        ranges: value id to its range.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY main {
    ...   a = f32[4] parameter(0)
    ...   b = f32[4] negate(a)
    ...   ROOT c = f32[4] exponential(b)
    ... }''')
    >>> live = LiveRanges.run(module)
    >>> [(r.start, r.end) for r in live.ranges.values()]
    [(0, 3), (1, 2), (2, 3)]
    """

    __slots__ = ("alias", "module", "module_scoped", "ranges", "schedule")

    def __init__(
        self,
        alias: AliasAnalysis,
        schedule: FlattenedSchedule,
        ranges: dict[int, TimeBound],
        module_scoped: bool,
    ) -> None:
        self.module: Module = alias.module
        self.alias = alias
        self.schedule = schedule
        self.ranges = ranges
        self.module_scoped = module_scoped

    @classmethod
    def run(
        cls,
        module: Module,
        *,
        alias: AliasAnalysis | None = None,
        schedule: FlattenedSchedule | None = None,
        module_scoped: bool = True,
        normalise: bool = True,
    ) -> LiveRanges:
        """Compute the ranges; near linear in positions and uses.

        Args:
            module: a scheduled module.
            alias: its alias analysis.
            schedule: its time axis.
            module_scoped: called computations are part of the axis.
            normalise: chain the ranges of values that share storage, so that they
                touch but do not overlap.

        Raises:
            ScheduleError: the module has no schedule.
        """
        flat = schedule or FlattenedSchedule.run(module, module_scoped=module_scoped)
        aliases = alias or AliasAnalysis.run(module)
        ranges = _Measure(aliases, flat, module_scoped).ranges()
        if normalise:
            _chain_buffers(aliases, ranges)
        return cls(aliases, flat, ranges, module_scoped)

    @property
    def end(self) -> int:
        """One past the last step."""
        return self.schedule.end

    def range_of(self, value: Value) -> TimeBound | None:
        """The range of a value, None if its definition is not scheduled."""
        return self.ranges.get(value.id)

    def peak_moment(self) -> int:
        """The earliest step at which most bytes count as live; 0 without values.

        A value counts with the whole result of its instruction, and ranges that
        follow one another count together at the seam, as XLA reports it. -1 when a
        size is unbounded. `memory_report` has the exact peak.
        """
        dataflow = self.alias.dataflow
        delta = np.zeros(2 * (self.end + 3), np.int64)
        for value in dataflow.values:
            bound = self.ranges.get(value.id)
            if bound is None:
                continue
            size = whole_size(value.instruction.shape)
            if size < 0:
                return -1
            delta[2 * bound.start] += size
            delta[2 * (bound.end + 1) + 1] -= size
        live = np.cumsum(delta)
        # At a step, starts (even places) come before ends (odd places).
        return int(np.argmax(live)) // 2 if live.max(initial=0) > 0 else 0

    def to_text(self) -> str:
        """The schedule, all ranges and what is live at the peak."""
        from msa.analysis.live_range_text import live_range_text

        return live_range_text(self)


def whole_size(shape: Shape) -> int:
    """Bytes of a result, -1 if a dimension is unbounded."""
    if any(UNBOUNDED in node.as_array.dimensions for _, node in shape.nodes()):
        return -1
    return shape.byte_size()


class _Measure:
    """Measures ranges of single values."""

    __slots__ = ("_alias", "_flat", "_read_only", "_scoped", "_time")

    def __init__(
        self, alias: AliasAnalysis, flat: FlattenedSchedule, module_scoped: bool
    ) -> None:
        self._alias = alias
        self._flat = flat
        self._scoped = module_scoped
        self._time: list[int] = flat.time.tolist()
        self._read_only = alias.module.read_only_inputs()

    def ranges(self) -> dict[int, TimeBound]:
        ranges = {}
        for value in self._alias.dataflow.values:
            if self._time[value.positions[0][0].id] >= 0:
                ranges[value.id] = self._range(value)
        return ranges

    def _range(self, value: Value) -> TimeBound:
        definition = value.positions[0]
        instruction = definition[0]
        computation = instruction.computation
        start = self._time[instruction.id]
        if instruction.opcode == "parameter":
            start = self._flat.spans[computation][0]
            if definition in self._read_only:
                return TimeBound(start, self._flat.end, definition)
        end, where = self._definition_end(instruction), definition
        for position in value.positions[1:]:
            time = self._position_end(position[0])
            if time > end:
                end, where = time, position
        for use in value.uses:
            end = max(end, self._use_time(use[0]))
        return TimeBound(start, end, where)

    def _definition_end(self, instruction: Instruction) -> int:
        end = self._position_end(instruction)
        context = self._flat.async_context.get(instruction.computation)
        if context is None:
            return end
        start = self._alias.dataflow.call_graph.parent_call(context)
        done = None if start is None else chain_done(start)
        return end if done is None else max(end, self._time[done.id])

    def _position_end(self, instruction: Instruction) -> int:
        time = self._time[instruction.id]
        if time >= 0 and instruction.computation.root is instruction:
            return self._flat.spans[instruction.computation][1]
        return time

    def _use_time(self, user: Instruction) -> int:
        if self._scoped:
            if user.opcode == "call":
                return -1
            if user.opcode == "while":
                # The loop takes its state over when the body starts.
                return self._time[user.while_body.parameters[0].id]
        return self._time[user.id]


def _chain_buffers(alias: AliasAnalysis, ranges: dict[int, TimeBound]) -> None:
    """Cut the ranges of values that share storage where the next one begins.

    The last one gets the latest end of all; ranges touch at the seams.
    """
    for buffer in alias.buffers:
        if len(buffer.values) < 2:
            continue
        members = [
            (bound.start, bound.end, value.id)
            for value in buffer.values
            if (bound := ranges.get(value.id)) is not None
        ]
        members.sort()
        for i in range(len(members) - 1):
            start, end, value = members[i]
            after, after_end, after_value = members[i + 1]
            members[i + 1] = (after, max(end, after_end), after_value)
            members[i] = (start, min(end, after), value)
        for start, end, value in members:
            ranges[value] = TimeBound(start, end, ranges[value].end_position)
