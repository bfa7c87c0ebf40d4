"""What a shape rule sees: one operation without the graph around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from msa.errors import ShapeInferenceError
from msa.hlo.layout import Layout
from msa.hlo.shape import UNBOUNDED, Shape

if TYPE_CHECKING:
    from msa.hlo.computation import Computation
    from msa.hlo.primitive import PrimitiveType


class Signature(NamedTuple):
    """Parameter shapes and result shape of a computation."""

    parameters: tuple[Shape, ...]
    result: Shape

    @classmethod
    def of(cls, computation: Computation) -> Signature:
        """The signature of a computation as it stands; an empty one gives `()`."""
        if computation.root is None:
            return cls((), Shape.tuple_of())
        return cls(
            tuple(p.shape for p in computation.parameters), computation.root.shape
        )

    def __str__(self) -> str:
        parameters = ", ".join(map(dims_text, self.parameters))
        return f"({parameters}) -> {dims_text(self.result)}"


_REQUIRED: Final = object()


class Operation:
    """Opcode, operand shapes, attributes and signatures of one operation.

    Attributes:
        opcode: text name of the opcode.
        operands: shapes of the operands.
        attributes: parsed attributes, see `msa.hlo.instruction.Instruction`.
        called: signatures of the called computations, in their order.
        stated: the result shape that the program states, or None.
    """

    __slots__ = ("attributes", "called", "opcode", "operands", "stated")

    def __init__(
        self,
        opcode: str,
        operands: Sequence[Shape],
        attributes: Mapping[str, Any],
        called: Sequence[Signature] = (),
        stated: Shape | None = None,
    ) -> None:
        self.opcode = opcode
        self.operands = tuple(operands)
        self.attributes = attributes
        self.called = tuple(called)
        self.stated = stated

    # -- failing -------------------------------------------------------------

    def fail(self, message: str, *, hint: str = "") -> NoReturn:
        """Raise the error of this operation."""
        raise ShapeInferenceError(message, opcode=self.opcode, hint=hint)

    def require(self, holds: bool, message: str) -> None:
        """Raise `message` unless the condition holds."""
        if not holds:
            self.fail(message)

    # -- operands ------------------------------------------------------------

    def array(self, number: int) -> Shape:
        """Operand `number`, which must be an array."""
        shape = self.operands[number]
        if shape.element_type.family == "special":
            self.fail(f"operand {number} must be an array, got {shape}")
        return shape

    def arrays(self) -> tuple[Shape, ...]:
        """All operands, which must be arrays."""
        return tuple(self.array(i) for i in range(len(self.operands)))

    def scalar(self, number: int, what: str = "") -> Shape:
        """Operand `number`, which must be an array of rank 0."""
        shape = self.array(number)
        if shape.dimensions:
            self.fail(f"{what or f'operand {number}'} must be a scalar, got {shape}")
        return shape

    def integral(self, number: int, what: str) -> Shape:
        """Operand `number`, which must be an array of integers."""
        shape = self.array(number)
        if not shape.element_type.is_integral:
            self.fail(f"{what} must be of an integral type, got {shape}")
        return shape

    def token(self, number: int) -> Shape:
        """Operand `number`, which must be a token."""
        shape = self.operands[number]
        if not shape.is_token:
            self.fail(f"operand {number} must be a token, got {shape}")
        return shape

    # -- attributes ----------------------------------------------------------

    def attribute(self, name: str, default: Any = _REQUIRED) -> Any:
        """An attribute's value; without a default it must be there."""
        value = self.attributes.get(name, default)
        if value is _REQUIRED:
            self.fail(f"attribute {name} is missing")
        return value

    def integer(self, name: str, default: Any = _REQUIRED) -> int:
        """An attribute that is one integer."""
        value = self.attribute(name, default)
        if isinstance(value, tuple) and len(value) == 1:
            value = value[0]
        if not isinstance(value, int):
            self.fail(f"attribute {name} must be one integer, got {value!r}")
        return value

    def integers(self, name: str, default: Any = _REQUIRED) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        value = self.attribute(name, default)
        if not isinstance(value, tuple) or not all(isinstance(x, int) for x in value):
            self.fail(f"attribute {name} must be a list of integers, got {value!r}")
        return value

    def dimension_numbers(
        self, name: str, rank: int, default: Any = _REQUIRED, *, ascending: bool = False
    ) -> tuple[int, ...]:
        """A list of distinct dimension numbers below `rank`."""
        numbers = self.integers(name, default)
        for number in numbers:
            if not 0 <= number < rank:
                self.fail(f"{name} names dimension {number} of rank {rank}")
        if len(set(numbers)) != len(numbers):
            self.fail(f"{name} repeats a dimension: {list(numbers)}")
        if ascending and list(numbers) != sorted(numbers):
            self.fail(f"{name} must be ascending: {list(numbers)}")
        return numbers

    def signature(self, number: int = 0) -> Signature:
        """Signature of a called computation, which must be there."""
        if number >= len(self.called):
            self.fail("a called computation is missing")
        return self.called[number]


Rule = Callable[[Operation], Shape | None]
"""Result shape of an operation, or None when the text has to state it.

A rule raises `ShapeInferenceError` when the operands, the attributes or a stated
result contradict each other.
"""


# -- small things that many rules need ---------------------------------------


def dims_text(shape: Shape) -> str:
    """A shape's text without layouts, for messages."""
    return shape.to_text(with_layout=False)


def same_size(a: int, b: int) -> bool:
    """Whether two dimensions agree; an unbounded one agrees with any."""
    return a == b or UNBOUNDED in (a, b)


def same_dims(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two lists of dimensions agree."""
    return a == b or (len(a) == len(b) and all(map(same_size, a, b)))


def same_type(a: PrimitiveType, b: PrimitiveType) -> bool:
    """Whether element types agree up to floating-point precision."""
    return a is b or (a.is_floating and b.is_floating)


def same_but_precision(a: Shape, b: Shape) -> bool:
    """Compatible shapes up to floating-point precision and unbounded dimensions."""
    return _agree(a, b, same_type)


def compatible(a: Shape, b: Shape) -> bool:
    """Same kinds, types and dimensions; an unbounded dimension agrees with any.

    Layouts and dynamic flags do not matter.
    """
    return a is b or _agree(a, b, is_)


def _agree(
    a: Shape, b: Shape, types_agree: Callable[[PrimitiveType, PrimitiveType], bool]
) -> bool:
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x is y:
            continue
        if (
            not types_agree(x.element_type, y.element_type)
            or not same_dims(x.dimensions, y.dimensions)
            or len(x.children) != len(y.children)
        ):
            return False
        stack.extend(zip(x.children, y.children, strict=True))
    return True


def higher_precision(a: PrimitiveType, b: PrimitiveType) -> PrimitiveType:
    """The one of two element types that represents more.

    Complex beats real, floating beats integral, wide beats narrow; on a tie the
    first is taken.
    """

    def rank(t: PrimitiveType) -> tuple[bool, bool, int]:
        return t.is_complex, t.is_floating, t.bits

    return b if rank(b) > rank(a) else a


def row_major(
    element_type: PrimitiveType,
    dimensions: Sequence[int],
    dynamic: Sequence[bool] = (),
) -> Shape:
    """An array shape with the default layout."""
    layout = Layout.row_major(len(dimensions))
    return Shape(element_type, tuple(dimensions), tuple(dynamic), layout)


def retyped(shape: Shape, element_type: PrimitiveType) -> Shape:
    """The same array with other elements; a packed width is adjusted or dropped."""
    if element_type is shape.element_type:
        return shape
    layout = shape.layout
    if layout is not None and layout.element_size_in_bits:
        bits = element_type.bits if 1 < element_type.bits < 8 else 0
        layout = replace(layout, element_size_in_bits=bits)
    return Shape(element_type, shape.dimensions, shape.dynamic, layout)


def resized(
    shape: Shape, dimensions: Sequence[int], dynamic: Sequence[bool] = ()
) -> Shape:
    """The same array with other sizes, type and layout kept."""
    return Shape(shape.element_type, tuple(dimensions), tuple(dynamic), shape.layout)


def is_dynamic(shape: Shape, dimension: int) -> bool:
    """Whether a dimension is bounded or unbounded dynamic."""
    return bool(shape.dynamic) and shape.dynamic[dimension]


def flags(shape: Shape) -> tuple[bool, ...]:
    """One dynamic flag per dimension."""
    return shape.dynamic or (False,) * len(shape.dimensions)
