"""Delaying instructions that make more bytes than they release.

Unfused graphs are full of broadcasts, iotas and converts that are ready long before
they are needed. Run right before their first reader they are live for a step only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msa.analysis.schedulers.local_values import NO_STORAGE, LocalValues

if TYPE_CHECKING:
    from msa.hlo.instruction import Instruction


def delay_growth(
    sequence: Sequence[Instruction], values: LocalValues
) -> list[Instruction]:
    """The same order with growing instructions moved to just before their first user.

    An instruction grows when it creates at least as many bytes as it reads, so that
    keeping its operands alive for longer costs no more than it saves. Linear.
    """
    waiting = {x: len(x._users) + len(x.control_successors) for x in sequence}
    done: set[Instruction] = set()
    backwards: list[Instruction] = []
    for last in reversed(sequence):
        if last in done:
            continue
        stack = [last]
        while stack:
            x = stack.pop()
            if x in done:
                continue
            done.add(x)
            backwards.append(x)
            for before in dict.fromkeys(x.operands):
                waiting[before] -= 1
                if not waiting[before] and _grows(before, values):
                    stack.append(before)
            for before in x.control_predecessors:
                waiting[before] -= 1
                if not waiting[before] and _grows(before, values):
                    stack.append(before)
    backwards.reverse()
    return backwards


def _grows(x: Instruction, values: LocalValues) -> bool:
    if x.opcode in NO_STORAGE:
        return False
    i = values.number[x]
    read = sum(values.bytes[v] for v in values.read[i] if not values.fixed[v])
    return values.made[i] >= read
