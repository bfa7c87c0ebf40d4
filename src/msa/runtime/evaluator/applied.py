"""Computations applied to elements (reducers, comparators, …), on whole arrays.

Such a computation is written for scalars. Its elementwise instructions mean the same
on arrays of any dimensions, so one pass of numpy applies it to all elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from msa.errors import UnsupportedError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import OPCODES
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import fitter
from msa.runtime.evaluator.registry import BUILDERS, Kernel, build

_RENAMES: Final = frozenset({"broadcast", "reshape", "bitcast", "transpose"})
_INLINED: Final = frozenset({"call", "fusion"})
_STRUCTURE: Final = frozenset({"tuple", "get-tuple-element", "opt-barrier"})
_MAX_STEPS: Final = 200_000

_UFUNCS: Final[dict[str, np.ufunc]] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_PRED_UFUNCS: Final[dict[str, np.ufunc]] = {
    "add": np.logical_or,
    "multiply": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
}

_Step = tuple[Kernel, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Applied:
    """A scalar computation as a function of arrays that broadcast together.

    Calling it gives a tuple with one array per leaf of the result.

    Attributes:
        computation: what is applied.
        steps, root: the flattened program: kernels and slots; parameters come first.
        ufunc: the numpy function it amounts to, if it is a single binary operation.
        takes: the parameter that it returns unchanged, or -1.
        rounds: results are rounded to a type that numpy lacks.
        context: for computations that only run element by element.
    """

    computation: Computation
    steps: tuple[_Step, ...] | None
    root: int
    ufunc: np.ufunc | None
    takes: int
    rounds: bool
    context: Context

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Apply to arrays: one array per leaf of the result."""
        if self.steps is None:
            return self._one_by_one(operands)
        slots: list[Any] = list(operands)
        for kernel, sources in self.steps:
            slots.append(kernel(*[slots[i] for i in sources]))
        result = slots[self.root]
        return result if isinstance(result, tuple) else (result,)

    def _one_by_one(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """One run of the interpreter per element: slow, for loops in reducers."""
        from msa.runtime.evaluator.interpreter import run_computation

        arrays = np.broadcast_arrays(*operands)
        flat = [a.reshape(-1) for a in arrays]
        rows: list[tuple[Any, ...]] = []
        for element in zip(*flat, strict=True):
            given = [np.asarray(x) for x in element]
            row = run_computation(self.computation, given, self.context)
            rows.append(row if isinstance(row, tuple) else (row,))
        shape = arrays[0].shape
        columns = zip(*rows, strict=True)
        return tuple(
            np.array([np.asarray(x) for x in c]).reshape(shape) for c in columns
        )


def applied(computation: Computation, context: Context) -> Applied:
    """Compile a scalar computation; linear in its (inlined) size.

    Raises:
        UnsupportedError: nested calls blow up beyond any sensible size.
    """
    root = computation.root
    parameters = computation.parameters
    kind = root.shape.element_type
    flat = _flatten(computation, context)
    steps, place = (None, -1) if flat is None else flat
    return Applied(
        computation,
        steps,
        place,
        _as_ufunc(root, parameters),
        parameters.index(root) if root.opcode == "parameter" else -1,
        root.shape.is_array and fitter(kind) is not None,
        context,
    )


def _as_ufunc(root: Instruction, parameters: list[Instruction]) -> np.ufunc | None:
    if len(parameters) != 2 or set(root.operands) != set(parameters):
        return None
    if root.shape.element_type.name == "pred":
        return _PRED_UFUNCS.get(root.opcode)
    return _UFUNCS.get(root.opcode)


class _Frame:
    """A computation being inlined."""

    __slots__ = ("caller", "instructions", "places", "root")

    def __init__(
        self, computation: Computation, places: dict[Instruction, int]
    ) -> None:
        self.instructions: Iterator[Instruction] = iter(computation.post_order())
        self.places = places
        self.root = computation.root
        self.caller: Instruction | None = None


def _flatten(
    computation: Computation, context: Context
) -> tuple[tuple[_Step, ...], int] | None:
    """Steps and root slot, or None if it cannot run on whole arrays."""
    parameters = computation.parameters
    steps: list[_Step] = []
    stack = [_Frame(computation, {p: i for i, p in enumerate(parameters)})]
    while True:
        frame = stack[-1]
        instruction = next(frame.instructions, None)
        if instruction is None:
            stack.pop()
            place = frame.places[frame.root]
            if not stack:
                return tuple(steps), place
            caller = stack[-1].caller
            assert caller is not None
            stack[-1].places[caller] = place
            continue
        opcode = instruction.opcode
        if opcode == "parameter":
            if instruction not in frame.places:
                return None
            continue
        places = tuple(frame.places[x] for x in instruction.operands)
        if opcode in _INLINED:
            callee = instruction.called_computations[0]
            frame.caller = instruction
            given = zip(callee.parameters, places, strict=False)
            stack.append(_Frame(callee, dict(given)))
            continue
        if not _is_scalar_step(instruction):
            return None
        if opcode in _RENAMES and _keeps_type(instruction):
            frame.places[instruction] = places[0]
            continue
        frame.places[instruction] = len(parameters) + len(steps)
        make = BUILDERS["bitcast-convert"] if opcode == "bitcast" else build
        steps.append((make(instruction, context), places))
        if len(steps) > _MAX_STEPS:
            raise UnsupportedError(
                f"{computation.name} has more than {_MAX_STEPS} steps when inlined",
                subject="call",
                where=computation.name,
            )


def _keeps_type(instruction: Instruction) -> bool:
    return instruction.shape.element_type is instruction.operands[0].shape.element_type


def _is_scalar_step(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    if opcode in _STRUCTURE:
        return True
    if not all(s.is_scalar for _, s in instruction.shape.leaves()):
        return False
    return opcode in _RENAMES or (opcode in OPCODES and OPCODES[opcode].elementwise)
