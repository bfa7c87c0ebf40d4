"""A loop's body written out a few times, as a program of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.schedule import Schedule

COPIES: Final = 4
"""Iterations; the optimizer models as many."""

_REGIONS: Final = frozenset({"while", "conditional", "call", "async-start"})


@dataclass(frozen=True, slots=True)
class Unrolled:
    """A program that runs a body four times.

    Attributes:
        module: parameters are the loop's state, iterations follow, then the result.
        first: schedule step at which the first iteration begins.
        size: steps of an iteration.
    """

    module: Module
    first: int
    size: int


def unroll(loop: Instruction) -> tuple[Unrolled | None, str]:
    """Write a `while` body out; without nested regions, else the reason why not.

    Linear in the size of the module.
    """
    body = loop.while_body
    order = _order(body)
    parameter = body.parameters[0]
    if any(x.opcode in _REGIONS for x in order):
        return None, "the body runs other computations"
    if body.root.opcode != "tuple" or not parameter.shape.is_tuple:
        return None, "the state is not a tuple made by the body's root"
    if any(x.opcode != "get-tuple-element" for x in parameter.users):
        return None, "the body uses its state as a whole"
    return _write_out(loop.computation.module, body, order), ""


def _order(body: Computation) -> list[Instruction]:
    schedule = body.module.schedule
    if schedule is not None and body in schedule:
        return list(schedule.sequence(body))
    return body.post_order()


def _write_out(module: Module, body: Computation, order: list[Instruction]) -> Unrolled:
    fresh = Module(f"{body.name}_unrolled")
    called = _copy_called(order, fresh)
    entry = Computation("main")
    parameter, root = body.parameters[0], body.root
    state = [
        Instruction(
            f"state.{i}", "parameter", shape, attributes={"parameter_number": i}
        )
        for i, shape in enumerate(parameter.shape.children)
    ]
    for x in state:
        entry.add(x)
    kept = [x for x in order if x is not root and x is not parameter]
    kept = [
        x
        for x in kept
        if not (x.opcode == "get-tuple-element" and x.operands[0] is parameter)
    ]
    for number in range(COPIES):
        twins: dict[Instruction, Instruction] = {}
        for x in parameter.users:
            twins[x] = state[x.tuple_index]
        for x in kept:
            twins[x] = entry.add(
                Instruction(
                    f"{x.name}.{number}",
                    x.opcode,
                    x.shape,
                    tuple(twins[o] for o in x.operands),
                    x.attributes,
                    tuple(called[c] for c in x.called_computations),
                    tuple(twins[p] for p in x.control_predecessors if p in twins),
                    x.metadata_text,
                    x.backend_config,
                )
            )
        state = [twins[x] for x in root.operands]
    result = Instruction("result", "tuple", root.shape, tuple(state))
    entry.add(result, root=True)
    fresh.add(entry, entry=True)
    fresh.schedule = Schedule({entry: tuple(entry.instructions)})
    return Unrolled(fresh, len(parameter.shape.children), len(kept))


def _copy_called(
    order: list[Instruction], fresh: Module
) -> dict[Computation, Computation]:
    """Copies of the fused and applied computations, callees first."""
    found: dict[Computation, Computation] = {}
    stack = [(c, False) for x in order for c in x.called_computations]
    while stack:
        source, ready = stack.pop()
        if source in found:
            continue
        if not ready:
            stack.append((source, True))
            stack.extend(
                (c, False) for x in source.instructions for c in x.called_computations
            )
            continue
        copy = Computation(source.name, source.execution_thread)
        twins: dict[Instruction, Instruction] = {}
        for x in source.post_order():
            twins[x] = copy.add(
                Instruction(
                    x.name,
                    x.opcode,
                    x.shape,
                    tuple(twins[o] for o in x.operands),
                    x.attributes,
                    tuple(found[c] for c in x.called_computations),
                    (),
                    x.metadata_text,
                    x.backend_config,
                )
            )
        copy.root = twins[source.root]
        found[source] = fresh.add(copy)
    return found
