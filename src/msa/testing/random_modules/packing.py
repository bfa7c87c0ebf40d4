"""How the arguments of a branch are packed into its one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape
from msa.testing.random_modules.scope import Scope
from msa.testing.random_modules.steps import element


class Form(Enum):
    """A bare array, a tuple, or a tuple whose first element holds all but the last."""

    BARE = "bare"
    TUPLE = "tuple"
    NESTED = "nested"

    @staticmethod
    def choose(scope: Scope, count: int) -> Form:
        """A form for so many arguments."""
        if not scope.is_unusual():
            return Form.TUPLE
        return Form.BARE if count == 1 else Form.NESTED

    def pack(self, scope: Scope, arguments: Sequence[Instruction]) -> Instruction:
        """The operand that holds the arguments."""
        if self is Form.BARE:
            return arguments[0]
        if self is Form.NESTED:
            inner = Form.TUPLE.pack(scope, arguments[:-1])
            return Form.TUPLE.pack(scope, [inner, arguments[-1]])
        shape = Shape.tuple_of(*(x.shape for x in arguments))
        return scope.emit("tuple", shape, arguments)

    def unpack(self, scope: Scope, shapes: Sequence[Shape]) -> list[Instruction]:
        """The arguments, taken from the parameter of a new computation."""
        if self is Form.BARE:
            return [scope.parameter(shapes[0], 0)]
        if self is Form.NESTED:
            most = Shape.tuple_of(*shapes[:-1])
            whole = scope.parameter(Shape.tuple_of(most, shapes[-1]), 0)
            first = element(scope, whole, 0)
            taken = [element(scope, first, i) for i in range(len(shapes) - 1)]
            return [*taken, element(scope, whole, 1)]
        whole = scope.parameter(Shape.tuple_of(*shapes), 0)
        return [element(scope, whole, i) for i in range(len(shapes))]
