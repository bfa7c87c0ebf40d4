"""Results in the place of an operand: which are safe, and how to find the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.opcode import OPCODES
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.elements import Array
from msa.runtime.evaluator.values import Value
from msa.runtime.machine.blocks import Block, Reference

_OWN_ALGORITHM: Final = frozenset(
    {"custom-call", "sort", "cholesky", "triangular-solve", "dynamic-update-slice"}
)
"""Operations whose in-place form is an algorithm of its own, not a loop of elements."""

_TILE: Final = 4099
"""Random decisions are drawn for this many elements and repeated (a prime)."""


@dataclass(frozen=True, slots=True)
class Output:
    """A result before it is written.

    Attributes:
        index, shape: of the result.
        block: destination.
        data: its bytes.
    """

    index: ShapeIndex
    shape: Shape
    block: Block
    data: Array


def references_in(values: Sequence[Value]) -> list[Reference]:
    """All references in some values."""
    found = []
    stack = list(values)
    while stack:
        item = stack.pop()
        if isinstance(item, Reference):
            found.append(item)
        elif isinstance(item, tuple):
            stack.extend(item)
    return found


def is_pointwise(instruction: Instruction) -> bool:
    """Whether writing the result over an operand of equal shape is known to be safe."""
    if instruction.opcode in _OWN_ALGORITHM:
        return True
    info = OPCODES.get(instruction.opcode)
    if info is None or not info.elementwise:
        return False
    result = instruction.shape.as_array
    return all(
        x.shape.as_array.dimensions == result.dimensions
        and x.shape.as_array.layout == result.layout
        for x in instruction.operands
    )


def reads_elementwise(instruction: Instruction, number: int) -> bool:
    """Whether each result element depends on the same element of one operand only.

    Fusions are followed from the parameter through elementwise operations and tuples.
    """
    if instruction.opcode != "fusion":
        return is_pointwise(instruction)
    parameter = instruction.fused_computation.parameters[number]
    seen = {parameter}
    stack = [parameter]
    while stack:
        for user in stack.pop().users:
            if user.opcode != "tuple" and (
                user.opcode in _OWN_ALGORITHM or not is_pointwise(user)
            ):
                return False
            if user not in seen:
                seen.add(user)
                stack.append(user)
    return True


class HalfMasks:
    """A random half of the elements of each result.

    Results with as many elements share the choice: a fused loop computes elements of
    the same number together.
    """

    __slots__ = ("_chance", "_masks")

    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
        self._masks: dict[int, Array] = {}

    @property
    def counts(self) -> frozenset[int]:
        """Numbers of elements for which a choice was made."""
        return frozenset(self._masks)

    def mask(self, count: int) -> Array:
        """True for the elements that are written first."""
        found = self._masks.get(count)
        if found is None:
            tile = self._chance.random(min(count, _TILE)) < 0.5
            found = self._masks[count] = np.resize(tile, count)
        return found

    def _rows(self, output: Output) -> tuple[Array, Array]:
        """The bytes, a row per element, and the choice among rows."""
        count = max(1, output.shape.as_array.element_count)
        if len(output.data) % count:
            return output.data.reshape(-1, 1), self.mask(len(output.data))
        return output.data.reshape(count, -1), self.mask(count)

    def write_half(self, view: Array, output: Output) -> None:
        """Write the first half of a result."""
        rows, mask = self._rows(output)
        view.reshape(rows.shape)[mask] = rows[mask]

    def rest_agrees(self, first: Output, second: Output) -> bool:
        """Whether the other half is the same in two computations."""
        rows, mask = self._rows(first)
        again, _ = self._rows(second)
        return bool(np.array_equal(rows[~mask], again[~mask]))
