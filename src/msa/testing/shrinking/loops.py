"""What decides how often loops run: left alone, but for lower counts."""

from __future__ import annotations

from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex

Place = tuple[Instruction, ShapeIndex]


def steering(module: Module) -> set[Instruction]:
    """Instructions that the conditions of loops depend on.

    Linear in the instructions times the elements of the tuples on the way.
    """
    callers: dict[Computation, list[Instruction]] = {}
    conditions: list[Place] = []
    for computation in module.computations:
        for x in computation.instructions:
            for called in x.called_computations:
                callers.setdefault(called, []).append(x)
            if x.opcode == "while":
                conditions.append((x.while_condition.root, ()))
    seen: set[Place] = set()
    work = conditions
    while work:
        place = work.pop()
        if place not in seen:
            seen.add(place)
            work.extend(_sources(*place, callers))
    return {x for x, _ in seen}


def _sources(
    x: Instruction, at: ShapeIndex, callers: dict[Computation, list[Instruction]]
) -> list[Place]:
    """What the value at a place is made from."""
    if x.opcode == "tuple" and at:
        return [(x.operands[at[0]], at[1:])]
    if x.opcode == "get-tuple-element":
        return [(x.operands[0], (x.tuple_index, *at))]
    if x.opcode in ("opt-barrier", "copy"):
        return [(x.operands[0], at)]
    if x.opcode == "parameter":
        found = []
        for caller in callers.get(x.computation, ()):
            if caller.opcode == "while":
                found += [(caller.operands[0], at), (caller.while_body.root, at)]
            elif caller.opcode == "conditional":
                found += [(operand, at) for operand in caller.operands[1:]]
            elif x.parameter_number < len(caller.operands):
                found.append((caller.operands[x.parameter_number], at))
        return found
    if x.opcode == "while":
        return [(x.operands[0], at), (x.while_body.root, at)]
    if x.opcode == "call":
        return [(x.called_computations[0].root, at)]
    whole: list[Place] = [(operand, ()) for operand in x.operands]
    return whole + [(called.root, ()) for called in x.called_computations]


def bound(loop: Instruction) -> Instruction | None:
    """The constant that a counter which grows by one must stay below, if it is so."""
    test = loop.while_condition.root
    if test.opcode != "compare" or test.attributes.get("direction") != "LT":
        return None
    counter, limit = test.operands
    if limit.opcode != "constant" or not limit.shape.element_type.is_integral:
        return None
    path = _path(counter)
    if path is None:
        return None
    step, at = loop.while_body.root, path
    while step.opcode == "tuple" and at:
        step, at = step.operands[at[0]], at[1:]
    if at or step.opcode != "add":
        return None
    left, right = step.operands
    if right.opcode != "constant" or str(right.attributes["literal"]) != "1":
        return None
    return limit if _path(left) == path else None


def _path(x: Instruction) -> ShapeIndex | None:
    """Which part of the computation's parameter this is."""
    path: ShapeIndex = ()
    while x.opcode == "get-tuple-element":
        path = (x.tuple_index, *path)
        x = x.operands[0]
    return path if x.opcode == "parameter" and x.parameter_number == 0 else None
