"""Checks of single instructions: operands, attributes and result agree.

Instructions that look alike share one check: a good outcome is remembered by opcode
and by the numbers given to equal shapes, attributes and signatures. Numbers are
looked up by identity first, since the reader shares equal objects, so that nothing
is hashed deeply more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter, is_
from typing import Any, Final

from msa.errors import ShapeInferenceError
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import OPCODES
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

_BROADCASTING: Final = frozenset({"select", "clamp"})

_ELEMENTWISE: Final = frozenset(
    name for name, info in OPCODES.items() if info.elementwise
) - {
    # their rules say all
    "bitcast-convert",
    "constant",
    "convert",
    "copy",
    "reduce-precision",
    "rng",
    "stochastic-convert",
}

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

_CALLED: Final[dict[str, tuple[int, int | None]]] = {
    **{name: (len(info.called),) * 2 for name, info in OPCODES.items()},
    "async-update": (0, 1),
    "async-done": (0, 1),
    "conditional": (1, None),
    "custom-call": (0, None),
}
"""Least and greatest number of called computations."""

_REQUIRED: Final = {
    name: tuple(x for x in info.required if x not in info.called)
    for name, info in OPCODES.items()
}
"""Attributes without which an instruction could not be written."""


def _tuple_is_fine(instruction: Instruction) -> bool:
    children, operands = instruction.shape.children, instruction.operands
    return (
        instruction.shape.is_tuple
        and not instruction.called_computations
        and len(children) == len(operands)
        and all(map(is_, children, map(_shape_of, operands)))
    )


def _element_is_fine(instruction: Instruction) -> bool:
    operands, index = instruction.operands, instruction.attributes.get("index", -1)
    if len(operands) != 1 or not isinstance(index, int) or index < 0:
        return False
    source = operands[0].shape
    return (
        not instruction.called_computations
        and source.is_tuple
        and index < len(source.children)
        and source.children[index] is instruction.shape
    )


def _fusion_is_fine(instruction: Instruction) -> bool:
    called, operands = instruction.called_computations, instruction.operands
    attributes = instruction.attributes
    if (
        "kind" not in attributes
        or attributes.get("output_to_operand_aliasing")
        or len(called) != 1
        or called[0].root is None
    ):
        return False
    parameters = called[0].parameters
    return (
        called[0].root.shape is instruction.shape
        and len(parameters) == len(operands)
        and all(map(is_, map(_shape_of, parameters), map(_shape_of, operands)))
    )


def _constant_is_fine(instruction: Instruction) -> bool:
    literal = instruction.attributes.get("literal")
    if instruction.called_computations:
        return False
    return getattr(literal, "shape", None) is instruction.shape


def _parameter_is_fine(instruction: Instruction) -> bool:
    attributes = instruction.attributes
    number = attributes.get("parameter_number")
    return (
        len(attributes) == 1
        and isinstance(number, int)
        and number >= 0
        and not instruction.called_computations
    )


_LEAVES: Final[dict[str, Callable[[Instruction], bool]]] = {
    "constant": _constant_is_fine,
    "parameter": _parameter_is_fine,
}
"""Sufficient tests for leaves, whose attributes hardly ever repeat."""

_SHORT_CUTS: Final[dict[str, Callable[[Instruction], bool]]] = {
    "fusion": _fusion_is_fine,
    "get-tuple-element": _element_is_fine,
    "tuple": _tuple_is_fine,
}
"""Sufficient tests, cheaper than the rule, for opcodes that hardly ever repeat."""


class InstructionChecker:
    """Checks instructions one by one and remembers outcomes within one module.

    Memory and time are linear in the module; most instructions cost one look-up.
    """

    __slots__ = (
        "_attributes",
        "_good",
        "_kept",
        "_numbers",
        "_report",
        "_shapes",
        "_signatures",
        "_values",
    )

    def __init__(self, report: Report) -> None:
        self._report = report
        self._good: set[tuple[Any, ...]] = set()
        self._numbers: dict[Instruction, int] = {}  # shape numbers, this computation
        self._shapes: dict[int, int] = {}  # id of a shape -> its number
        self._attributes: dict[int, int] = {}  # id of a mapping -> its number
        self._signatures: dict[Computation, tuple[int, Signature]] = {}
        self._values: dict[Any, int] = {}  # shape, attributes or signature -> number
        self._kept: list[object] = []  # keeps alive what is known by its id

    def begin_computation(self) -> None:
        """Forget the instructions of the last computation."""
        self._numbers = {}

    def check(self, instruction: Instruction) -> bool:
        """Report what is wrong with one instruction, if anything.

        Returns whether all operands were checked before it in this computation.
        """
        opcode, shape, operands = (
            instruction.opcode,
            instruction.shape,
            instruction.operands,
        )
        number = self._shapes.get(id(shape))
        if number is None:
            number = self._number_shape(instruction, shape)
        numbers = self._numbers
        if not operands:
            numbers[instruction] = number
            leaf = _LEAVES.get(opcode)
            if leaf is not None and leaf(instruction):
                return True
        attributes = self._attributes.get(id(instruction.attributes))
        if attributes is None:
            attributes = self._number_attributes(instruction.attributes)
        try:
            key = (opcode, number, attributes, *map(numbers.__getitem__, operands))
        except KeyError:
            self._is_good(instruction)
            numbers[instruction] = number
            return False
        numbers[instruction] = number
        if instruction.called_computations:
            called = map(self._signature, instruction.called_computations)
            key = (*key, *(found[0] for found in called))
        if key not in self._good and self._is_good(instruction):
            self._good.add(key)
        return True

    # -- numbers of equal things ---------------------------------------------

    def _number(self, value: Any) -> int:
        return self._values.setdefault(value, len(self._values))

    def _number_shape(self, instruction: Instruction, shape: Shape) -> int:
        number = self._number(shape)
        problem = shape_problem(shape)
        if problem is None:
            self._shapes[id(shape)] = number
            self._kept.append(shape)
        else:  # not remembered: it is reported wherever it appears
            self._report.instruction(instruction, problem)
        return number

    def _number_attributes(self, attributes: Mapping[str, Any]) -> int:
        try:
            number = self._number(tuple(attributes.items()))
        except TypeError:  # a value that cannot be hashed: equal to nothing else
            number = self._number(object())
        self._attributes[id(attributes)] = number
        self._kept.append(attributes)
        return number

    def _signature(self, computation: Computation) -> tuple[int, Signature]:
        found = self._signatures.get(computation)
        if found is None:
            signature = Signature.of(computation)
            number = self._number(
                ("signature", *signature.parameters, signature.result)
            )
            found = self._signatures[computation] = (number, signature)
        return found

    # -- the checks ----------------------------------------------------------

    def _is_good(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        if opcode not in RULES:
            return True
        short_cut = _SHORT_CUTS.get(opcode)
        if short_cut is not None and short_cut(instruction):
            return True
        problem = (
            _called_problem(instruction)
            or self._problem(instruction)
            or _attribute_problem(instruction)
        )
        if problem is not None:
            self._report.instruction(instruction, problem)
        return problem is None

    def _problem(self, instruction: Instruction) -> str | None:
        stated = instruction.shape
        op = Operation(
            instruction.opcode,
            tuple(map(_shape_of, instruction.operands)),
            instruction.attributes,
            tuple(self._signature(c)[1] for c in instruction.called_computations),
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


def _called_problem(instruction: Instruction) -> str | None:
    count = len(instruction.called_computations)
    least, most = _CALLED[instruction.opcode]
    if count < least or (most is not None and count > most):
        wanted = str(least) if least == most else f"at least {least}"
        return f"{instruction.opcode} calls {wanted} computations, not {count}"
    return None


def _attribute_problem(instruction: Instruction) -> str | None:
    opcode = instruction.opcode
    for name in _REQUIRED[opcode]:
        if name not in instruction.attributes:
            return f"{opcode}: attribute {name} is missing"
    return None


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
