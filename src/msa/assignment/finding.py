"""What keeps one use out of fast memory on one way: reason, figures, competitors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from msa.assignment.reason import Reason

Way = Literal["", "stay", "copy", "evict"]


@dataclass(frozen=True, slots=True)
class Competitor:
    """What has the room or the bandwidth that a value would need.

    Attributes:
        what: `room` or `bandwidth`.
        name: `name{index}` of the value, or `scratch of name`.
        bytes: its size.
        start, end: inclusive steps in which it is there, or is copied.

    >>> Competitor("room", "a{}", 4096, 2, 7).name
    'a{}'
    """

    what: Literal["room", "bandwidth"]
    name: str
    bytes: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What stands in the way of one use of a value, in the finished plan.

    Attributes:
        reason: what it is.
        way: how the value would come to be in fast memory: it is defined there and
            would `stay`, it is brought by a `copy`, or it stays and must then be
            copied out (`evict`); empty where no way is looked at.
        start, end: inclusive steps of which the reason speaks.
        sentence: the reason with its figures.
        details: further lines.
        competitors: what took the room or the bandwidth, largest first.
        change: what would have to change; may be empty.
        seconds: what fast memory would save there in one run of the program.

    >>> Finding(Reason.NO_GAIN, "", 2, 7, "it would gain nothing").reason.value
    'no_gain'
    """

    reason: Reason
    way: Way
    start: int
    end: int
    sentence: str
    details: tuple[str, ...] = ()
    competitors: tuple[Competitor, ...] = ()
    change: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The details, and then what would have to change."""
        return [*self.details, *([self.change] if self.change else ())]
