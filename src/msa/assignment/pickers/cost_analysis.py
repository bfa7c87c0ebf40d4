"""Prefetch by estimated run time.

The elapsed time between two steps is a difference of running sums, scaled down by
the loops that enclose the whole interval. For a fixed end it never grows with the
start, so every search for a start is a bisection, never a walk.

Reference: `CostAnalysisPrefetchIntervalPicker` in
`xla/service/memory_space_assignment/prefetch_interval_picker.cc`, which walks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from msa.assignment.allocation import Use
from msa.assignment.costs import CostModel, single
from msa.assignment.options import CostAnalysisPicker


class CostAnalysisPrefetchIntervalPicker:
    """Overlap as a multiple of the copy's own time.

    Only starts at the same nesting depth as the end are offered, alternating around
    the preferred one: later, earlier, later, …; when only earlier ones are left they
    are thinned to about a hundred.

    Args:
        costs: times of steps and copies.
        ratios: least, preferred and longest overlap.
        capacity: bytes of fast memory (bounds how long a value may stay).
        faithful: leave step 0 out of intervals from the program's start, as XLA does.
    """

    __slots__ = (
        "_changes",
        "_costs",
        "_cumulative",
        "_decreasing",
        "_earliest",
        "_end",
        "_faithful",
        "_flat",
        "_increasing",
        "_latest",
        "_levels",
        "_longest",
        "_min_ratio",
        "_preferred_ratio",
        "_step_levels",
        "_steps_at",
        "_to_increase",
        "_while_levels",
        "retry_number",
    )

    def __init__(
        self,
        costs: CostModel,
        ratios: CostAnalysisPicker,
        capacity: int,
        *,
        faithful: bool = True,
    ) -> None:
        self._costs = costs
        self._faithful = faithful
        self._min_ratio = single(ratios.min_overlap_to_async_copy_ratio)
        self._preferred_ratio = single(ratios.preferred_overlap_to_async_copy_ratio)
        self._longest = single(
            costs.copy_seconds(capacity // 4 * 4)
            * single(ratios.max_overlap_to_mem_size_async_copy_ratio)
        )
        self._while_levels = costs.while_levels
        self._step_levels = costs.nest_levels
        self._flat = max(self._while_levels) == 0
        self._changes = _previous_smaller(self._while_levels)
        self._cumulative: list[float] = self._weighted(costs).tolist()
        self._levels = set(self._step_levels)
        self._steps_at: dict[int, list[int]] = {level: [] for level in self._levels}
        for step, level in enumerate(self._step_levels):
            self._steps_at[level].append(step)
        self.retry_number = 0
        self._end = self._earliest = self._latest = 0
        self._increasing, self._decreasing = 1, -1
        self._to_increase = True

    @staticmethod
    def _weighted(costs: CostModel) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """Running sum of elapsed times, weighted by assumed loop counts."""
        elapsed = np.append(costs.elapsed, np.float32(0))
        opcodes = costs.problem.opcodes
        for step, opcode in enumerate(opcodes):
            if opcode in ("while", "conditional"):
                elapsed[step] = 0
        often = np.asarray(costs.multipliers, np.float32)[costs.while_levels]
        return np.add.accumulate((elapsed * often).astype(np.float32))

    # -- times -----------------------------------------------------------------

    def elapsed(self, start: int, end: int) -> float:
        """Seconds of the steps strictly between `start` and `end` in one loop trip."""
        if start == end:
            return 0.0
        if start < 0:
            if not self._faithful:
                return self._scaled(self._cumulative[end - 1], 0, end)
            start = 0
            if end == 0:
                return 0.0
        cumulative = self._cumulative
        return self._scaled(cumulative[end - 1] - cumulative[start], start, end)

    def _scaled(self, seconds: float, start: int, end: int) -> float:
        if self._flat:
            return single(seconds)
        levels, changes = self._while_levels, self._changes
        least = min(levels[start], levels[end])
        change = changes[end]
        while change >= start:
            least = min(least, levels[change])
            change = changes[change]
        return single(single(seconds) / self._costs.multipliers[least])

    def _last_with(
        self, low: int, high: int, end: int, least: float, gain: float = 0.0
    ) -> int:
        """The last start in `[low, high]` with at least that much time; `low - 1`.

        `gain` is added to the time. Without loops, the running sums nearly tell the
        answer, and few probes confirm it.
        """
        if self._flat and high - low > 8 and low >= 0:
            # Rounding moves the answer of the running sums by little: bracket it.
            sums = self._cumulative
            guess = bisect_right(sums, sums[end - 1] - least + gain) - 1
            guess = min(max(guess, low), high)
            if single(self.elapsed(guess, end) + gain) >= least:
                low = guess + 1
                upper = min(guess + 4, high)
                if single(self.elapsed(upper, end) + gain) < least:
                    high = upper - 1
            else:
                high = guess - 1
                lower = max(guess - 4, low)
                if single(self.elapsed(lower, end) + gain) >= least:
                    low = lower + 1
        while low <= high:
            middle = (low + high) // 2
            if single(self.elapsed(middle, end) + gain) >= least:
                low = middle + 1
            else:
                high = middle - 1
        return high

    def _at_or_before(self, step: int, level: int) -> int:
        """The last step at that depth not after `step`; -1 if none."""
        steps = self._steps_at[level]
        place = bisect_right(steps, step)
        return steps[place - 1] if place else -1

    def _at_or_after(self, step: int, level: int) -> int:
        """The first step at that depth not before `step` (a large number if none)."""
        steps = self._steps_at[level]
        place = bisect_left(steps, step)
        return steps[place] if place < len(steps) else len(self._step_levels)

    # -- bounds ------------------------------------------------------------------

    def can_allocate_no_copy(self, size: int, start: int, end: int) -> bool:
        """Less time than copying the whole fast memory takes, times the ratio."""
        return self._longest > self.elapsed(start, end)

    def preferred_eviction_end(self, size: int, start: int, latest_end: int) -> int:
        """The first end with the preferred overlap; one past the latest if none."""
        least = single(
            single((1 + self.retry_number * 2.0) * self._preferred_ratio)
            * self._costs.copy_seconds(size)
        )
        low, high = start + 1, latest_end
        while low <= high:
            middle = (low + high) // 2
            if self.elapsed(start, middle) >= least:
                high = middle - 1
            else:
                low = middle + 1
        return low

    def latest_prefetch_start(
        self, size: int, start: int, end: int, use: Use | None, read_bytes: float
    ) -> int:
        """The last start with the least overlap; what the user gains counts too."""
        gain = 0.0
        if use is not None:
            costs = self._costs
            gain = single(costs.saved_by_reading(use.step, read_bytes))
        least = single(self._min_ratio * self._costs.copy_seconds(size))
        high = self._last_with(start, end - 1, end, least, gain)
        return max(self._at_or_before(high, self._step_levels[end]), start - 1)

    def preferred_prefetch_start(
        self, size: int, earliest: int, latest: int, end: int
    ) -> int:
        """The start whose overlap is closest to the preferred one.

        `earliest` counts whatever its depth; of equally close starts the first.
        """
        wanted = single(self._preferred_ratio * self._costs.copy_seconds(size))
        level = self._step_levels[end]
        best = earliest
        distance = abs(single(wanted - self.elapsed(earliest, end)))
        enough = self._last_with(earliest + 1, latest, end, wanted)
        candidates = []
        start = self._at_or_before(enough, level)
        if start > earliest:
            # Steps that take no time make several starts equal: take the first.
            seconds = self.elapsed(start, end)
            low, high = earliest + 1, start
            while low < high:
                middle = (low + high) // 2
                if self.elapsed(middle, end) == seconds:
                    high = middle
                else:
                    low = middle + 1
            candidates.append(self._at_or_after(low, level))
        candidates.append(self._at_or_after(max(enough, earliest) + 1, level))
        for start in candidates:
            if start <= latest:
                away = abs(single(wanted - self.elapsed(start, end)))
                if away < distance:
                    best, distance = start, away
        return best

    def latest_prefetch_end(self, original: int, proposed: int) -> int:
        """The last end not after `proposed` at the depth of `original`."""
        return self._at_or_before(proposed, self._step_levels[original])

    def estimated_prefetch_end(self, size: int, start: int, end: int) -> int:
        """The first step by which the copy's time has passed, at most `end`."""
        seconds = self._costs.copy_seconds(size)
        low, high = start + 1, end - 1
        while low <= high:
            middle = (low + high) // 2
            if self.elapsed(start, middle) >= seconds:
                high = middle - 1
            else:
                low = middle + 1
        return min(low, end)

    # -- enumeration -------------------------------------------------------------

    def begin(
        self,
        size: int,
        use: Use,
        read_bytes: float,
        start: int,
        end: int,
        preferred: int | None,
    ) -> None:
        """Bound the starts and stand at the preferred one."""
        self._end = end
        latest = self.latest_prefetch_start(size, start, end, use, read_bytes)
        self._latest = latest
        earliest = self._first_allowed(start, end)
        self._earliest = earliest
        if earliest > latest:
            self._increasing, self._decreasing = earliest, latest
            return
        if preferred is not None and preferred <= latest:
            self._increasing = preferred
        else:
            self._increasing = self.preferred_prefetch_start(
                size, earliest, latest, end
            )
        self._decreasing = self._increasing
        self._to_increase = True
        self.next()

    def _first_allowed(self, start: int, end: int) -> int:
        """The first start from which the value does not stay too long."""
        latest = self._latest
        if start >= latest:
            return start
        low, high = start, latest
        if self._longest >= self.elapsed(start, end):
            high = start
        while low < high:
            middle = (low + high) // 2
            if self._longest < self.elapsed(middle, end):
                low = middle + 1
            else:
                high = middle
        return min(self._at_or_after(low, self._step_levels[end]), latest)

    def next(self) -> int:
        """The next start, alternating between later and earlier ones."""
        level = self._step_levels[self._end]
        if self._to_increase:
            start = self._increasing
            self._increasing = self._at_or_after(start + 1, level)
            if self._increasing > self._latest:
                self._increasing = self._latest + 1
            if self._decreasing >= self._earliest:
                self._to_increase = False
            return start
        start = self._decreasing
        exhausted = self._increasing > self._latest
        below = start - 1
        if exhausted:
            # Only earlier starts are left: thin them out.
            end = self._end
            least = single(
                self.elapsed(start, end)
                + single(self.elapsed(self._earliest, end) / 100)
            )
            below = self._last_with(self._earliest, below, end, least)
        before = self._at_or_before(below, level)
        self._decreasing = before if before >= self._earliest else self._earliest - 1
        if not exhausted:
            self._to_increase = True
        return start

    def done(self) -> bool:
        """Whether no start is left on either side."""
        return self._increasing > self._latest and self._decreasing < self._earliest

    def latest_time(self) -> int:
        """The last start with the least overlap."""
        return self._latest


def _previous_smaller(levels: list[int]) -> list[int]:
    """Per step, the last step before it with a smaller level; -1 if none."""
    found: list[int] = []
    stack: list[int] = []
    for step, level in enumerate(levels):
        while stack and levels[stack[-1]] >= level:
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(step)
    return found
