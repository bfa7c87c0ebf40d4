"""When memory was freed: times that a counter gives, each later than the last."""

from __future__ import annotations

from typing import Protocol

from msa.runtime.arguments import whole
from msa.runtime.status import InvalidArgument


class TimingCounter(Protocol):
    """Gives each timestamped free its time."""

    def next(self) -> int:
        """A number larger than all before, and than 0."""
        ...


def next_time(counter: TimingCounter, last: int) -> int:
    """The counter's next time.

    Raises:
        InvalidArgument: it is not later than `last`.

    >>> class Counter:
    ...     def next(self): return 7
    >>> next_time(Counter(), 6)
    7
    """
    time = whole(counter.next(), "deallocate", "the time of a free", least=1)
    if time <= last:
        raise InvalidArgument(
            f"the counter gave the time {time} after {last}",
            where="deallocate",
            hint="each free needs a later time than the one before",
        )
    return time
