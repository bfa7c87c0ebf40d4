"""Inputs, constants and foreign functions for a proof, from a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.literal import numpy_dtype
from msa.hlo.module import Module
from msa.hlo.shape import Shape, ShapeIndex
from msa.runtime.evaluator.elements import Array, fitter
from msa.runtime.evaluator.values import Value, map_leaves

_WIDE: Final = 32
"""Unsigned integers at least this wide are keys and hashes: all bits are drawn."""


def seed_of(*parts: object) -> int:
    """A 64-bit seed that depends on all parts, on every platform alike."""
    text = "\x00".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def random_array(shape: Shape, seed: int) -> Array:
    """Contents for an array that keep a program busy.

    Integers are small (they often index), floats are positive and at most 1: sums,
    roots, logarithms and quotients stay finite, and a NaN hides nothing.
    """
    kind = shape.element_type
    sizes = shape.dimensions
    chance = np.random.Generator(np.random.PCG64(seed))
    dtype = numpy_dtype(kind)
    values: Array
    if kind.name == "pred":
        values = chance.integers(0, 2, sizes).astype(bool)
    elif kind.family == "unsigned" and kind.bits >= _WIDE:
        values = chance.integers(0, 2**kind.bits, sizes, dtype=dtype)
    elif kind.is_integral:
        top = min(13, 2 ** (kind.bits - 1) - 1)
        low = -2 if kind.family == "signed" and kind.bits > 2 and sizes else 0
        values = chance.integers(low, max(low + 1, top), sizes).astype(dtype)
    elif kind.is_complex:
        real, imaginary = chance.uniform(0.0625, 1, (2, *sizes))
        values = (real + 1j * imaginary).astype(dtype)
    else:
        values = chance.uniform(0.0625, 1, sizes).astype(dtype)
    fit = fitter(kind)
    return np.asarray(values if fit is None else fit(values))


def random_inputs(module: Module, seed: int) -> list[Value]:
    """One random value per entry parameter.

    >>> import msa
    >>> text = "ENTRY e { x = s32[2] parameter(0) ROOT y = s32[2] negate(x) }"
    >>> random_inputs(msa.parse(text), 0)[0].shape
    (2,)
    """

    def value(number: int, shape: Shape) -> Value:
        def leaf(index: ShapeIndex, node: Shape) -> Value:
            if not node.is_array:
                return None
            return random_array(node.as_array, seed_of(seed, "input", number, index))

        return map_leaves(shape, leaf)

    return [value(i, p.shape) for i, p in enumerate(module.entry.parameters)]


def elided_contents(seed: int) -> Callable[[Instruction, Shape], Array]:
    """Contents of constants that text left out; they depend on the name only."""

    def contents(instruction: Instruction, shape: Shape) -> Array:
        return random_array(shape, seed_of(seed, "constant", instruction.name, shape))

    return contents


def stand_in(instruction: Instruction) -> Callable[..., Value]:
    """A pure function for a custom call that nobody can run.

    Its results depend on the target and on every bit of the operands, so that a
    wrong byte shows.
    """
    target = instruction.attributes.get("custom_call_target", "")
    shape = instruction.shape

    def call(*operands: Any) -> Value:
        digest = hashlib.blake2b(str(target).encode(), digest_size=8)
        stack = list(operands)
        while stack:
            item = stack.pop()
            if isinstance(item, tuple):
                stack.extend(item)
            elif item is not None:
                digest.update(np.ascontiguousarray(item).tobytes())
        seed = int.from_bytes(digest.digest(), "big")

        def leaf(index: ShapeIndex, node: Shape) -> Value:
            if not node.is_array:
                return None
            return random_array(node.as_array, seed_of(seed, index))

        return map_leaves(shape, leaf)

    return call
