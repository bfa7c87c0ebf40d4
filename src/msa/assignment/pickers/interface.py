"""What the algorithm asks a picker.

Starts are exclusive ("after step t"), ends are exclusive ("before step t"); sizes are
bytes of the value that is copied.

Reference: `xla/service/memory_space_assignment/prefetch_interval_picker.h`.
"""

from __future__ import annotations

from typing import Protocol

from msa.assignment.allocation import Use


class PrefetchIntervalPicker(Protocol):
    """Chooses and enumerates prefetch starts, and bounds stays in fast memory.

    Attributes:
        retry_number: which attempt at the current buffers this is, from 0.
    """

    retry_number: int

    def can_allocate_no_copy(self, size: int, start: int, end: int) -> bool:
        """Whether a value may stay in fast memory from `start` to `end`."""
        ...

    def preferred_eviction_end(self, size: int, start: int, latest_end: int) -> int:
        """When an eviction that starts after `start` should have landed."""
        ...

    def latest_prefetch_start(
        self, size: int, start: int, end: int, use: Use | None, read_bytes: float
    ) -> int:
        """The last start from which a prefetch lands before `end`; `start - 1` if none."""
        ...

    def preferred_prefetch_start(
        self, size: int, earliest: int, latest: int, end: int
    ) -> int:
        """The best start in `[earliest, latest]`."""
        ...

    def latest_prefetch_end(self, original: int, proposed: int) -> int:
        """The last end not after `proposed` that is as good as `original`."""
        ...

    def estimated_prefetch_end(self, size: int, start: int, end: int) -> int:
        """When a prefetch that starts after `start` will have landed."""
        ...

    def elapsed(self, start: int, end: int) -> float:
        """Seconds that the steps strictly between `start` and `end` take."""
        ...

    def begin(
        self,
        size: int,
        use: Use,
        read_bytes: float,
        start: int,
        end: int,
        preferred: int | None,
    ) -> None:
        """Enumerate starts in `[start, end)` for a prefetch that `use` reads."""
        ...

    def next(self) -> int:
        """The next start."""
        ...

    def done(self) -> bool:
        """Whether no start is left."""
        ...

    def latest_time(self) -> int:
        """The last start that could be given."""
        ...
