"""Carrying values along until nothing changes.

Work goes in an order in which the program would run, so that most instructions are
looked at once.

Source: `xla/hlo/analysis/hlo_dataflow_analysis.cc`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from msa.analysis.dataflow.state import FlowState
from msa.analysis.dataflow.transfer import FLOWING, update_values
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction

Orders = dict[Computation, list[Instruction]]


def propagate(state: FlowState, orders: Orders) -> None:
    """Run all transfer rules to a fixed point.

    Every instruction is visited again only when something that it reads changed;
    near linear on programs whose loops are not deeply nested.
    """
    ranks = _ranks(state, orders)
    queue: list[tuple[int, int, Instruction]] = []
    waiting = bytearray(state.module.id_limit)
    tie = 0
    order_in_ties: dict[Instruction, int] = {}
    for order in orders.values():
        for instruction in order:
            if instruction.opcode in FLOWING:
                order_in_ties[instruction] = tie
                queue.append((ranks[instruction.id], tie, instruction))
                waiting[instruction.id] = 1
                tie += 1
    heapq.heapify(queue)
    while queue:
        instruction = heapq.heappop(queue)[2]
        waiting[instruction.id] = 0
        if not update_values(state, instruction):
            continue
        for affected in _affected(state, instruction):
            if waiting[affected.id]:
                continue
            place = order_in_ties.get(affected)
            if place is not None:
                waiting[affected.id] = 1
                heapq.heappush(queue, (ranks[affected.id], place, affected))


def _affected(state: FlowState, changed: Instruction) -> Iterator[Instruction]:
    """Instructions whose values may follow a change."""
    for user in changed._users:
        if user.opcode in FLOWING:
            yield user
        if user.called_computations:
            yield from _reached_parameters(state, changed, user)
    if changed.computation.root is changed:
        node = state.call_graph.node(changed.computation)
        for site in node.caller_call_sites:
            caller = site.instruction
            if caller.opcode == "while":
                yield caller
                for callee in caller.called_computations:
                    yield from callee.parameters[:1]
            elif caller.opcode in FLOWING:
                yield caller


def _reached_parameters(
    state: FlowState, changed: Instruction, user: Instruction
) -> Iterator[Instruction]:
    if user.opcode == "conditional":
        for branch, operand in zip(
            user.called_computations, user.operands[1:], strict=False
        ):
            if operand is changed:
                yield from branch.parameters[:1]
        return
    if user.opcode in ("async-update", "async-done"):
        yield from user.called_computations[0].parameters
        return
    for callee in user.called_computations:
        if state.call_graph.node(callee).context != "control-flow":
            continue
        parameters = callee.parameters
        for number in user.operand_indices(changed):
            if number < len(parameters):
                yield parameters[number]


def _ranks(state: FlowState, orders: Orders) -> list[int]:
    """Place of each instruction in one run of the program, callees before callers.

    Instructions of computations that are not part of the program have rank 0.
    """
    ranks = [0] * state.module.id_limit
    entry = state.module.entry
    seen = {entry}
    count = 0
    stack = [_visits(orders.get(entry, ()))]
    while stack:
        for instruction, deeper in stack[-1]:
            if deeper is None:
                ranks[instruction.id] = count
                count += 1
            elif deeper not in seen:
                seen.add(deeper)
                stack.append(_visits(orders.get(deeper, ())))
                break
        else:
            stack.pop()
    return ranks


def _visits(
    order: Sequence[Instruction],
) -> Iterator[tuple[Instruction, Computation | None]]:
    """Instructions, each after the computations that it runs."""
    for instruction in order:
        if instruction.called_computations:
            for computation in _runs(instruction):
                yield instruction, computation
        yield instruction, None


def _runs(instruction: Instruction) -> tuple[Computation, ...]:
    """Computations that run before an instruction ends, in order."""
    called = instruction.called_computations
    if not called:
        return ()
    if instruction.opcode == "while":
        return (called[1], called[0])
    if instruction.opcode in ("call", "async-start", "conditional"):
        return called
    return ()
