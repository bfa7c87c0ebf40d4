"""List scheduling: always run the ready instruction that frees the most.

Source: `xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc` (ListScheduler).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from msa.analysis.schedulers.local_values import LocalValues

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction

_FIRST: Final = (2**63 - 1, 2**63 - 1)
_OUTFEED_FREED: Final = 2**31 - 1
_INFEED_FREED: Final = -(2**31)

Priority = tuple[int, int]


def list_order(
    computation: Computation, values: LocalValues | None = None
) -> list[Instruction]:
    """Order a computation greedily by bytes freed, then by number of users.

    Among equals the instruction that became ready last runs first, which keeps
    chains together. O(n log n + reads).

    Raises:
        ScheduleError: the graph has a cycle (found by the caller's check).
    """
    return _ListScheduler(values or LocalValues(computation)).run()


class _ListScheduler:
    """Ready queue with lazily deleted entries, largest priority first."""

    __slots__ = (
        "_counts",
        "_entry",
        "_fixed",
        "_heap",
        "_remaining",
        "_sequence",
        "_values",
    )

    def __init__(self, values: LocalValues) -> None:
        self._values = values
        self._counts = values.use_counts()
        self._fixed = values.fixed
        # Sum of the numbers of the instructions that still have to read a value:
        # when one reader is left, the sum is that reader.
        self._remaining = [0] * len(values.bytes)
        for i, read in enumerate(values.read):
            for v in read:
                self._remaining[v] += i
        self._heap: list[tuple[int, int, int, int]] = []
        self._entry: dict[int, tuple[Priority, int]] = {}
        self._sequence = 0

    def run(self) -> list[Instruction]:
        instructions = self._values.instructions
        number = self._values.number
        waiting = [
            len(x.operands and set(x.operands)) + len(x.control_predecessors)
            for x in instructions
        ]
        for i, count in enumerate(waiting):
            if not count:
                self._push(i)
        order: list[Instruction] = []
        while self._heap:
            i = self._pop()
            if i < 0:
                continue
            best = instructions[i]
            order.append(best)
            lonely = self._count_down(i)
            for user in (*best._users, *best.control_successors):
                j = number[user]
                waiting[j] -= 1
                if not waiting[j]:
                    self._push(j)
            if lonely:
                self._refresh(best, lonely)
        return order

    def _count_down(self, i: int) -> list[int]:
        """Note that `i` ran; instructions that became the last to read a value."""
        lonely = []
        for v in self._values.read[i]:
            self._counts[v] -= 1
            self._remaining[v] -= i
            if self._counts[v] == 1:
                lonely.append(self._remaining[v])
        return lonely

    def _refresh(self, scheduled: Instruction, lonely: list[int]) -> None:
        """Move ready instructions whose priority changed, in the order of users."""
        ready = [j for j in dict.fromkeys(lonely) if j in self._entry]
        if not ready:
            return
        instructions = self._values.instructions
        if len(ready) > 1:
            place = {operand: k for k, operand in enumerate(scheduled.operands)}
            ready.sort(
                key=lambda j: min(
                    (place[o] for o in instructions[j].operands if o in place),
                    default=len(place),
                )
            )
        for j in ready:
            priority = self._priority(j)
            if priority != self._entry[j][0]:
                self._push(j, priority)

    def _push(self, i: int, priority: Priority | None = None) -> None:
        if priority is None:
            priority = self._priority(i)
        self._sequence += 1
        self._entry[i] = (priority, self._sequence)
        heappush(self._heap, (-priority[0], -priority[1], -self._sequence, i))

    def _pop(self) -> int:
        _, _, sequence, i = heappop(self._heap)
        entry = self._entry.get(i)
        if entry is None or entry[1] != -sequence:
            return -1
        del self._entry[i]
        return i

    def _priority(self, i: int) -> Priority:
        x = self._values.instructions[i]
        if x.shape.is_effective_scalar:
            return _FIRST
        if x.opcode == "outfeed" and x.attributes.get("outfeed_config"):
            return (_OUTFEED_FREED, len(x._users))
        if x.opcode == "infeed" and x.attributes.get("infeed_config"):
            return (_INFEED_FREED, len(x._users))
        counts, fixed, sizes = self._counts, self._fixed, self._values.bytes
        freed = sum(
            sizes[v] for v in self._values.read[i] if counts[v] == 1 and not fixed[v]
        )
        return (freed - self._values.made[i], len(x._users))
