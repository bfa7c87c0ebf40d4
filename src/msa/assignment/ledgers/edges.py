"""Steps right before or after finished allocations."""

from __future__ import annotations


class Edges:
    """A set of steps from -1 to a last one, with a search downwards.

    >>> edges = Edges(9)
    >>> edges.add(-1); edges.add(4)
    >>> 4 in edges, 5 in edges, edges.below(4), edges.below(9), edges.below(-1)
    (True, False, -1, 4, None)
    """

    __slots__ = ("_marks",)

    def __init__(self, last: int) -> None:
        self._marks = bytearray(last + 2)

    def add(self, step: int) -> None:
        """Add a step."""
        self._marks[step + 1] = 1

    def __contains__(self, step: int) -> bool:
        return bool(self._marks[step + 1])

    def below(self, step: int) -> int | None:
        """The last step of the set before `step`; None if there is none."""
        place = self._marks.rfind(1, 0, step + 1)
        return None if place < 0 else place - 1
