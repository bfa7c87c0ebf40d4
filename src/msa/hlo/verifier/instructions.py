"""Checks of single instructions: operands, attributes and result agree.

Instructions that look alike share one check: the outcome is kept by opcode, operand
shapes, attributes, called computations and result shape. Shapes and attributes that
the reader shares are told apart by identity, so that a key costs no deep hashing.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, is_
from typing import Any, Final

from msa.errors import ShapeInferenceError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape
from msa.hlo.shape_inference import RULES, Signature, infer_operation
from msa.hlo.shape_inference.operation import (
    Operation,
    compatible,
    dims_text,
    same_but_precision,
    same_dims,
)
from msa.hlo.verifier.layouts import shape_problem
from msa.hlo.verifier.report import Report

_shape_of: Final = attrgetter("shape")

_ASYNC: Final = (
    "async-start async-update async-done copy-start copy-done all-gather-start "
    "all-gather-done all-reduce-start all-reduce-done collective-permute-start "
    "collective-permute-done send send-done recv recv-done"
)
ASYNC_OPCODES: Final = frozenset(_ASYNC.split())
"""Opcodes that start, continue or end an asynchronous operation."""

_BROADCASTING: Final = frozenset({"select", "clamp"})

# Neither `convert` and its kin nor `copy` count here: their rules say all.
_COMPUTING: Final = (
    "abs acos acosh asin asinh atanh round-nearest-afz round-nearest-even ceil "
    "count-leading-zeros cosine cosh erf exponential exponential-minus-one floor "
    "imag is-finite log log-plus-one not negate popcnt real rsqrt logistic sign "
    "sine sinh sqrt cbrt tan tanh add atan2 compare complex divide maximum minimum "
    "multiply mulhi power remainder subtract and or xor shift-left "
    "shift-right-arithmetic shift-right-logical select clamp"
)
_ELEMENTWISE: Final = frozenset(_COMPUTING.split())

_ONE_PRECISION: Final = _ELEMENTWISE | {
    "concatenate",
    "dynamic-update-slice",
    "pad",
    "triangular-solve",
}
"""Operations whose operands must all have one floating-point type."""

_LOOSE: Final = (
    "all-reduce all-reduce-start reduce reduce-window map scatter "
    "select-and-scatter batch-norm-training batch-norm-inference batch-norm-grad scan"
)
_ANY_PRECISION: Final = frozenset(_LOOSE.split())
"""Operations whose result may differ from the rule's in floating-point type."""

_CALLING_ONE: Final = (
    "call fusion map reduce reduce-window scan scatter sort all-reduce "
    "all-reduce-start reduce-scatter async-start"
)
_CALLED: Final[dict[str, tuple[int, int | None]]] = {
    **dict.fromkeys(_CALLING_ONE.split(), (1, 1)),
    "async-update": (0, 1),
    "async-done": (0, 1),
    "while": (2, 2),
    "conditional": (1, None),
    "select-and-scatter": (2, 2),
    "custom-call": (0, None),
}


def _tuple_is_fine(instruction: Instruction) -> bool:
    children, operands = instruction.shape.children, instruction.operands
    return len(children) == len(operands) and all(
        map(is_, children, map(_shape_of, operands))
    )


def _element_is_fine(instruction: Instruction) -> bool:
    operands, index = instruction.operands, instruction.attributes.get("index", -1)
    if len(operands) != 1 or index < 0:
        return False
    children = operands[0].shape.children
    return index < len(children) and children[index] is instruction.shape


def _constant_is_fine(instruction: Instruction) -> bool:
    literal = instruction.attributes.get("literal")
    return (
        literal is not None
        and literal.shape is instruction.shape
        and not instruction.operands
    )


def _parameter_is_fine(instruction: Instruction) -> bool:
    attributes = instruction.attributes
    return (
        len(attributes) == 1
        and not instruction.operands
        and attributes.get("parameter_number", -1) >= 0
    )


_SHORT_CUTS: Final[dict[str, Callable[[Instruction], bool]]] = {
    "constant": _constant_is_fine,
    "get-tuple-element": _element_is_fine,
    "parameter": _parameter_is_fine,
    "tuple": _tuple_is_fine,
}
"""Sufficient tests for opcodes whose attributes hardly ever repeat."""


class InstructionChecker:
    """Checks instructions one by one and remembers outcomes within one module."""

    __slots__ = ("_async", "_good", "_good_shapes", "_report", "_signatures")

    def __init__(self, report: Report) -> None:
        self._report = report
        self._good: set[tuple[Any, ...]] = set()
        self._good_shapes: set[int] = set()
        self._signatures: dict[Computation, Signature] = {}
        self._async: list[Instruction] = []

    def take_async_operations(self) -> list[Instruction]:
        """Asynchronous operations seen since the last call."""
        taken, self._async = self._async, []
        return taken

    def check(self, instruction: Instruction) -> None:
        """Report what is wrong with one instruction, if anything."""
        opcode, shape = instruction.opcode, instruction.shape
        if id(shape) not in self._good_shapes:
            self._check_shape(instruction, shape)
        short_cut = _SHORT_CUTS.get(opcode)
        if short_cut is not None and short_cut(instruction):
            return
        key = (
            opcode,
            id(shape),
            id(instruction.attributes),
            *map(id, map(_shape_of, instruction.operands)),
            *instruction.called_computations,
        )
        if key not in self._good and self._is_good(instruction):
            self._good.add(key)
        if opcode in ASYNC_OPCODES:
            self._async.append(instruction)

    def _check_shape(self, instruction: Instruction, shape: Shape) -> None:
        problem = shape_problem(shape)
        if problem is None:
            self._good_shapes.add(id(shape))
        else:
            self._report.instruction(instruction, problem)

    def _is_good(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        if opcode not in RULES:
            return True
        problem = self._called_problem(instruction) or self._problem(instruction)
        if problem is not None:
            self._report.instruction(instruction, problem)
        return problem is None

    def _called_problem(self, instruction: Instruction) -> str | None:
        count = len(instruction.called_computations)
        least, most = _CALLED.get(instruction.opcode, (0, 0))
        if count < least or (most is not None and count > most):
            wanted = str(least) if least == most else f"at least {least}"
            return f"{instruction.opcode} calls {wanted} computations, not {count}"
        return None

    def _problem(self, instruction: Instruction) -> str | None:
        stated = instruction.shape
        op = Operation(
            instruction.opcode,
            tuple(map(_shape_of, instruction.operands)),
            instruction.attributes,
            tuple(map(self._signature, instruction.called_computations)),
            stated,
        )
        try:
            result = infer_operation(op)
        except ShapeInferenceError as error:
            return str(error)
        if result is None:
            return None
        if not agree(op.opcode, result, stated):
            return f"{op.opcode} gives {dims_text(result)}, not {dims_text(stated)}"
        return _stretched(op, stated) or _mixed(op)

    def _signature(self, computation: Computation) -> Signature:
        signature = self._signatures.get(computation)
        if signature is None:
            signature = Signature.of(computation)
            self._signatures[computation] = signature
        return signature


def agree(opcode: str, result: Shape, stated: Shape) -> bool:
    """Whether a stated result is the rule's, layouts and dynamic flags aside."""
    if result is stated:
        return True
    if opcode in _ANY_PRECISION:
        return same_but_precision(result, stated)
    return compatible(result, stated)


def _stretched(op: Operation, stated: Shape) -> str | None:
    """Operands of elementwise operations must not be broadcast silently."""
    if op.opcode not in _ELEMENTWISE:
        return None
    for number, shape in enumerate(op.operands):
        if not same_dims(shape.dimensions, stated.dimensions) and not (
            op.opcode in _BROADCASTING and not shape.dimensions
        ):
            return (
                f"operand {number} is {dims_text(shape)} where {dims_text(stated)} "
                f"is computed: broadcasts must be explicit"
            )
    return None


def _mixed(op: Operation) -> str | None:
    if op.opcode not in _ONE_PRECISION:
        return None
    kinds = {
        shape.element_type for shape in op.operands if shape.element_type.is_floating
    }
    if len(kinds) > 1:
        names = sorted(kind.name for kind in kinds)
        return f"{op.opcode} mixes floating-point types {', '.join(names)}"
    return None
