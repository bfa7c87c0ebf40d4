"""Tuples of tuples: how several arrays are packed into one value."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape, ShapeIndex
from msa.testing.random_modules.scope import Scope

Tree = tuple["int | Tree", ...]
"""A tuple of numbers of arrays, and of tuples of them."""


@dataclass(frozen=True, slots=True)
class Nest:
    """A tuple that holds arrays 0, 1, …, in this order, some in tuples of their own.

    >>> Nest.flat(3).tree, Nest((0, (1, (2,)))).paths()
    ((0, 1, 2), [(0,), (1, 0), (1, 1, 0)])
    """

    tree: Tree

    @staticmethod
    def flat(count: int) -> Nest:
        """All arrays side by side."""
        return Nest(tuple(range(count)))

    @staticmethod
    def choose(scope: Scope, count: int) -> Nest:
        """A tuple of so many arrays; nested now and then (see the option)."""
        chance = scope.shop.options.nesting
        if not chance or scope.random.random() >= chance:
            return Nest.flat(count)
        return Nest(_grouped(scope.random, tuple(range(count))))

    def paths(self) -> list[ShapeIndex]:
        """Where each array lies."""
        found: dict[int, ShapeIndex] = {}
        work: list[tuple[ShapeIndex, int | Tree]] = [((), self.tree)]
        while work:
            path, node = work.pop()
            if isinstance(node, int):
                found[node] = path
            else:
                work.extend(((*path, i), x) for i, x in enumerate(node))
        return [found[number] for number in range(len(found))]

    def shape(self, shapes: Sequence[Shape]) -> Shape:
        """The shape of the whole."""
        return _shape(self.tree, shapes)

    def pack(self, scope: Scope, arrays: Sequence[Instruction]) -> Instruction:
        """Emit the tuples that hold the arrays."""
        return _pack(self.tree, scope, arrays)


def _grouped(chance: random.Random, numbers: Tree) -> Tree:
    """Put some run of neighbours into a tuple of its own, perhaps twice."""
    for _ in range(chance.randrange(1, 3)):
        first = chance.randrange(len(numbers))
        last = chance.randrange(first, len(numbers)) + 1
        numbers = (*numbers[:first], numbers[first:last], *numbers[last:])
    return numbers


def _shape(node: int | Tree, shapes: Sequence[Shape]) -> Shape:
    if isinstance(node, int):
        return shapes[node]
    return Shape.tuple_of(*(_shape(x, shapes) for x in node))


def _pack(node: int | Tree, scope: Scope, arrays: Sequence[Instruction]) -> Instruction:
    if isinstance(node, int):
        return arrays[node]
    parts = [_pack(x, scope, arrays) for x in node]
    return scope.emit("tuple", Shape.tuple_of(*(x.shape for x in parts)), parts)


def reach(scope: Scope, whole: Instruction, path: ShapeIndex) -> Instruction:
    """The get-tuple-elements that lead to a part."""
    for index in path:
        shape = whole.shape.children[index]
        whole = scope.emit("get-tuple-element", shape, [whole], {"index": index})
    return whole
