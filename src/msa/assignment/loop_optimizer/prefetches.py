"""Starts of prefetches within the loop, so that idle memory time carries them.

Prefetches are taken in the reverse order of their first use. Going back from the use,
idle times are added up until they cover the copy; the search may go back into the
iteration before. A prefetch that started exactly where the search passes may be forced
to start an iteration's end earlier, so that copies keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msa.assignment.loop_optimizer.heap import EvenOdd
from msa.assignment.loop_optimizer.values import LoopValue

if TYPE_CHECKING:
    from msa.assignment.loop_optimizer.optimize import LoopOptimizer


@dataclass(slots=True)
class _Scheduled:
    """A prefetch that is decided: indices within the loop."""

    value: LoopValue
    start_after: int
    begin: int  # first index at which its room is held; may be negative
    done_before: int
    end: int
    at: EvenOdd


def allocate_prefetches(optimizer: LoopOptimizer, values: list[LoopValue]) -> None:
    """Decide for all prefetched values together."""
    values = sorted(
        values, key=lambda v: (v.uses[0][0], v.uses[0][1].operand), reverse=True
    )
    extra: dict[int, float] = {}
    for value in values:
        for index, size in optimizer.read_bytes(value).items():
            extra[index] = extra.get(index, 0.0) + size
    search = _Search(optimizer, optimizer.idle_seconds(extra))
    for value in values:
        search.place(value)
    for scheduled in search.scheduled:
        optimizer.copy(
            scheduled.value,
            scheduled.start_after,
            scheduled.done_before,
            scheduled.end,
        )
        for _, use in scheduled.value.uses:
            optimizer.read_fast(use)


class _Search:
    __slots__ = ("_heap", "_idle", "_optimizer", "_size", "scheduled")

    def __init__(self, optimizer: LoopOptimizer, idle: list[float]) -> None:
        self._optimizer = optimizer
        self._heap = optimizer.heap
        self._idle = idle
        self._size = optimizer.loop.size
        self.scheduled: list[_Scheduled] = []

    def place(self, value: LoopValue) -> bool:
        """Find a start for the value and keep it; False if there is none."""
        first = value.uses[0][0]
        last = value.last_use
        if value.next_uses:
            last = value.next_uses[-1][0] + self._size
        if self._heap.find(first, last, value.size) is None:
            return False
        copy = self._optimizer.copy_seconds(value)
        removed: list[_Scheduled] = []
        start, committed = self._search(value, first, last, copy, removed)
        # What was looked at but is not needed goes back to where it was.
        for other in removed[committed:]:
            self._restore(other)
        if start is None:
            return False
        self._consume(first, start, copy)
        index = (start + self._size) % self._size
        for other in removed[:committed]:
            self._force(other, index)
        at = self._heap.allocate(start, last, value.size)
        if at is None:
            return False
        before = (index - 1 + self._size) % self._size
        self.scheduled.append(_Scheduled(value, before, start, first, last, at))
        return True

    def _search(
        self,
        value: LoopValue,
        first: int,
        last: int,
        copy: float,
        removed: list[_Scheduled],
    ) -> tuple[int | None, int]:
        """The start (maybe negative), and how many others are forced for it."""
        options = self._optimizer.options
        start: int | None = None
        committed = 0
        gathered = 0.0
        for current in range(first - 1, last - self._size - 1, -1):
            index = (current + self._size) % self._size
            if current < 0:
                removed += self._take_starting_at(index)
            if not self._fits(value, current, last, removed, index):
                break
            idle = self._idle[index]
            if idle >= copy - gathered:
                return current, len(removed)
            if start is None and gathered + idle >= copy * options.desired_copy_ratio:
                start, committed = current, len(removed)
            elif (
                options.allow_unsatisfied_fully_pipelined_prefetch
                and index == last % self._size
            ):
                return current, len(removed)
            gathered += idle
        return start, committed

    def _take_starting_at(self, index: int) -> list[_Scheduled]:
        """Take out prefetches that start exactly there and do not roll around."""
        taken: list[_Scheduled] = []
        for other in self.scheduled:
            rolls = other.done_before <= other.start_after + 1 or (
                other.start_after == self._size - 1 and other.done_before == 0
            )
            if (other.start_after + 1) % self._size != index or rolls:
                if taken:
                    break
                continue
            self._heap.release(other.begin, other.end, other.value.size, other.at)
            taken.append(other)
        self.scheduled = [s for s in self.scheduled if s not in taken]
        return taken

    def _fits(
        self,
        value: LoopValue,
        current: int,
        last: int,
        removed: list[_Scheduled],
        index: int,
    ) -> bool:
        """Whether the forced ones and the value fit, from the index on."""
        held: list[tuple[int, int, int, EvenOdd]] = []
        fits = True
        rows = [(index, other.end, other.value.size) for other in removed]
        for begin, end, size in [*rows, (current, last, value.size)]:
            at = self._heap.allocate(begin, end, size)
            if at is None:
                fits = False
                break
            held.append((begin, end, size, at))
        for begin, end, size, at in reversed(held):
            self._heap.release(begin, end, size, at)
        return fits

    def _consume(self, first: int, start: int, copy: float) -> None:
        """The copy uses up idle time, going back from its use."""
        left = copy
        for current in range(first - 1, start - 1, -1):
            index = (current + self._size) % self._size
            used = min(left, self._idle[index])
            self._idle[index] -= used
            left -= used
            if left <= 0:
                break

    def _restore(self, other: _Scheduled) -> None:
        at = self._heap.allocate(other.begin, other.end, other.value.size, other.at)
        if at is not None:
            self.scheduled.append(other)

    def _force(self, other: _Scheduled, index: int) -> None:
        """Start an already decided prefetch at the index."""
        at = self._heap.allocate(index, other.end, other.value.size)
        if at is None:
            self._restore(other)
            return
        before = (index - 1 + self._size) % self._size
        self.scheduled.append(
            _Scheduled(other.value, before, index, other.done_before, other.end, at)
        )
