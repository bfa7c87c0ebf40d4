"""Assigning buffers one by one: parameters, constants, outputs, reuse.

Source: `xla/service/buffer_assignment.cc` (AssignBuffersForComputations,
AssignSingleHloBuffer, MaybeAssignBuffer).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedList

from msa.analysis.buffer_assignment.allocation import BufferAllocation
from msa.analysis.buffer_assignment.interference import Interference
from msa.analysis.buffer_assignment.options import BufferAssignmentOptions

if TYPE_CHECKING:
    from msa.analysis.live_ranges import LiveRanges
    from msa.analysis.operand_sharing import OperandSharing
    from msa.analysis.values import HloBuffer, Value
    from msa.hlo.computation import Computation


class Occupancy:
    """When reusable allocations are in use.

    Ranges are inclusive. Per allocation the ranges of its values are kept in order,
    and merged to the pieces that arrays hold for one sweep over all allocations.

    Invariant: pieces of an allocation are disjoint and do not touch.
    """

    __slots__ = ("_free", "_pieces", "_ranges", "_rows", "_used")

    def __init__(self) -> None:
        self._rows = np.zeros((3, 64), dtype=np.int64)
        self._used = 0
        self._free: list[int] = []
        # Per allocation: (start, end, value id) and (start, end, row), sorted.
        self._ranges: dict[int, SortedList[tuple[int, int, int]]] = {}
        self._pieces: dict[int, SortedList[tuple[int, int, int]]] = {}

    def add(self, allocation: int, value: int, start: int, end: int) -> None:
        """Note that a value with an inclusive range lives in an allocation."""
        ranges = self._ranges.get(allocation)
        if ranges is None:
            ranges = self._ranges[allocation] = SortedList()
            self._pieces[allocation] = SortedList()
        ranges.add((start, end, value))
        pieces = self._pieces[allocation]
        at = pieces.bisect_left((start,))
        if at and pieces[at - 1][1] >= start:
            at -= 1
        while at < len(pieces) and pieces[at][0] <= end:
            first, last, row = pieces.pop(at)
            start, end = min(start, first), max(end, last)
            self._rows[:, row] = 0, _NEVER, -1
            self._free.append(row)
        pieces.add((start, end, self._row(allocation, start, end)))

    def _row(self, allocation: int, start: int, end: int) -> int:
        if not self._free:
            if self._used == self._rows.shape[1]:
                more = np.zeros_like(self._rows)
                self._rows = np.concatenate([self._rows, more], axis=1)
            self._free.append(self._used)
            self._used += 1
        row = self._free.pop()
        self._rows[:, row] = allocation, start, end
        return row

    def blocked(
        self, ranges: Sequence[tuple[int, int]], limit: int
    ) -> NDArray[np.bool_]:
        """Per allocation number, whether it is surely in use during a range.

        Ranges that only touch are left to an exact test. O(pieces) per range.
        """
        allocation, starts, ends = self._rows[:, : self._used]
        hit = np.zeros(self._used, dtype=bool)
        for start, end in ranges:
            hit |= (starts < end) & (ends > start)
        blocked = np.zeros(limit, dtype=bool)
        blocked[allocation[hit]] = True
        return blocked

    def meeting(self, allocation: int, start: int, end: int) -> list[int]:
        """Ids of the values in an allocation that share a step with a range."""
        ranges = self._ranges.get(allocation)
        if ranges is None:
            return []
        found = []
        at = ranges.bisect_left((end + 1,))
        while at:
            at -= 1
            first, last, value = ranges[at]
            if last >= start:
                found.append(value)
            elif first < start - 1:
                # Values of an allocation overlap by one step at most.
                break
        return found


_NEVER: Final = 2**62


class Strategy(Enum):
    """How temporaries come to use the storage of outputs and donated arguments."""

    STANDARD = "whole allocations, buffer by buffer"
    HOSTS_FIRST = "as standard, then any part that is free"
    CLASSES_FIRST = "results in place of operands first, then any part that is free"


class Assigner:
    """The ledger of one assignment under way.

    Attributes:
        strategy: how temporaries use storage that waits.
        allocations: in order of creation.
        home: value id to its allocation.
        delayed: buffers that are left to the packing of temporaries.
    """

    def __init__(
        self,
        live: LiveRanges,
        sharing: OperandSharing,
        options: BufferAssignmentOptions,
        strategy: Strategy = Strategy.STANDARD,
    ) -> None:
        self.strategy = strategy
        self.live = live
        self.alias = live.alias
        self.sharing = sharing
        self.options = options
        self.interference = Interference(live, sharing)
        self.allocations: list[BufferAllocation] = []
        self.home: dict[int, BufferAllocation] = {}
        self.delayed: list[HloBuffer] = []
        self._reusable: list[int] = []
        self._occupancy = Occupancy()
        module = live.module
        self._aliased = module.tied_inputs
        self._live_out = {buffer.id for buffer in self.alias.live_out_buffers}
        self._entry = module.entry
        self._sizes: dict[int, int] = {}

    # -- facts ---------------------------------------------------------------

    def size_of(self, buffer: HloBuffer) -> int:
        """Bytes of the largest value of a buffer."""
        size = self._sizes.get(buffer.id)
        if size is None:
            size = max(map(self.options.size_of, buffer.values))
            self._sizes[buffer.id] = size
        return size

    def color_of(self, buffer: HloBuffer) -> int:
        """Memory space of a buffer: that of its first value."""
        return self.options.color_of(buffer.values[0])

    def lives_out(self, buffer: HloBuffer) -> bool:
        """Whether the buffer occurs at the entry root."""
        return buffer.id in self._live_out

    # -- assigning -----------------------------------------------------------

    def new_allocation(self, size: int, color: int) -> BufferAllocation:
        """Append an empty allocation."""
        allocation = BufferAllocation(len(self.allocations), size, color)
        self.allocations.append(allocation)
        return allocation

    def put(self, allocation: BufferAllocation, buffer: HloBuffer, offset: int) -> None:
        """Assign all values of a buffer to one offset."""
        size = self.options.size_of
        for value in buffer.values:
            allocation.assign(value.id, offset, size(value))
            self.home[value.id] = allocation
            bound = self.live.range_of(value)
            if allocation.is_reusable and bound is not None:
                self._occupancy.add(allocation.index, value.id, bound.start, bound.end)
        if self.lives_out(buffer):
            allocation.maybe_live_out = True

    def assign_presets(self) -> None:
        """Place the values of an earlier plan."""
        presets = self.options.presets
        if presets is None:
            return
        stores: dict[int, BufferAllocation] = {}
        for color, size in presets.sizes.items():
            stores[color] = self.new_allocation(size, color)
            stores[color].preset = True
        for position, (offset, _) in presets.chunks.items():
            buffer = self.alias.unique_buffer_at(*position)
            if buffer.values[0].id not in self.home:
                self.put(stores[self.color_of(buffer)], buffer, offset)

    def assign_all(
        self, computations: Sequence[Computation], *, thread_local: bool
    ) -> None:
        """Assign every buffer that starts in one of the computations.

        O(buffers x (values in reusable allocations)) in numpy operations.
        """
        wanted = set(computations)
        chosen = [
            buffer
            for buffer in self.alias.buffers
            if buffer.values[0].instruction.computation in wanted
            and buffer.values[0].id not in self.home
        ]
        for buffer in self._ordered(chosen, computations):
            self._assign(buffer, thread_local)

    def _ordered(
        self, buffers: list[HloBuffer], computations: Sequence[Computation]
    ) -> list[HloBuffer]:
        place: dict[object, int] = {}
        for computation in reversed(computations):
            for x in computation.post_order():
                place[x] = len(place)

        def position(buffer: HloBuffer) -> int:
            return min(place.get(v.instruction, len(place)) for v in buffer.values)

        def start(buffer: HloBuffer) -> int:
            bounds = (self.live.range_of(v) for v in buffer.values)
            return min((b.start for b in bounds if b is not None), default=0)

        def key(buffer: HloBuffer) -> tuple[int, ...]:
            size, out = -self.size_of(buffer), not self.lives_out(buffer)
            order = self.options.buffer_order
            if order == "topological":
                return (position(buffer), size, out, buffer.id)
            if order == "live_range_start":
                return (start(buffer), size, out, buffer.id)
            return (size, out, position(buffer), buffer.id)

        return sorted(buffers, key=key)

    def _assign(self, buffer: HloBuffer, thread_local: bool) -> None:
        options = self.options
        color, size = self.color_of(buffer), self.size_of(buffer)
        for value in buffer.values:
            if options.view_color is not None and (
                options.color_of(value) == options.view_color
            ):
                return
            x = value.instruction
            if x.opcode == "constant":
                if options.allocate_constants:
                    allocation = self.new_allocation(size, color)
                    allocation.is_constant = True
                    self.put(allocation, buffer, 0)
                return
            if x.opcode == "parameter" and x.computation is self._entry:
                self._assign_parameter(buffer, value, size, color)
                return
        tuple_shaped = any(v.shape.is_tuple for v in buffer.values)
        if thread_local or (tuple_shaped and self.strategy is Strategy.STANDARD):
            allocation = self.new_allocation(size, color)
            allocation.is_thread_local = thread_local
            allocation.is_tuple = tuple_shaped and not thread_local
            self.put(allocation, buffer, 0)
            return
        out = self.lives_out(buffer)
        alone = not out and self.strategy is Strategy.CLASSES_FIRST
        if not alone and not tuple_shaped and self._reuse(buffer):
            return
        if not out:
            self.delayed.append(buffer)
            return
        allocation = self.new_allocation(size, color)
        allocation.is_tuple = tuple_shaped
        self.put(allocation, buffer, 0)
        if not tuple_shaped:
            self._reusable.append(allocation.index)

    def _assign_parameter(
        self, buffer: HloBuffer, value: Value, size: int, color: int
    ) -> None:
        parameter = (value.instruction.parameter_number, value.index)
        allocation = self.new_allocation(size, color)
        allocation.parameter = parameter
        allocation.aliased_with_output = parameter in self._aliased
        self.put(allocation, buffer, 0)
        if allocation.aliased_with_output and not value.shape.is_tuple:
            self._reusable.append(allocation.index)

    # -- reuse ---------------------------------------------------------------

    def _reuse(self, buffer: HloBuffer) -> bool:
        """Put a buffer into storage that exists, operands' storage first."""
        if not self._reusable:
            return False
        bounds = [self.live.range_of(v) for v in buffer.values]
        ranges = [(b.start, b.end) for b in bounds if b is not None]
        blocked = self._occupancy.blocked(ranges, len(self.allocations))
        tried: set[int] = set()
        for value in buffer.values:
            if value.index or value.shape.is_tuple:
                continue
            for operand in value.instruction.operands:
                for source in self.alias.dataflow.values_at(operand, ()):
                    home = self.home.get(source.id)
                    if home is None or home.index in tried or blocked[home.index]:
                        continue
                    tried.add(home.index)
                    if self._maybe_assign(home, buffer):
                        return True
        for number in reversed(self._reusable):
            if (
                not blocked[number]
                and number not in tried
                and self._maybe_assign(self.allocations[number], buffer)
            ):
                return True
        return False

    def _maybe_assign(self, allocation: BufferAllocation, buffer: HloBuffer) -> bool:
        options = self.options
        color, out = self.color_of(buffer), self.lives_out(buffer)
        size = self.size_of(buffer)
        if size > allocation.size or not allocation.is_reusable:
            return False
        if allocation.is_readonly or not options.usable(color, allocation.color):
            return False
        if allocation.is_input_or_output and color != allocation.color:
            return False
        if out and size != allocation.size:
            return False
        if options.must_not_live_out is not None:
            hidden = options.must_not_live_out
            if allocation.maybe_live_out and any(map(hidden, buffer.values)):
                return False
            if out and any(
                hidden(self.alias.dataflow.value(v)) for v in allocation.assigned
            ):
                return False
        if self._conflicts(allocation, buffer):
            return False
        self.put(allocation, buffer, 0)
        return True

    def _conflicts(self, allocation: BufferAllocation, buffer: HloBuffer) -> bool:
        dataflow = self.alias.dataflow
        for value in buffer.values:
            bound = self.live.range_of(value)
            if bound is not None and any(
                self.interference.between(dataflow.value(number), value)
                for number in self._occupancy.meeting(
                    allocation.index, bound.start, bound.end
                )
            ):
                return True
            x = value.instruction
            if x.opcode == "copy" and any(
                v.id in allocation.assigned
                for v in dataflow.flattened_values(x.operands[0])
            ):
                return True
        return False
