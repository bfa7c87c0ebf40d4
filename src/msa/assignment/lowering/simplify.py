"""Removing what lowering left without a reader, and tuples that undo each other.

Reference: `MemorySpaceAssignment::SimplifyGraph` in
`xla/service/memory_space_assignment/memory_space_assignment.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msa.assignment.lowering.state import LoweringState
from msa.hlo.computation import Computation
from msa.hlo.dead_code import dead_instructions
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.shape import ShapeIndex

_KEPT: Final = frozenset(
    [
        "parameter",
        "copy-start",
        "copy-done",
        "send",
        "send-done",
        "recv",
        "recv-done",
        "infeed",
        "outfeed",
        "all-reduce-start",
        "all-reduce-done",
        "all-gather-start",
        "all-gather-done",
        "collective-permute-start",
        "collective-permute-done",
        "async-start",
        "async-update",
        "async-done",
        "all-reduce",
        "all-gather",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "reduce-scatter",
        "ragged-all-to-all",
        "rng",
        "rng-get-and-update-state",
        "trace",
        "after-all",
        "add-dependency",
        "set-dimension-size",
        "domain",
        "opt-barrier",
    ]
)
"""Opcodes that may act on something else than their users."""


def simplify(state: LoweringState) -> set[Instruction]:
    """Clean every scheduled computation; returns the removed instructions.

    Control dependencies stay: the order of the steps that they join does not change.
    Linear.
    """
    schedule = state.module.schedule
    assert schedule is not None
    removed: set[Instruction] = set()
    for computation in list(schedule):
        _forward_tuples(computation)
        dead = dead_instructions(computation, is_removable)
        for instruction in dead:  # readers before what they read
            instruction.detach()
        if dead:
            computation.remove(dead)
            removed.update(dead)
    _remove_uncalled(state.module, removed)
    return removed


def _forward_tuples(computation: Computation) -> None:
    """Elements of tuples become the operands; a tuple of all elements the original."""
    for instruction, read in forwarded_tuples(computation).items():
        instruction.replace_all_uses_with(read)


def forwarded_tuples(computation: Computation) -> dict[Instruction, Instruction]:
    """What will be read instead of elements of tuples, and of tuples of all elements.

    Nothing is changed. Linear.
    """
    found: dict[Instruction, Instruction] = {}
    for instruction in computation.post_order():
        opcode = instruction.opcode
        if opcode == "get-tuple-element":
            source = _read(found, instruction.operands[0])
            if source.opcode == "tuple" and not _ordered(instruction):
                element = source.operands[instruction.tuple_index]
                found[instruction] = _read(found, element)
        elif opcode == "tuple" and not _ordered(instruction):
            original = _whole_original(instruction, found)
            if original is not None and _may_stand_in(original, instruction, found):
                found[instruction] = original
    return found


def _read(found: Mapping[Instruction, Instruction], x: Instruction) -> Instruction:
    return found.get(x, x)


def _whole_original(
    instruction: Instruction, found: Mapping[Instruction, Instruction]
) -> Instruction | None:
    operands = [_read(found, operand) for operand in instruction.operands]
    if not operands or operands[0].opcode != "get-tuple-element":
        return None
    source = _read(found, operands[0].operands[0])
    if len(source.shape.children) != len(operands):
        return None
    for number, operand in enumerate(operands):
        if (
            operand.opcode != "get-tuple-element"
            or _read(found, operand.operands[0]) is not source
            or operand.tuple_index != number
        ):
            return None
    return source


def _may_stand_in(
    original: Instruction, copy: Instruction, found: Mapping[Instruction, Instruction]
) -> bool:
    """Whether a tuple may be read in the place of one with the same elements.

    A tuple that lies in another tuple is loop state, an argument or a result of its
    own: another one there would be overwritten with it. Only loop state that is
    handed on in its place may stay as it is.
    """
    if not any(user.opcode == "tuple" for user in copy.users):
        return True
    path = _path_in_result(copy)
    return path is not None and path == _path_in_parameter(original, found)


def _path_in_result(x: Instruction) -> ShapeIndex | None:
    """Where in the result of its computation the one use of a value is."""
    path: ShapeIndex = ()
    while not x.is_root:
        if x.user_count != 1:
            return None
        (user,) = x.users
        places = user.operand_indices(x)
        if user.opcode != "tuple" or len(places) != 1:
            return None
        path = (*places, *path)
        x = user
    return path


def _path_in_parameter(
    x: Instruction, found: Mapping[Instruction, Instruction]
) -> ShapeIndex | None:
    """Which part of the first parameter a value is."""
    path: ShapeIndex = ()
    while x.opcode == "get-tuple-element":
        path = (x.tuple_index, *path)
        x = _read(found, x.operands[0])
    return path if x.opcode == "parameter" and not x.parameter_number else None


def is_removable(instruction: Instruction) -> bool:
    """Whether lowering removes the instruction if nothing reads it."""
    if instruction.opcode in _KEPT or _ordered(instruction):
        return False
    if instruction.attributes.get("custom_call_has_side_effect"):
        return False
    if instruction.called_computations:
        return not _has_effects(instruction.called_computations)
    return True


def _ordered(instruction: Instruction) -> bool:
    return bool(instruction.control_predecessors or instruction.control_successors)


def _has_effects(computations: Iterable[Computation]) -> bool:
    work, seen = list(computations), set()
    while work:
        computation = work.pop()
        if computation in seen:
            continue
        seen.add(computation)
        for instruction in computation.instructions:
            if instruction.opcode in _KEPT and instruction.opcode != "parameter":
                return True
            if instruction.attributes.get("custom_call_has_side_effect"):
                return True
            work += instruction.called_computations
    return False


def _remove_uncalled(module: Module, removed: set[Instruction]) -> None:
    """Drop computations that only removed instructions called."""
    suspects: dict[Computation, None] = {}
    for instruction in removed:
        for callee in instruction.called_computations:
            suspects[callee] = None
    if not suspects:
        return
    calls: dict[Computation, int] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            for callee in instruction.called_computations:
                calls[callee] = calls.get(callee, 0) + 1
    gone: set[Computation] = set()
    work = list(suspects)
    while work:
        computation = work.pop()
        if calls.get(computation, 0) or computation in gone:
            continue
        gone.add(computation)
        for instruction in computation.instructions:
            removed.add(instruction)
            for callee in instruction.called_computations:
                calls[callee] -= 1
                work.append(callee)
    if gone:
        module.computations = [c for c in module.computations if c not in gone]
        schedule = module.schedule
        assert schedule is not None
        for computation in gone:
            schedule.remove(computation)
