"""Prefetch by counts of instructions, for tests and for targets without costs."""

from __future__ import annotations

from msa.assignment.allocation import Use


class InstructionCountPrefetchIntervalPicker:
    """Overlap of at least `min_overlap` and at most `max_overlap` instructions.

    Starts come earliest first. Reference: the class of that name in
    `xla/service/memory_space_assignment/prefetch_interval_picker.cc`.

    >>> picker = InstructionCountPrefetchIntervalPicker(2, 10)
    >>> picker.begin(24, Use(9, 0), 24.0, 0, 9, None)
    >>> starts = []
    >>> while not picker.done(): starts.append(picker.next())
    >>> starts
    [0, 1, 2, 3, 4, 5, 6]
    """

    __slots__ = ("_current", "_end", "max_overlap", "min_overlap", "retry_number")

    def __init__(self, min_overlap: int, max_overlap: int) -> None:
        self.min_overlap = min_overlap
        self.max_overlap = max_overlap
        self.retry_number = 0
        self._current = 0
        self._end = 0

    def can_allocate_no_copy(self, size: int, start: int, end: int) -> bool:
        """At most `max_overlap` instructions."""
        return end - start <= self.max_overlap

    def preferred_eviction_end(self, size: int, start: int, latest_end: int) -> int:
        """`min_overlap` instructions after the start."""
        return min(start + self.min_overlap, latest_end)

    def latest_prefetch_start(
        self, size: int, start: int, end: int, use: Use | None, read_bytes: float
    ) -> int:
        """`min_overlap` instructions before the end."""
        return end - self.min_overlap

    def preferred_prefetch_start(
        self, size: int, earliest: int, latest: int, end: int
    ) -> int:
        """`max_overlap` instructions before the end."""
        return max(earliest, end - self.max_overlap)

    def latest_prefetch_end(self, original: int, proposed: int) -> int:
        """Any end is as good as any other."""
        return proposed

    def estimated_prefetch_end(self, size: int, start: int, end: int) -> int:
        """Always `end`: there is no notion of time."""
        return end

    def elapsed(self, start: int, end: int) -> float:
        """One second per instruction."""
        return float(end - start - 1)

    def begin(
        self,
        size: int,
        use: Use,
        read_bytes: float,
        start: int,
        end: int,
        preferred: int | None,
    ) -> None:
        """Start from `preferred`, or as early as `max_overlap` allows."""
        self._end = end
        self._current = (
            self.preferred_prefetch_start(size, start, end, end)
            if preferred is None
            else preferred
        )

    def next(self) -> int:
        """The next later start."""
        self._current += 1
        return self._current - 1

    def done(self) -> bool:
        """Whether less than the least overlap is left."""
        return self._end - self._current <= self.min_overlap

    def latest_time(self) -> int:
        """The last start with enough overlap."""
        return self._end - self.min_overlap - 1

    def to_debug_string(self) -> str:
        """How many instructions the current start overlaps."""
        return f"Overlapped HLOs = {self._end - self._current}"
