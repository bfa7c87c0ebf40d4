"""Random numbers: counter-based generators and the stateful opcodes.

Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC'11) for
Threefry-2x32 and Philox-4x32; `xla/hlo/builder/lib/prng.cc` for how counters map to
elements.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.literal import numpy_dtype
from msa.hlo.shape import Shape
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import Array, fitter
from msa.runtime.evaluator.registry import Kernel, kernel, unsupported

_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = np.uint32(0x1BD11BDA)
_PHILOX_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_STEPS: Final = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))


def _split(x: Any) -> tuple[Array, Array]:
    """Low and high words of u64."""
    x = np.asarray(x, dtype=np.uint64)
    return (x & _LOW).astype(np.uint32), (x >> _HALF).astype(np.uint32)


def _join(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << _HALF)


def threefry(key: Any, counter: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds; key and counters are u64, low word first.

    >>> [hex(int(x[0])) for x in threefry(np.uint64(0), np.zeros(1, np.uint64))]
    ['0x6b200159', '0x99ba4efe']
    """
    k0, k1 = _split(key)
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = _split(counter)
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))
            x1 = x1 ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def philox(key: Any, counter: tuple[Array, Array]) -> tuple[Array, ...]:
    """Philox-4x32 with 10 rounds; counters are (low, high) u64 pairs."""
    k0, k1 = _split(key)
    x0, x1 = _split(counter[0])
    x2, x3 = _split(counter[1])
    for _ in range(10):
        low0, high0 = _split(x0.astype(np.uint64) * _PHILOX_MULTIPLIERS[0])
        low1, high1 = _split(x2.astype(np.uint64) * _PHILOX_MULTIPLIERS[1])
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = k0 + _PHILOX_STEPS[0], k1 + _PHILOX_STEPS[1]
    return x0, x1, x2, x3


@kernel("rng-bit-generator")
def _rng_bit_generator(instruction: Instruction, context: Context) -> Kernel:
    del context
    algorithm = instruction.attributes["algorithm"]
    if not instruction.shape.is_tuple or len(instruction.shape.children) != 2:
        raise unsupported(instruction, "without a (state, bits) result")
    shape = instruction.shape.children[1]
    kind = shape.element_type
    if not kind.is_integral or kind.bits < 8:
        raise unsupported(instruction, f"bits of type {kind.name}")
    state_shape = instruction.operands[0].shape
    generate = _threefry_bits if algorithm == "rng_three_fry" else _philox_bits

    def run(state: Any) -> tuple[Array, Array]:
        words = np.ascontiguousarray(state).view(np.uint64)
        new, bits = generate(words, shape)
        packed = new.view(numpy_dtype(state_shape.element_type))
        return packed.reshape(state_shape.dimensions), bits

    return run


def _advance(words: Array, count: int) -> Array:
    new = words.copy()
    new[1] = words[1] + np.uint64(count)
    return new


def _threefry_bits(words: Array, shape: Shape) -> tuple[Array, Array]:
    """One counter per u64, or per two u32: halves interleave along one dimension."""
    dimensions = shape.dimensions or (1,)
    dtype = numpy_dtype(shape.element_type)
    if dtype.itemsize == 8:
        count = math.prod(dimensions)
        counter = words[1] + np.arange(count, dtype=np.uint64)
        bits = _join(*threefry(words[0], counter)).astype(dtype)
        return _advance(words, count), bits.reshape(shape.dimensions)
    even = [d for d, n in enumerate(dimensions) if n % 2 == 0]
    axis = even[0] if even else int(np.argmax(dimensions))
    half = list(dimensions)
    half[axis] = -(-half[axis] // 2)
    count = math.prod(half)
    counter = (words[1] + np.arange(count, dtype=np.uint64)).reshape(half)
    pair = np.stack(threefry(words[0], counter), axis=axis + 1)
    half[axis] *= 2
    cut = (slice(None),) * axis + (slice(0, dimensions[axis]),)
    bits = pair.reshape(half)[cut].astype(dtype)
    return _advance(words, count), bits.reshape(shape.dimensions)


def _philox_bits(words: Array, shape: Shape) -> tuple[Array, Array]:
    """Four u32 (or two u64) in turn from each counter."""
    dtype = numpy_dtype(shape.element_type)
    count = math.prod(shape.dimensions)
    per = 2 if dtype.itemsize == 8 else 4
    blocks = -(-count // per)
    low = words[1] + np.arange(blocks, dtype=np.uint64)
    carry = (low < words[1]).astype(np.uint64)
    # With two words of state the key doubles as the high half of the counter.
    high = words[2 if len(words) > 2 else 0] + carry
    x = philox(words[0], (low, high))
    parts = [_join(x[0], x[1]), _join(x[2], x[3])] if per == 2 else list(x)
    bits = np.stack(parts, axis=1).reshape(-1)[:count]
    return _advance(words, blocks), bits.astype(dtype).reshape(shape.dimensions)


# -- stateful opcodes ------------------------------------------------------------------


@kernel("rng")
def _rng(instruction: Instruction, context: Context) -> Kernel:
    """Deterministic by name and device: the language leaves the values open."""
    shape = instruction.shape
    kind = shape.element_type
    text = f"{instruction.name}/{context.device}"
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    uniform = instruction.attributes["distribution"] == "rng_uniform"
    fit = fitter(kind)
    dtype = numpy_dtype(kind)

    def run(a: Any, b: Any) -> Array:
        generator = np.random.Generator(np.random.PCG64(seed))
        if uniform:
            values = generator.uniform(float(a), float(b), shape.dimensions)
        else:
            values = generator.normal(float(a), float(b), shape.dimensions)
        if not kind.is_floating:
            values = np.floor(values)
        typed = values.astype(dtype)
        return typed if fit is None else np.asarray(fit(typed))

    return run


@kernel("rng-get-and-update-state")
def _rng_state(instruction: Instruction, context: Context) -> Kernel:
    """A counter per instruction, the same in every execution of the module."""
    del context
    delta = int(instruction.attributes["delta"])
    shape = instruction.shape
    if shape.element_type.name != "u64" or shape.dimensions != (2,):
        raise unsupported(instruction, f"a state of 128 bits is u64[2], not {shape}")
    state = [0x7012395]

    def run() -> Array:
        value = np.array([state[0] & (2**64 - 1), state[0] >> 64], dtype=np.uint64)
        state[0] = (state[0] + delta) & (2**128 - 1)
        return value

    return run
