"""Which instructions of a computation nothing needs."""

from __future__ import annotations

from collections.abc import Callable

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction


def dead_instructions(
    computation: Computation, is_removable: Callable[[Instruction], bool]
) -> list[Instruction]:
    """Instructions that only dead ones read, readers before what they read. Linear.

    Args:
        computation: not changed; its root is never dead.
        is_removable: whether an instruction may go if nothing reads it.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[4]{0} parameter(0)
    ...   b = f32[4]{0} negate(a)
    ...   c = f32[4]{0} tanh(b)
    ...   ROOT d = f32[4]{0} sine(a)
    ... }''')
    >>> dead = dead_instructions(module.entry, lambda x: x.opcode != "parameter")
    >>> [x.name for x in dead]
    ['c', 'b']
    """
    root = computation.root
    waiting = {x: x.user_count for x in computation.instructions}
    work = [
        x
        for x in reversed(computation.instructions)
        if not waiting[x] and x is not root and is_removable(x)
    ]
    dead: dict[Instruction, None] = {}
    while work:
        instruction = work.pop()
        if instruction in dead:
            continue
        dead[instruction] = None
        for operand in dict.fromkeys(instruction.operands):
            waiting[operand] -= 1
            if not waiting[operand] and operand is not root and is_removable(operand):
                work.append(operand)
    return list(dead)
