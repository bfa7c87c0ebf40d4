"""Orders that come from graph walks: depth first, breadth first, post order.

Source: `xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msa.analysis.schedulers.local_values import NO_STORAGE, LocalValues

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction


def dfs_order(
    computation: Computation, values: LocalValues | None = None
) -> list[Instruction]:
    """Depth first from the root; wide and large subgraphs before small ones.

    Children with more extra users below them come first, then those with more
    bytes below them, then by name. O(n log d) for operand counts d.
    """
    values = values or LocalValues(computation)
    instructions = values.instructions
    extra_users = [0] * len(instructions)
    total_sizes = [0] * len(instructions)
    cumulative = 0
    for x in computation.post_order():
        if x.opcode in NO_STORAGE:
            continue
        i = values.number[x]
        own = values.made[i]
        users, size = max(0, len(x._users) - 1), own
        for operand in dict.fromkeys(x.operands):
            j = values.number[operand]
            users += extra_users[j]
            size += total_sizes[j]
        cumulative += own
        # Shared subgraphs are counted once per path: bound what cannot be exceeded.
        total_sizes[i] = min(size, cumulative)
        extra_users[i] = min(users, len(instructions))

    def key(x: Instruction) -> tuple[int, int, str]:
        i = values.number[x]
        return (-extra_users[i], -total_sizes[i], x.name)

    return computation.accept_order(key)


def bfs_order(
    computation: Computation, values: LocalValues | None = None
) -> list[Instruction]:
    """First ready, first run: whole waves of equal depth. Linear."""
    waiting = {
        x: len(dict.fromkeys(x.operands)) + len(x.control_predecessors)
        for x in computation.instructions
    }
    queue = deque(x for x in computation.instructions if not waiting[x])
    order: list[Instruction] = []
    while queue:
        x = queue.popleft()
        order.append(x)
        for user in (*x._users, *x.control_successors):
            waiting[user] -= 1
            if not waiting[user]:
                queue.append(user)
    return order


def post_order(
    computation: Computation, values: LocalValues | None = None
) -> list[Instruction]:
    """Operands before users, from instructions without users. Linear."""
    return computation.post_order()


def trivial_order(
    computation: Computation, values: LocalValues | None = None
) -> list[Instruction]:
    """The plain depth-first visiting order. Linear."""
    return computation.accept_order()
