"""Which slice of a sliced buffer may arrive when.

A permutation maps the slices by offset (lowest first) to slice times. Two are
equivalent if every slice gets an equal start time; only the first is produced.

Reference: `SliceTimePermutationIterator` of
`xla/service/heap_simulator/heap_simulator.h`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from msa.errors import OptionsError, shown

#: `all` permutations in lexicographic order, or the `preferred` ones: early slices
#: low, early slices high, early slices in the middle.
PermutationKind = Literal["all", "preferred"]

Permutation = tuple[int, ...]


def checked_kind(kind: PermutationKind) -> PermutationKind:
    """The kind, if there is such a one.

    Raises:
        OptionsError: there is not.

    >>> checked_kind("all")
    'all'
    """
    if not isinstance(kind, str) or kind not in ("all", "preferred"):
        raise OptionsError(
            f"unknown permutations {shown(kind)}", hint="'all' or 'preferred'"
        )
    return kind


@dataclass(frozen=True, slots=True, order=True)
class AllocatedSlice:
    """A slice with its place: bytes, offset, inclusive start time.

    >>> AllocatedSlice(size=64, offset=128, inclusive_start_time=3).offset
    128
    """

    size: int
    offset: int
    inclusive_start_time: int


@dataclass(frozen=True, slots=True)
class SlicePermutations:
    """The permutations of a sliced buffer; may be iterated any number of times.

    Attributes:
        kind: which are produced.
        starts: start times by slice time, ascending.
        sizes: by offset, if the slices exist already (repacking); then a permutation
            must keep the multiset of (size, start time).
        times: by offset, the slice times that the slices had; for repacking.

    >>> [p for p in SlicePermutations.new("preferred", [12, 40, 450])]
    [(0, 1, 2), (2, 1, 0), (1, 0, 2)]
    """

    kind: PermutationKind
    starts: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    times: tuple[int, ...] = ()

    @classmethod
    def new(
        cls, kind: PermutationKind, start_times: Sequence[int]
    ) -> SlicePermutations:
        """For a buffer to be sliced; inclusive start times in any order."""
        return cls(kind, tuple(sorted(start_times)))

    @classmethod
    def repack(
        cls, kind: PermutationKind, slices: Sequence[AllocatedSlice] | None
    ) -> SlicePermutations:
        """For slices that exist; None stands for an unsliced buffer."""
        if not slices:
            return cls(kind, (0,))
        by_offset = sorted(slices, key=lambda s: s.offset)
        order = sorted(
            range(len(by_offset)),
            key=lambda i: (by_offset[i].inclusive_start_time, by_offset[i].offset),
        )
        times = [0] * len(order)
        for time, index in enumerate(order):
            times[index] = time
        return cls(
            kind,
            tuple(sorted(s.inclusive_start_time for s in by_offset)),
            tuple(s.size for s in by_offset),
            tuple(times),
        )

    def __iter__(self) -> Iterator[Permutation]:
        """The valid permutations, the first of each equivalence class."""
        seen = set()
        original = Counter(
            (size, self.starts[time])
            for size, time in zip(self.sizes, self.times, strict=True)
        )
        for permutation in self._candidates():
            starts = tuple(self.starts[time] for time in permutation)
            if starts in seen:
                continue
            seen.add(starts)
            if original and Counter(zip(self.sizes, starts, strict=True)) != original:
                continue
            yield permutation

    def _candidates(self) -> Iterable[Permutation]:
        if self.kind == "all":
            return permutations(range(len(self.starts)))
        movable = [
            index
            for index in range(len(self.starts))
            if not self.sizes or self.sizes[index] == self.sizes[0]
        ]
        times = sorted(self.times[index] if self.times else index for index in movable)
        result = []
        for shape in _shapes(times):
            permutation = list(self.times) or [0] * len(self.starts)
            for index, time in zip(movable, shape, strict=True):
                permutation[index] = time
            result.append(tuple(permutation))
        return result


def _shapes(times: list[int]) -> list[list[int]]:
    """Ascending, descending, and from the middle outwards."""
    shapes = [times]
    if len(times) >= 2:
        shapes.append(times[::-1])
    if len(times) >= 3:
        shapes.append(times[1::2][::-1] + times[::2])
    return shapes
