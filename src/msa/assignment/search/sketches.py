"""What may become of one value: where it is defined, when it leaves and comes back.

A sketch says so in steps; `allocations_of` makes allocations of it, without offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msa.assignment.allocation import (
    Allocation,
    CopyAllocation,
    MemorySpace,
    PinnedAllocation,
)
from msa.assignment.search.free import FreePlace


class Fetch(NamedTuple):
    """A prefetch: started after a step, landed before `first`, read up to `last`."""

    start_after: int
    first: int
    last: int


class Sketch(NamedTuple):
    """Where a value is.

    Attributes:
        stay: it is defined in alternate memory and read there up to this step; None: it
            is defined in default memory.
        evict: step before which its eviction has landed; None: it is not evicted.
        fetches: by step.
    """

    stay: int | None = None
    evict: int | None = None
    fetches: tuple[Fetch, ...] = ()


class Wish(NamedTuple):
    """A sketch that has no room in one piece.

    Attributes:
        gain: seconds that accesses gain, stalls not counted.
        place, sketch: what should become of which value.
    """

    gain: float
    place: FreePlace
    sketch: Sketch


def first_in_default(place: FreePlace, sketch: Sketch) -> int | None:
    """First step that needs the value in default memory; None: none does."""
    if sketch.fetches:
        first = sketch.fetches[0].start_after
        return min([first, *_read_in_default(place, sketch)])
    return min(_read_in_default(place, sketch), default=None)


def _read_in_default(place: FreePlace, sketch: Sketch) -> list[int]:
    return [
        item.use.step
        for item in place.uses
        if not item.trivial or item.default
        if item.default or not is_fast(sketch, item.use.step)
    ]


def is_fast(sketch: Sketch, step: int) -> bool:
    """Whether a read at a step may be served from alternate memory."""
    if sketch.stay is not None and step <= sketch.stay:
        return True
    return any(fetch.first <= step <= fetch.last for fetch in sketch.fetches)


def allocations_of(place: FreePlace, sketch: Sketch) -> list[Allocation]:
    """Allocations, sources first, in alternate memory without chunks."""
    last = max((item.use.step for item in place.uses), default=place.step)
    pinned = PinnedAllocation(
        value=place.value,
        position=place.position,
        space=MemorySpace.DEFAULT,
        chunk=None,
        start=place.step,
        end=last,
    )
    made: list[Allocation] = [pinned]
    source: Allocation | None = pinned
    if sketch.stay is not None:
        pinned.space = MemorySpace.ALTERNATE
        pinned.end = max(sketch.stay, place.step)
        source = None
        if sketch.evict is not None:
            pinned.end = max(pinned.end, sketch.evict - 1)
            source = _copy(pinned, place.step, sketch.evict, last)
            made.append(source)
    for fetch in sketch.fetches:
        assert source is not None
        copy = _copy(source, fetch.start_after, fetch.first, fetch.last)
        made.append(copy)
    _serve(place, made, source, sketch)
    return made


def _copy(
    source: Allocation, start_after: int, done_before: int, end: int
) -> CopyAllocation:
    return CopyAllocation(
        value=source.value,
        position=source.position,
        space=source.space.other,
        chunk=None,
        start=start_after + 1,
        end=max(end, done_before),
        source=source,
        start_after=start_after,
        done_before=done_before,
    )


def _serve(
    place: FreePlace,
    made: Sequence[Allocation],
    source: Allocation | None,
    sketch: Sketch,
) -> None:
    """Let each use read the one that is there: alternate memory where it may."""
    for item in place.uses:
        step = item.use.step
        chosen = source
        if not item.default:
            for allocation in made:
                if (
                    allocation.is_alternate
                    and allocation.available <= step <= allocation.end
                    and is_fast(sketch, step)
                ):
                    chosen = allocation
                    break
        if chosen is None or chosen.available > step:
            chosen = made[0]  # a name that nobody reads from then on
        chosen.uses.append(item.use)
