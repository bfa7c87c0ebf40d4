"""Finding stretches of the schedule that repeat themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msa.assignment.problem import Problem

_SMALLEST: Final = 4
_LARGEST: Final = 400
#: How far before the expected start a loop may begin.
_SLACK: Final = 10
_IGNORED: Final = frozenset({"get-tuple-element", "parameter", "tuple"})
_NO_DISTANCE: Final = frozenset({*_IGNORED, "constant"})
_NO_FINGERPRINT: Final = frozenset({"conditional", "while"})


@dataclass(frozen=True, slots=True)
class Loop:
    """A repeated stretch.

    Attributes:
        start, end: first and last step.
        size: steps of one iteration.
    """

    start: int
    end: int
    size: int

    @property
    def iterations(self) -> float:
        """How often the stretch repeats, as a real number."""
        return (self.end + 1 - self.start) / self.size


def find_loops(problem: Problem) -> Iterator[Loop]:
    """Repeated stretches, in schedule order.

    O(n * slack) time: every step is looked at a bounded number of times.
    """
    scan = _Scan(problem)
    cursor = 0
    while cursor < problem.end:
        cursor, size = scan.candidate(cursor)
        if size is None:
            return
        start = scan.start_of(cursor, size)
        end = cursor
        if start is not None:
            end = scan.end_of(start, size)
            yield Loop(start, end, size)
        cursor = max(cursor, end) + 1


class _Scan:
    __slots__ = ("_fingerprints", "_latest", "_problem")

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._fingerprints = [
            None if opcode in _NO_FINGERPRINT else problem.fingerprint_of(step)
            for step, opcode in enumerate(problem.opcodes)
        ]
        self._latest: dict[str, int] = {}

    def _counts(self, step: int) -> str | None:
        """The fingerprint of a step that is compared, else None."""
        if self._problem.opcodes[step] in _IGNORED:
            return None
        return self._fingerprints[step]

    def candidate(self, cursor: int) -> tuple[int, int | None]:
        """The next step that repeats an earlier one, and the distance."""
        while cursor < self._problem.end:
            fingerprint = self._counts(cursor)
            if fingerprint is not None:
                before = self._latest.get(fingerprint)
                self._latest[fingerprint] = cursor
                if before is not None and _SMALLEST <= cursor - before <= _LARGEST:
                    return cursor, cursor - before
            cursor += 1
        return cursor, None

    def start_of(self, cursor: int, size: int) -> int | None:
        """The first step near the expected start that the next iteration repeats."""
        for step in range(max(0, cursor - size - _SLACK), cursor - size + 1):
            later = step + size
            if later >= self._problem.end:
                return None
            fingerprint = self._counts(step)
            if (
                fingerprint is not None
                and fingerprint == self._counts(later)
                and self._same_distances(step, later, size)
            ):
                return step
        return None

    def end_of(self, start: int, size: int) -> int:
        """The last step up to which every iteration repeats the one before."""
        problem = self._problem
        end = start
        for step in range(start, problem.end):
            if problem.region_of[step] != problem.region_of[start]:
                break
            if self._fingerprints[step] is None:
                continue
            if step >= start + size and not self._repeats(step, step - size, size):
                break
            end = step
        return end

    def _repeats(self, step: int, before: int, size: int) -> bool:
        problem = self._problem
        if self._fingerprints[before] is None:
            return False
        one, other = problem.opcodes[before], problem.opcodes[step]
        if (one in _IGNORED or other in _IGNORED) and (
            one != other or len(problem.operands[before]) != len(problem.operands[step])
        ):
            return False
        return self._fingerprints[before] == self._fingerprints[
            step
        ] and self._same_distances(before, step, size)

    def _same_distances(self, earlier: int, later: int, size: int) -> bool:
        """Whether both read operands from equally far away (or from outside)."""
        one, other = self._distances(earlier), self._distances(later)
        return len(one) == len(other) and all(
            a == -1 or b == -1 or a == b or a + size == b
            for a, b in zip(one, other, strict=True)
        )

    def _distances(self, step: int) -> list[int]:
        problem = self._problem
        return [
            -1
            if operand < 0 or problem.opcodes[operand] in _NO_DISTANCE
            else step - operand
            for operand in problem.operands[step]
        ]
