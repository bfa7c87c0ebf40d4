"""The words of host offloading: annotations, spaces, and what only moves values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msa.errors import HloError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.opcode import CONTROL_FLOW_OPCODES
from msa.hlo.shape import Shape, ShapeIndex

DEVICE: Final = 0
HOST: Final = 5
MOVE_TO_HOST: Final = "MoveToHost"
MOVE_TO_DEVICE: Final = "MoveToDevice"
ALLOCATE_BUFFER: Final = "AllocateBuffer"
COMPUTE_TYPE: Final = "_xla_compute_type"

Place = tuple[Instruction, ShapeIndex]
"""A node of an instruction's result."""


class HostOffloadError(HloError):
    """A module's host annotations cannot be followed.

    >>> from msa.errors import HloError
    >>> issubclass(HostOffloadError, HloError)
    True
    """


def is_call_of(x: Instruction, target: str) -> bool:
    """Whether an instruction is a custom call of a target."""
    return (
        x.opcode == "custom-call" and x.attributes.get("custom_call_target") == target
    )


def is_host_compute(x: Instruction) -> bool:
    """Whether an instruction runs on the host."""
    attributes = x.attributes.get("frontend_attributes") or {}
    return dict(attributes).get(COMPUTE_TYPE) == "host"


def set_space(x: Instruction, index: ShapeIndex, space: int) -> None:
    """Change the memory space of every array at or below a node."""
    shape = x.shape
    for leaf, array in shape.subshape(index).leaves():
        if array.is_array and array.memory_space != space:
            shape = shape.with_subshape((*index, *leaf), array.with_memory_space(space))
    x.shape = shape


def on_host_thread(x: Instruction) -> bool:
    """Whether an instruction starts, or is part of, a computation of the host."""
    thread = (
        x.attributes.get("async_execution_thread") or x.computation.execution_thread
    )
    return thread == "host" or is_host_compute(x)


def in_space(shape: Shape, space: int) -> Shape:
    """A shape with every array in a memory space."""
    if shape.is_tuple:
        return Shape.tuple_of(*(in_space(s, space) for s in shape.children))
    return shape.with_memory_space(space) if shape.is_array else shape


def space_of(place: Place) -> int:
    """Memory space of a node; that of the first array of a tuple."""
    for _, leaf in place[0].shape.subshape(place[1]).leaves():
        if leaf.is_array:
            return leaf.memory_space
    return DEVICE


class Callers:
    """Who runs which computation as part of the program."""

    __slots__ = ("_of",)

    def __init__(self, module: Module) -> None:
        self._of: dict[Computation, list[Instruction]] = {}
        for computation in module.computations:
            for x in computation.instructions:
                if x.opcode in CONTROL_FLOW_OPCODES:
                    for callee in dict.fromkeys(x.called_computations):
                        self._of.setdefault(callee, []).append(x)

    def of(self, computation: Computation) -> list[Instruction]:
        """Instructions that run a computation."""
        return self._of.get(computation, [])


def next_places(place: Place, callers: Callers) -> Iterator[Place]:
    """Where a value is found next, one step down.

    Only steps that neither move nor compute anything are followed.
    """
    x, index = place
    for user in x.users:
        for k in user.operand_indices(x):
            yield from _through(user, k, index)
    if not x.is_root:
        return
    for caller in callers.of(x.computation):
        if caller.opcode == "while" and x.computation is caller.while_body:
            yield caller, index
            for callee in caller.called_computations:
                yield callee.parameters[0], index
        elif caller.opcode in ("call", "conditional"):
            yield caller, index
        elif caller.opcode == "async-start":
            yield caller, (1, *index)


def _through(user: Instruction, k: int, index: ShapeIndex) -> Iterator[Place]:
    opcode = user.opcode
    if opcode == "get-tuple-element":
        if index[:1] == (user.tuple_index,):
            yield user, index[1:]
    elif opcode == "tuple":
        yield user, (k, *index)
    elif opcode == "send" and k == 0:
        yield user, (0, *index)
    elif opcode in ("bitcast", "opt-barrier"):
        yield user, index
    elif opcode == "while":
        yield user, index
        for callee in user.called_computations:
            yield callee.parameters[0], index
    elif opcode == "call":
        yield user.called_computations[0].parameters[k], index
    elif opcode == "async-start":
        yield user, (0, k, *index)
        yield user.called_computations[0].parameters[k], index
    elif opcode == "async-done":
        if index[:1] == (1,):
            yield user, index[1:]
    elif opcode == "custom-call":
        for output, number, part in user.attributes.get(
            "output_to_operand_aliasing", ()
        ):
            if number == k and index[: len(part)] == tuple(part):
                yield user, (*output, *index[len(part) :])
    elif opcode == "conditional" and k:
        yield user.called_computations[k - 1].parameters[0], index
