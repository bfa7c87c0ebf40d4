"""Edits that run in place what is called: calls, branches, loop bodies, fusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.testing.shrinking.draft import Draft, Key, key_of
from msa.testing.shrinking.edit import Edit

_CALLS = frozenset({"call", "conditional", "fusion", "while"})


def inlined(module: Module) -> Iterator[Edit]:
    """What is called, put where it is called; loops run once, branches are chosen."""
    for computation in reversed(module.computations):
        for x in reversed(computation.instructions):
            if x.opcode == "async-done":
                yield partial(_finish_at_once, key=key_of(x))
            elif x.opcode in _CALLS:
                branches = len(x.called_computations) if x.opcode != "while" else 1
                for branch in range(branches):
                    yield partial(_inline, key=key_of(x), branch=branch)


def _inline(draft: Draft, key: Key, branch: int) -> bool:
    x = draft.find(key)
    arguments: Sequence[Instruction] = x.operands
    if x.opcode == "conditional":
        arguments = x.operands[1 + branch : 2 + branch]
    result = _copy_in(draft, x, x.called_computations[branch], arguments)
    if result.shape != x.shape:
        return False
    x.replace_all_uses_with(result)
    return True


def _finish_at_once(draft: Draft, key: Key) -> bool:
    """Do at its start what an asynchronous operation does."""
    done = draft.find(key)
    chain = [done]
    while chain[-1].opcode in ("async-done", "async-update"):
        chain.append(chain[-1].operands[0])
    start = chain[-1]
    if start.opcode != "async-start" or not start.called_computations:
        return False
    result = _copy_in(draft, start, start.called_computations[0], start.operands)
    if result.shape != done.shape:
        return False
    done.replace_all_uses_with(result)
    for x in chain:
        if not x.users:
            draft.drop([x])
    return True


def _copy_in(
    draft: Draft,
    place: Instruction,
    callee: Computation,
    arguments: Sequence[Instruction],
) -> Instruction:
    """Copy a computation's instructions before `place`; returns its result."""
    schedule = draft.module.schedule
    order: Sequence[Instruction] = callee.post_order()
    if schedule is not None and callee in schedule:
        order = schedule.sequence(callee)
    twins: dict[Instruction, Instruction] = {}
    for x in order:
        if x.opcode == "parameter":
            twins[x] = arguments[x.parameter_number]
            continue
        twins[x] = draft.put_before(
            place,
            x.opcode,
            x.shape,
            [twins[operand] for operand in x.operands],
            x.attributes,
            x.called_computations,
            x.backend_config,
        )
    return twins[callee.root]
