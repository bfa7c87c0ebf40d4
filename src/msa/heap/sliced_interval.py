"""A buffer that becomes live in slices: parts of it arrive one after another.

Reference: `SlicedBufferInterval` of `xla/service/heap_simulator/heap_simulator.h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msa.errors import PackingError
from msa.heap.buffer_interval import BufferInterval


@dataclass(frozen=True, slots=True)
class SlicedBufferInterval:
    """An interval with slice sizes by offset and start times by *slice time*.

    Slice time `k` is the k-th start in time order. At first it is unknown which
    slice (by offset) arrives at which slice time; the sliced finder decides that.

    Attributes:
        full: the whole buffer, from the first start.
        sizes: bytes of each slice by offset; their sum is the size of the buffer.
        starts: inclusive start of each slice time, ascending.

    >>> whole = BufferInterval(0, 20, 100, 200, colocations=(1,))
    >>> sliced = SlicedBufferInterval.of(whole).with_slices([4, 5, 5, 6])
    >>> sliced = sliced.with_inclusive_start_times([100, 125, 150, 175])
    >>> [(i.size, i.start, i.end, i.colocations) for i in sliced.search_intervals()]
    [(4, 100, 124, ()), (4, 125, 149, ()), (4, 150, 174, ()), (20, 175, 200, (1,))]
    """

    full: BufferInterval
    sizes: tuple[int, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, interval: BufferInterval) -> SlicedBufferInterval:
        """The interval as one slice."""
        return cls(interval, (interval.size,), (interval.start,))

    @property
    def num_slices(self) -> int:
        """The number of slices, at least 1."""
        return len(self.sizes)

    def with_slices(self, sizes: Sequence[int]) -> SlicedBufferInterval:
        """Cut into slices, given by offset; none means one slice.

        Raises:
            PackingError: the sizes do not sum to the size of the buffer.
        """
        sizes = tuple(sizes) or (self.full.size,)
        if sum(sizes) != self.full.size or min(sizes) <= 0:
            raise PackingError(
                f"slices {sizes} are no cut of a buffer of {self.full.size} B"
            )
        return replace(self, sizes=sizes, starts=(self.full.start,) * len(sizes))

    def with_inclusive_start_times(self, starts: Sequence[int]) -> SlicedBufferInterval:
        """Set the first time of each slice time; the buffer starts with the first.

        Raises:
            PackingError: not one time per slice, or not ascending.
        """
        if len(starts) != len(self.sizes) or list(starts) != sorted(starts):
            raise PackingError(
                f"{starts} are no start times of {len(self.sizes)} slices"
            )
        full = replace(self.full, start=starts[0])
        return replace(self, full=full, starts=tuple(starts))

    def with_exclusive_start_times(self, starts: Sequence[int]) -> SlicedBufferInterval:
        """The same for times after which the slices start."""
        return self.with_inclusive_start_times([start + 1 for start in starts])

    def with_end_time(self, end: int) -> SlicedBufferInterval:
        """Set the last time of the buffer."""
        return replace(self, full=replace(self.full, end=end))

    def search_intervals(self) -> list[BufferInterval]:
        """For each slice time, the interval whose free space is looked for.

        All but the last are as small as the smallest slice, and end before the next
        slice time; the last is the whole buffer with its colocations.
        """
        full, smallest = self.full, min(self.sizes)
        intervals = [
            replace(full, size=smallest, start=start, end=following - 1, colocations=())
            for start, following in zip(self.starts, self.starts[1:], strict=False)
        ]
        return [*intervals, replace(full, start=self.starts[-1])]
