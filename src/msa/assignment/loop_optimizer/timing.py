"""The time of one iteration when the loop has settled."""

from __future__ import annotations

from collections.abc import Sequence

from msa.assignment.allocation import CopyAllocation

_ITERATIONS = 3


def execution_seconds(
    size: int,
    elapsed: Sequence[float],
    idle: Sequence[float],
    copies: Sequence[tuple[float, CopyAllocation]],
) -> float:
    """Seconds of the third of three iterations, waits for copies included.

    Args:
        size: instructions of an iteration.
        elapsed, idle: per index, seconds of the instruction, and in which copies move.
        copies: seconds of each copy, and when it starts and has to be done.
    """
    rows = sorted(
        copies, key=lambda row: (row[1].start_after, _effective_done(row[1], size))
    )
    count = len(rows)
    # How many copies have to have landed before an index, counted from the first of
    # the iteration's own (negative: those of iterations before).
    required: dict[int, int] = {}
    for order, (_, copy) in enumerate(rows):
        index = copy.done_before % size
        needed = order + 1 - _lead(copy, size) * count
        required[index] = max(required.get(index, needed), needed)
    starts: dict[int, list[float]] = {}
    for seconds, copy in rows:
        starts.setdefault(copy.start_after, []).append(seconds)

    queue: list[float] = []  # seconds left of each copy that was started
    landed = 0
    total = 0.0
    for iteration in range(_ITERATIONS):
        total = 0.0
        for index in range(size):
            needed = required[index] + iteration * count if index in required else 0
            while landed < min(needed, len(queue)):
                total += queue[landed]
                queue[landed] = 0.0
                landed += 1
            total += elapsed[index]
            landed = _spend(queue, landed, idle[index])
            queue += starts.get(index, ())
    return total


def _lead(copy: CopyAllocation, size: int) -> int:
    """How many iterations before its use the copy was started."""
    if copy.start_after == size - 1 and copy.done_before == 0:
        return 2
    return 1 if copy.start_after + 1 >= copy.done_before else 0


def _effective_done(copy: CopyAllocation, size: int) -> int:
    lead = _lead(copy, size)
    return 2 * size if lead == 2 else copy.done_before + lead * size


def _spend(queue: list[float], landed: int, seconds: float) -> int:
    """Let outstanding copies use idle time in order; how many have landed."""
    while landed < len(queue) and seconds > 0:
        used = min(queue[landed], seconds)
        queue[landed] -= used
        seconds -= used
        if queue[landed] > 0:
            break
        landed += 1
    return landed
