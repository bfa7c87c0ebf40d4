"""What a place gains by where its accesses go, whatever is waited for.

A program takes no less than its steps do, and no less than default memory is busy:
with slow accesses, and with copies. What a sketch changes in these two bounds its time
before it is tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msa.assignment.allocation import Allocation
from msa.assignment.search.free import FreePlace
from msa.assignment.search.sketches import Sketch, is_fast
from msa.assignment.search.timeline import Timeline


class Gain(NamedTuple):
    """Seconds by which steps get faster, and by which default memory is less busy."""

    seconds: float
    relief: float


class Gains:
    """Gains of one place, which is lifted; all else is as it is in the timeline.

    Made in O(uses), and asked in as many.
    """

    __slots__ = ("_copy", "_made", "_reads")

    def __init__(self, timeline: Timeline, place: FreePlace) -> None:
        sizes: dict[int, float] = {}
        for item in place.uses:
            if not item.default and item.size:
                step = item.use.step
                sizes[step] = sizes.get(step, 0.0) + item.size
        self._reads = {
            step: _gain(timeline, step, size, 0.0) for step, size in sizes.items()
        }
        self._made = Gain(0.0, 0.0)
        if place.definable:
            self._made = _gain(timeline, place.step, 0.0, place.written)
        self._copy = place.size / timeline.rate * timeline.runs[place.step]

    def of(self, sketch: Sketch) -> Gain:
        """What a sketch gains over the plain one."""
        seconds = relief = 0.0
        if sketch.stay is not None:
            seconds, relief = self._made
        for step, gain in self._reads.items():
            if is_fast(sketch, step):
                seconds += gain.seconds
                relief += gain.relief
        copies = len(sketch.fetches) + (sketch.evict is not None)
        return Gain(seconds, relief - copies * self._copy)

    def of_allocations(self, allocations: Iterable[Allocation]) -> float:
        """Seconds by which steps get faster with allocations of the place."""
        fast = [a for a in allocations if a.is_alternate]
        steps = {use.step for a in fast for use in a.uses}
        total = sum(self._reads[step].seconds for step in steps if step in self._reads)
        made = any(not a.is_copy_like for a in fast)
        return total + (self._made.seconds if made else 0.0)


def _gain(timeline: Timeline, step: int, read: float, written: float) -> Gain:
    """Of all runs of a step that moves so many bytes more fast."""
    runs = timeline.runs[step]
    slow, slow_idle = timeline.accesses.cost(step)
    fast, fast_idle = timeline.accesses.cost(step, read, written)
    saved = slow - fast
    return Gain(saved * runs, (saved - slow_idle + fast_idle) * runs)
