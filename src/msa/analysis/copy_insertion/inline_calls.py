"""Inlining: a called computation's instructions take the place of the call.

Source: `xla/service/call_inliner.cc`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msa.analysis.copy_insertion.flatten_calls import flatten_call_graph

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.instruction import Instruction
    from msa.hlo.module import Module


def inline_calls(module: Module) -> int:
    """Put every `call` of a computation of control flow out of the way.

    Changes the module in place (clone it first); shared callees are copied, a
    schedule is kept. Calls with control dependences stay. Linear in the size of the
    flattened module.

    Returns:
        the number of calls that were inlined.
    """
    flatten_call_graph(module)
    embedded = module.embedded_computations()
    count = 0
    for computation in list(module.computation_post_order()):
        if computation in embedded:
            continue
        calls = [x for x in computation.instructions if _can_inline(x)]
        if calls:
            _inline(module, computation, calls)
            count += len(calls)
    return count


def _can_inline(x: Instruction) -> bool:
    return x.opcode == "call" and not (x.control_predecessors or x.control_successors)


def _inline(module: Module, computation: Computation, calls: list[Instruction]) -> None:
    bodies: dict[Instruction, list[Instruction]] = {}
    sequences: dict[Instruction, list[Instruction]] = {}
    schedule = module.schedule
    taken = {x.name for x in computation.instructions}
    for call in calls:
        callee = call.called_computations[0]
        order = [x for x in callee.instructions if x.opcode != "parameter"]
        if schedule is not None and callee in schedule:
            sequences[call] = [
                x for x in schedule.sequence(callee) if x.opcode != "parameter"
            ]
        for parameter in list(callee.parameters):
            parameter.replace_all_uses_with(call.operands[parameter.parameter_number])
        for x in order:
            x.computation = computation
            if x.name in taken:
                x.name = module.unique_instruction_name(x.name)
            taken.add(x.name)
        bodies[call] = order
        root = callee.root
        call.replace_all_uses_with(root)
        module.remove(callee)
    computation.instructions = _spliced(computation.instructions, bodies)
    if schedule is not None and computation in schedule:
        sequence = list(schedule.sequence(computation))
        schedule.set_sequence(computation, _spliced(sequence, sequences))
    for call in calls:
        call.detach()


def _spliced(
    order: list[Instruction], parts: dict[Instruction, list[Instruction]]
) -> list[Instruction]:
    result: list[Instruction] = []
    for x in order:
        if x in parts:
            result.extend(parts[x])
        else:
            result.append(x)
    return result
