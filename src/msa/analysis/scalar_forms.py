"""Scalar expressions of a loop counter, as far as they can be told without running.

An expression is a *form* `(a, b)`, worth `a * i + b` for counter `i`; constants have
`a = 0`. Expressions that are neither linear nor constant have no form.

Source of what is recognised: `xla/service/while_loop_analysis.cc`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from msa.analysis.costs.properties import single
from msa.hlo.instruction import Instruction
from msa.hlo.literal import Literal
from msa.hlo.primitive import PrimitiveType

Number = int | float | bool
Form = tuple[int, Number]
"""`(a, b)`: the value `a * i + b`."""

_MAX_DEPTH: Final = 48
"""Expressions nested deeper than this have no form; bounds the recursion."""

_SAME_VALUE: Final = frozenset({"bitcast", "broadcast", "copy", "reshape"})


@dataclass(frozen=True, slots=True)
class Frame:
    """Where expressions are read: a loop's part, or a fusion within it.

    Attributes:
        state: forms of the elements of the loop's parameter that are known.
        caller: the fusion (or call) whose computation this is, if any.
        outer: where the caller's operands are read.
    """

    state: Mapping[int, Form]
    caller: Instruction | None = None
    outer: Frame | None = None


NO_STATE: Final = Frame({})
"""For expressions outside of loops."""


def form_of(x: Instruction, frame: Frame, depth: int = 0) -> Form | None:
    """The form of a scalar instruction, or None."""
    if depth > _MAX_DEPTH or not x.shape.is_effective_scalar:
        return None
    opcode = x.opcode
    if opcode == "constant":
        return _constant(x)
    if opcode == "parameter":
        if frame.caller is None or frame.outer is None:
            return None
        number = x.parameter_number
        return form_of(frame.caller.operands[number], frame.outer, depth + 1)
    if opcode == "get-tuple-element":
        return _element(x, frame)
    if opcode in _SAME_VALUE:
        return form_of(x.operands[0], frame, depth + 1)
    if opcode in ("fusion", "call"):
        inner = Frame({}, x, frame)
        return form_of(x.called_computations[0].root, inner, depth + 1)
    forms = []
    for operand in x.operands:
        form = form_of(operand, frame, depth + 1)
        if form is None:
            return None
        forms.append(form)
    return _apply(x, forms)


def comparison(
    x: Instruction, frame: Frame, depth: int = 0
) -> tuple[str, Form, Form] | None:
    """Direction and sides of the comparison that a predicate comes down to."""
    if depth > _MAX_DEPTH:
        return None
    if x.opcode in _SAME_VALUE:
        return comparison(x.operands[0], frame, depth + 1)
    if x.opcode in ("fusion", "call"):
        inner = Frame({}, x, frame)
        return comparison(x.called_computations[0].root, inner, depth + 1)
    if x.opcode != "compare":
        return None
    left = form_of(x.operands[0], frame, depth + 1)
    right = form_of(x.operands[1], frame, depth + 1)
    if left is None or right is None:
        return None
    return str(x.attributes["direction"]), left, right


def _element(x: Instruction, frame: Frame) -> Form | None:
    """An element of the loop's state; other tuples are not looked into."""
    source = x.operands[0]
    if source.opcode != "parameter" or frame.caller is not None:
        return None
    return frame.state.get(x.tuple_index)


def _constant(x: Instruction) -> Form | None:
    literal: Literal = x.attributes["literal"]
    kind = x.shape.element_type
    if literal.is_elided or kind.is_complex:
        return None
    value = literal.to_numpy()
    if value is None or isinstance(value, tuple):
        return None
    number: Number = value.reshape(-1)[0].item()
    return (0, number)


def wrap(value: Number, kind: PrimitiveType) -> Number | None:
    """A number as the type holds it; integers wrap around, None if not supported."""
    if kind.name == "pred":
        return bool(value)
    if kind.is_integral:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        bits = kind.bits
        number = int(value) & ((1 << bits) - 1)
        if kind.family == "signed" and number >> (bits - 1):
            number -= 1 << bits
        return number
    if kind.name == "f32":
        return single(value)
    return float(value) if kind.name == "f64" else None


def _apply(x: Instruction, forms: list[Form]) -> Form | None:
    kind = x.shape.element_type
    if all(a == 0 for a, _ in forms):
        value = _evaluate(x, [b for _, b in forms])
        if value is None:
            return None
        wrapped = wrap(value, kind)
        return None if wrapped is None else (0, wrapped)
    if not kind.is_integral or not all(isinstance(b, int) for _, b in forms):
        return None
    opcode = x.opcode
    (a, b) = forms[0]
    if opcode == "convert":
        return (a, b)
    if opcode == "negate":
        return (-a, -b)
    if len(forms) != 2:
        return None
    (c, d) = forms[1]
    if opcode == "add":
        return (a + c, b + d)
    if opcode == "subtract":
        return (a - c, b - d)
    if opcode == "multiply" and not (a and c):
        return (int(a * d + c * b), b * d)
    return None


def _quotient(a: Number, b: Number) -> Number | None:
    if isinstance(a, float) or isinstance(b, float):
        return a / b if b else None
    if not b:
        return None
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


def _remainder(a: Number, b: Number) -> Number | None:
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b) if b else None
    quotient = _quotient(a, b)
    return None if quotient is None else a - quotient * b


_UNARY: Final[dict[str, Callable[[Number], Number]]] = {
    "abs": abs,
    "convert": lambda a: a,
    "negate": operator.neg,
    "sign": lambda a: (a > 0) - (a < 0),
}
_BINARY: Final[dict[str, Callable[[Number, Number], Number | None]]] = {
    "add": operator.add,
    "divide": _quotient,
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "remainder": _remainder,
    "subtract": operator.sub,
}
_BITWISE: Final[dict[str, Callable[[int, int], int]]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_DIRECTIONS: Final[dict[str, Callable[[Number, Number], bool]]] = {
    "EQ": operator.eq,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
    "NE": operator.ne,
}


def _evaluate(x: Instruction, values: list[Number]) -> Number | None:
    """The value of an instruction with known operands, before it is wrapped."""
    opcode = x.opcode
    if opcode == "compare" and len(values) == 2:
        return _DIRECTIONS[x.attributes["direction"]](values[0], values[1])
    if opcode == "not" and len(values) == 1:
        value = values[0]
        if isinstance(value, bool):
            return not value
        return ~value if isinstance(value, int) else None
    if opcode == "select" and len(values) == 3:
        return values[1] if values[0] else values[2]
    if opcode == "clamp" and len(values) == 3:
        return min(max(values[0], values[1]), values[2])
    if len(values) == 1 and opcode in _UNARY:
        return _UNARY[opcode](values[0])
    if len(values) == 2:
        if opcode in _BINARY:
            return _BINARY[opcode](values[0], values[1])
        if opcode in _BITWISE and all(isinstance(v, int) for v in values):
            return _BITWISE[opcode](int(values[0]), int(values[1]))
    return None
