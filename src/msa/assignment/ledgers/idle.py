"""Seconds in which steps leave the default memory's bandwidth unused.

A copy makes progress only when the running instruction does not itself wait for
default memory. What is placed in alternate memory no longer does, so idle time grows
as decisions are made.
"""

from __future__ import annotations

import numpy as np

from msa.assignment.costs import CostModel

_BLOCK = 128


class IdleBandwidth:
    """Idle seconds per step, with sums over ranges of steps.

    Sums are weighted by assumed loop counts, relative to the outermost step of the
    range. Updates are O(1), sums O(block + number of blocks).

    Args:
        costs: of the steps.
        expected_share: how much of everything will be in alternate memory; 0 counts
            only what is already decided.
    """

    __slots__ = ("_blocks", "_costs", "_fast", "_idle", "_weights")

    def __init__(self, costs: CostModel, expected_share: float = 0.0) -> None:
        self._costs = costs
        count = len(costs.compute)
        self._fast: dict[int, tuple[float, float]] = {}
        weights = np.asarray(costs.multipliers, np.float64)[costs.while_levels[:-1]]
        idle = np.maximum(costs.elapsed.astype(np.float64) - costs.memory, 0.0)
        if expected_share:
            fast = costs.total_bytes.astype(np.float64)
            fast /= costs.problem.machine.alternate_read_bandwidth
            best = np.maximum(costs.compute.astype(np.float64), fast)
            idle += expected_share * (best - idle)
        for step in costs.problem.called:
            if costs.problem.opcodes[step] in ("while", "conditional"):
                idle[step] = 0.0
        padded = np.zeros(-(-count // _BLOCK) * _BLOCK)
        padded[:count] = idle * weights
        self._weights: list[float] = weights.tolist()
        self._idle: list[float] = padded.tolist()
        self._blocks: list[float] = padded.reshape(-1, _BLOCK).sum(axis=1).tolist()

    def place(self, step: int, read: float, written: float) -> None:
        """`read` and `written` more bytes of the step are in alternate memory."""
        if read == 0.0 and written == 0.0:
            return
        before = self._fast.get(step, (0.0, 0.0))
        fast = (before[0] + read, before[1] + written)
        self._fast[step] = fast
        idle = self._costs.idle_seconds(step, *fast) * self._weights[step]
        self._blocks[step // _BLOCK] += idle - self._idle[step]
        self._idle[step] = idle

    def between(self, start: int, end: int) -> float:
        """Idle seconds of the steps strictly between, in one trip of their loop."""
        first, last = start + 1, end
        if first >= last:
            return 0.0
        low, high = first // _BLOCK, (last - 1) // _BLOCK
        idle = self._idle
        if low == high:
            total = sum(idle[first:last])
        else:
            total = (
                sum(idle[first : (low + 1) * _BLOCK])
                + sum(idle[high * _BLOCK : last])
                + sum(self._blocks[low + 1 : high])
            )
        levels = self._costs.while_levels
        least = min(levels[max(start, 0)], levels[end])
        return total / self._costs.multipliers[least]
