"""Finding room for a sliced buffer: which slice goes where, and arrives when.

Reference: `SlicedAllocationFinder` of
`xla/service/heap_simulator/heap_simulator.cc`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from msa.heap.chunk import Chunk, align_up
from msa.heap.free_space import Gap
from msa.heap.slice_permutations import Permutation

#: Part of a root: start, end, and the first slice time since which it is free.
_Piece = tuple[int, int, int]


class _Root:
    """A free range of the last slice time, cut by how early its parts are free."""

    __slots__ = ("end", "pieces", "start")

    def __init__(self, start: int, end: int, last: int) -> None:
        self.start, self.end = start, end
        self.pieces: list[_Piece] = [(start, end, last)]

    def refine(self, gaps: Sequence[Gap], starts: Sequence[int], time: int) -> None:
        """Mark what is free at `time` already, of what is free right after it."""
        refined: list[_Piece] = []
        for start, end, earliest in self.pieces:
            if earliest != time + 1:
                refined.append((start, end, earliest))
                continue
            at = start
            index = max(0, bisect_right(starts, start) - 1)
            while index < len(gaps) and gaps[index][0] < end:
                low, high = max(gaps[index][0], start), min(gaps[index][1], end)
                if low < high:
                    if at < low:
                        refined.append((at, low, earliest))
                    refined.append((low, high, time))
                    at = high
                index += 1
            if at < end:
                refined.append((at, end, earliest))
        self.pieces = refined

    def fits(self, permutation: Permutation, sizes: Sequence[int], offset: int) -> bool:
        """Whether the slices, upward from `offset`, find their space free in time."""
        index = 0
        at = offset
        for size, time in zip(sizes, permutation, strict=True):
            end = at + size
            while self.pieces[index][1] <= at:
                index += 1
            while True:
                if self.pieces[index][2] > time:
                    return False
                if self.pieces[index][1] >= end:
                    break
                index += 1
            at = end
        return True


class SlicedAllocationFinder:
    """Looks for an offset and a permutation of slice times.

    Args:
        free_gaps: per slice time, the free ranges `(start, end)` from then to the
            next slice time (for the last, to the end of the buffer, colocations
            considered). The last should hold an unbounded range.
        sizes: bytes of the slices by offset.
        max_colocation_size: bytes to keep free from the offset on at the last slice
            time; at least the sum of sizes (-1 means just that).
        preferred_offset: tried first if not negative.
        alignment: of the offset (bytes).
        permutations: in order of preference; iterated again and again.
        is_offset_allowed: an extra condition on the offset.

    A search costs O(candidate offsets * permutations * pieces); without the extra
    condition only offsets at which a slice starts with a free piece are candidates,
    with it every aligned one.

    >>> finder = SlicedAllocationFinder(
    ...     [[(4, 8), (20, 99)], [(0, 8), (20, 99)]], [4, 4], permutations=[(0, 1), (1, 0)]
    ... )
    >>> [str(chunk) for chunk in finder.find()]
    ['[4,8)', '[0,4)', '[8,8)']
    """

    __slots__ = (
        "_alignment",
        "_allowed",
        "_permutations",
        "_preferred",
        "_room",
        "_roots",
        "_sizes",
    )

    def __init__(
        self,
        free_gaps: Sequence[Sequence[Gap]],
        sizes: Sequence[int],
        *,
        max_colocation_size: int = -1,
        preferred_offset: int = -1,
        alignment: int = 1,
        permutations: Iterable[Permutation],
        is_offset_allowed: Callable[[int], bool] | None = None,
    ) -> None:
        self._sizes = tuple(sizes)
        self._room = max(max_colocation_size, sum(sizes))
        self._preferred = preferred_offset
        self._alignment = alignment
        self._permutations = permutations
        self._allowed = is_offset_allowed
        last = len(free_gaps) - 1
        ordered = [sorted(gap for gap in gaps if gap[0] < gap[1]) for gaps in free_gaps]
        self._roots = [_Root(start, end, last) for start, end in ordered[last]]
        for time in range(last - 1, -1, -1):
            starts = [gap[0] for gap in ordered[time]]
            for root in self._roots:
                root.refine(ordered[time], starts, time)

    def find(self) -> list[Chunk]:
        """The chunks by slice time, and a trailing one up to the room asked for.

        The preferred offset first, then free ranges by (size, offset), the smallest
        first. Empty if nothing fits.
        """
        if self._preferred >= 0:
            chunks = self.find_for_offset(self._preferred)
            if chunks:
                return chunks
        for root in sorted(self._roots, key=lambda r: (r.end - r.start, r.start)):
            for offset in self._offsets(root):
                chunks = self._try(root, offset)
                if chunks:
                    return chunks
        return []

    def find_for_offset(self, offset: int) -> list[Chunk]:
        """The same at a given offset; empty if it does not fit there."""
        index = bisect_right([root.start for root in self._roots], offset) - 1
        if index < 0 or offset % self._alignment:
            return []
        return self._try(self._roots[index], offset)

    def _offsets(self, root: _Root) -> Iterator[int]:
        """Candidate offsets in the root, ascending."""
        step = self._alignment
        first = align_up(root.start, step)
        last = root.end - self._room
        if len(root.pieces) == 1:
            return iter([first] if first <= last else [])
        if self._allowed is not None:
            return iter(range(first, last + 1, step))
        # Whether a permutation fits changes from no to yes only where the lower end
        # of a slice passes the lower end of a piece.
        below = 0
        found = {first}
        for size in self._sizes:
            for start, _, _ in root.pieces:
                found.add(max(first, align_up(start - below, step)))
            below += size
        return iter(sorted(offset for offset in found if offset <= last))

    def _try(self, root: _Root, offset: int) -> list[Chunk]:
        if offset < root.start or offset + self._room > root.end:
            return []
        if self._allowed is not None and not self._allowed(offset):
            return []
        for permutation in self._permutations:
            if root.fits(permutation, self._sizes, offset):
                return self._chunks(permutation, offset)
        return []

    def _chunks(self, permutation: Permutation, offset: int) -> list[Chunk]:
        chunks = [Chunk(0, 0)] * len(self._sizes)
        at = offset
        for size, time in zip(self._sizes, permutation, strict=True):
            chunks[time] = Chunk(at, size)
            at += size
        return [*chunks, Chunk.from_end(at, offset + self._room)]
