"""Sketches that are worth a try for one value, given the timeline as it is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msa.assignment.problem import Problem
from msa.assignment.search.free import FreePlace
from msa.assignment.search.sketches import Fetch, Sketch, first_in_default
from msa.assignment.search.timeline import Timeline

_LEADS: Final = (1.0, 2.5, 8.0)
"""How much idle bandwidth a copy is given, as a multiple of what it takes."""

_CLUSTERS: Final = 4
"""Groups of uses that are looked at by themselves."""


class Proposer:
    """Makes sketches for values."""

    __slots__ = ("_problem", "_rate", "_steps", "_timeline")

    def __init__(self, problem: Problem, timeline: Timeline) -> None:
        self._problem = problem
        self._timeline = timeline
        machine = problem.machine
        self._rate = machine.default_bandwidth * machine.copy_scaling
        self._steps: list[list[int]] = [[] for _ in problem.regions]
        for step, region in enumerate(problem.region_of):
            self._steps[region].append(step)

    def sketches(
        self, place: FreePlace, around: tuple[int, int] | None = None
    ) -> Iterator[Sketch]:
        """Sketches, the plain one first; each is consistent, whether it fits or not.

        With `around`, there are some that leave alternate memory in those steps.
        """
        yield Sketch()
        steps = sorted(
            {
                item.use.step
                for item in place.uses
                if not item.default and not item.trivial
            }
        )
        seen = {Sketch()}
        for sketch in self._all(place, steps, around):
            if sketch not in seen:
                seen.add(sketch)
                yield sketch

    def _all(
        self, place: FreePlace, steps: list[int], around: tuple[int, int] | None
    ) -> Iterator[Sketch]:
        if around is not None:
            yield from self._split(place, steps, around)
        cuts = self._cuts(place, steps)
        if place.definable:
            yield from self._stays(place, steps, cuts)
        yield from self._fetched(place, steps, cuts)

    def _cuts(self, place: FreePlace, steps: list[int]) -> list[int]:
        """Numbers of uses before which the value is left alone longest, ascending."""
        elapsed = self._timeline.elapsed
        before = [place.step, *steps]
        gaps = sorted(
            range(1, len(steps)),
            key=lambda i: (elapsed[before[i] + 1] - elapsed[steps[i]], i),
        )
        return sorted(gaps[: _CLUSTERS - 1])

    def _stays(
        self, place: FreePlace, steps: list[int], cuts: list[int]
    ) -> Iterator[Sketch]:
        """Defined in alternate memory, for all uses, or the first few, or none."""
        for count in (len(steps), *reversed(cuts), 0):
            stay = steps[count - 1] if count else place.step
            plain = Sketch(stay)
            first = first_in_default(place, plain)
            if first is None:
                yield plain
                continue
            for done in self._landings(place, first):
                yield Sketch(stay, done)
            rest = steps[count:]
            if not rest:
                continue
            bound = [item.use.step for item in place.uses if item.default]
            done = self._landing(place, 1.0, min([rest[0], *bound]))
            for lead in _LEADS[:2]:
                start = self.start(place, rest[0], lead, max(stay, done))
                if start is not None:
                    yield Sketch(stay, done, (Fetch(start, rest[0], rest[-1]),))

    def _fetched(
        self, place: FreePlace, steps: list[int], cuts: list[int]
    ) -> Iterator[Sketch]:
        """Fetched once, for all uses from one on; or for some in between."""
        if not steps:
            return
        bounds = [0, *cuts, len(steps)]
        spans = {(0, len(steps)): None}
        for first in bounds[:-1]:
            spans[first, len(steps)] = None
        for first, last in pairwise(bounds):
            spans[first, last] = None
        if len(steps) > 1:
            spans[1, len(steps)] = None
        for first, last in spans:
            for lead in (*_LEADS, None):
                start = self.start(place, steps[first], lead, place.step)
                if start is not None:
                    yield Sketch(fetches=(Fetch(start, steps[first], steps[last - 1]),))
        if cuts:
            fetches: list[Fetch] = []
            for first, last in pairwise(bounds):
                earliest = fetches[-1].last if fetches else place.step
                start = self.start(place, steps[first], 1.0, earliest)
                if start is not None:
                    fetches.append(Fetch(start, steps[first], steps[last - 1]))
            if len(fetches) > 1:
                yield Sketch(fetches=tuple(fetches))

    def _split(
        self, place: FreePlace, steps: list[int], around: tuple[int, int]
    ) -> Iterator[Sketch]:
        """In alternate memory before some steps, or after, or both."""
        before = steps[: bisect_left(steps, around[0])]
        after = steps[bisect_right(steps, around[1]) :]
        heads: list[tuple[Fetch, ...]] = [()]
        if before:
            start = self.start(place, before[0], 1.0, place.step)
            if start is not None:
                heads.append((Fetch(start, before[0], before[-1]),))
        bound = [item.use.step for item in place.uses if item.default]
        for head in heads:
            if not after:
                if head:
                    yield Sketch(fetches=head)
                continue
            low = max(around[1], place.step)
            for lead in _LEADS[:2]:
                start = self.start(place, after[0], lead, low)
                if start is not None:
                    yield Sketch(fetches=(*head, Fetch(start, after[0], after[-1])))
        if place.definable and place.step < around[0]:
            stay = before[-1] if before else place.step
            rest = [s for s in steps if s > stay]
            done = self._landing(place, 1.0, min([*rest[:1], *bound, around[0]]))
            start = self.start(place, after[0], 1.0, max(stay, done)) if after else None
            if done > place.step:
                yield Sketch(stay, done)
                if start is not None:
                    yield Sketch(stay, done, (Fetch(start, after[0], after[-1]),))

    # -- times -----------------------------------------------------------------------

    def start(
        self, place: FreePlace, first: int, lead: float | None, earliest: int
    ) -> int | None:
        """Step after which a fetch starts to have `lead` times its time; None: none.

        Without a lead it is as early as can be.
        """
        steps = self._steps[place.region]
        low = bisect_left(steps, earliest)
        high = bisect_left(steps, first) - 1
        if high < low:
            return None
        if lead is None:
            return steps[low]
        idle = self._timeline.idle
        wanted = idle[first] - lead * place.size / self._rate
        boundary = bisect_right(idle, wanted, 0, first + 1) - 1
        number = bisect_right(steps, boundary - 1) - 1
        return steps[min(max(number, low), high)]

    def _landing(self, place: FreePlace, lead: float, latest: int) -> int:
        """Step before which an eviction ends that is given `lead` times its time."""
        steps = self._steps[place.region]
        idle = self._timeline.idle
        wanted = idle[place.step + 1] + lead * place.size / self._rate
        boundary = bisect_left(idle, wanted, place.step + 1, len(idle) - 1)
        number = bisect_left(steps, max(boundary, place.step + 1))
        return min(steps[min(number, len(steps) - 1)], latest)

    def _landings(self, place: FreePlace, latest: int) -> list[int]:
        found = [self._landing(place, lead, latest) for lead in _LEADS]
        return [d for d in dict.fromkeys((*found, latest)) if d > place.step]
