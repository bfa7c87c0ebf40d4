"""Opcodes that move, repeat or rename data without computing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msa.hlo.instruction import Instruction
from msa.hlo.literal import numpy_dtype
from msa.hlo.shape import Shape
from msa.runtime.evaluator.context import Context
from msa.runtime.evaluator.elements import (
    Array,
    code_dtype,
    fitted,
    from_codes,
    to_codes,
)
from msa.runtime.evaluator.registry import Kernel, kernel
from msa.runtime.evaluator.values import (
    from_bytes,
    logical,
    map_leaves,
    packed,
    physical,
    to_bytes,
    unpacked,
    zeros,
)


@kernel("constant")
def _constant(instruction: Instruction, context: Context) -> Kernel:
    literal = instruction.attributes["literal"]
    if literal.is_elided:
        value = map_leaves(
            instruction.shape,
            lambda _, shape: (
                context.elided_contents(instruction, shape) if shape.is_array else None
            ),
        )
    else:
        value = literal.to_numpy()
    return lambda: value


@kernel("iota")
def _iota(instruction: Instruction, context: Context) -> Kernel:
    del context
    shape = instruction.shape
    dimension = instruction.attributes["iota_dimension"]
    kind = shape.element_type
    count = np.arange(shape.dimensions[dimension])
    row = fitted(kind, lambda x: x.astype(numpy_dtype(kind)))(count)
    sizes = [1] * len(shape.dimensions)
    sizes[dimension] = len(count)
    value = np.broadcast_to(np.asarray(row).reshape(sizes), shape.dimensions)
    return lambda: value


@kernel("broadcast")
def _broadcast(instruction: Instruction, context: Context) -> Kernel:
    del context
    target = instruction.shape.dimensions
    dimensions = instruction.attributes.get("dimensions", ())
    source = instruction.operands[0].shape.dimensions
    order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    sizes = [1] * len(target)
    for i in order:
        sizes[dimensions[i]] = source[i]
    in_order = order == list(range(len(order)))

    def run(x: Any) -> Array:
        x = np.asarray(x)
        if not in_order:
            x = x.transpose(order)
        return np.broadcast_to(x.reshape(sizes), target)

    return run


@kernel("reshape", "dynamic-reshape")
def _reshape(instruction: Instruction, context: Context) -> Kernel:
    del context
    target = instruction.shape.dimensions
    return lambda x, *_: np.reshape(x, target)


@kernel("transpose")
def _transpose(instruction: Instruction, context: Context) -> Kernel:
    del context
    order = instruction.attributes["dimensions"]
    return lambda x: np.transpose(x, order)


@kernel("reverse")
def _reverse(instruction: Instruction, context: Context) -> Kernel:
    del context
    axes = instruction.attributes["dimensions"]
    return lambda x: np.flip(x, axes)


@kernel("slice")
def _slice(instruction: Instruction, context: Context) -> Kernel:
    del context
    cut = tuple(slice(*limits) for limits in instruction.attributes["slice"])
    return lambda x: np.asarray(x)[cut]


@kernel("concatenate")
def _concatenate(instruction: Instruction, context: Context) -> Kernel:
    del context
    axis = instruction.attributes["dimensions"][0]
    return lambda *parts: np.concatenate(parts, axis)


@kernel("pad")
def _pad(instruction: Instruction, context: Context) -> Kernel:
    """Padding may be negative (it cuts) and interior (between elements)."""
    del context
    padding = instruction.attributes["padding"]
    target = instruction.shape.dimensions
    source = instruction.operands[0].shape.dimensions
    to: list[slice] = []
    out_of: list[slice] = []
    for size, limit, (low, _, interior) in zip(source, target, padding, strict=True):
        # Element i lands at low + i * step; keep those within [0, limit).
        step = interior + 1
        first = max(0, -(low // step)) if low < 0 else 0
        end = min(size, (limit - 1 - low) // step + 1) if limit > 0 else first
        end = max(first, end)
        out_of.append(slice(first, end))
        start = low + first * step
        stop = start + (end - first - 1) * step + 1 if end > first else start
        to.append(slice(start, stop, step) if end > first else slice(0, 0))

    def run(x: Any, value: Any) -> Array:
        out = np.full(target, value, dtype=np.asarray(x).dtype)
        out[tuple(to)] = np.asarray(x)[tuple(out_of)]
        return out

    return run


# -- reinterpretation ------------------------------------------------------------


@kernel("bitcast")
def _bitcast(instruction: Instruction, context: Context) -> Kernel:
    """The same bytes under another shape: layouts of both sides count."""
    del context
    source = instruction.operands[0].shape
    target = instruction.shape
    if not (source.is_array and target.is_array):
        return lambda x: x
    source, target = source.as_array, target.as_array
    if source.element_type is target.element_type and not _packed(source, target):
        return lambda x: logical(target, physical(source, np.asarray(x)).reshape(-1))
    count = target.byte_size()
    return lambda x: from_bytes(target, to_bytes(source, x)[:count])


def _packed(source: Shape, target: Shape) -> bool:
    """Whether the two sides pack their elements differently."""

    def width(shape: Shape) -> int:
        return shape.layout.element_size_in_bits if shape.layout else 0

    return width(source) != width(target)


@kernel("bitcast-convert")
def _bitcast_convert(instruction: Instruction, context: Context) -> Kernel:
    """Bit patterns read as another type; a width change adds or drops a dimension."""
    del context
    source = instruction.operands[0].shape.element_type
    target = instruction.shape.element_type
    dimensions = instruction.shape.dimensions
    if source.bits == target.bits:
        kind = code_dtype(target)
        return lambda x: from_codes(
            target, np.asarray(to_codes(source, np.asarray(x)), order="C").view(kind)
        )
    count = math.prod(dimensions)

    def run(x: Any) -> Array:
        codes = np.ascontiguousarray(to_codes(source, np.asarray(x))).reshape(-1)
        data = codes.view(np.uint8)
        if source.bits < 8:
            data = packed(data, source.bits)
        if target.bits < 8:
            data = unpacked(data, target.bits, count)
        return from_codes(target, data.view(code_dtype(target)).reshape(dimensions))

    return run


# -- tuples and tokens -------------------------------------------------------------


@kernel("tuple")
def _tuple(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda *parts: parts


@kernel("get-tuple-element")
def _element(instruction: Instruction, context: Context) -> Kernel:
    del context
    index = instruction.attributes["index"]
    return lambda x: x[index]


@kernel("add-dependency")
def _first(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda x, *_: x


@kernel("after-all")
def _token(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda *_: None


@kernel("get-dimension-size")
def _dimension_size(instruction: Instruction, context: Context) -> Kernel:
    del context
    axis = instruction.attributes["dimensions"][0]
    return lambda x: np.int32(np.shape(x)[axis])


@kernel("set-dimension-size")
def _set_dimension_size(instruction: Instruction, context: Context) -> Kernel:
    """A static size that equals the bound changes nothing; others need real shapes."""
    del context
    axis = instruction.attributes["dimensions"][0]

    def run(x: Any, size: Any) -> Array:
        if int(size) == np.shape(x)[axis]:
            return np.asarray(x)
        cut = [slice(None)] * np.ndim(x)
        cut[axis] = slice(0, max(0, int(size)))
        return np.asarray(x)[tuple(cut)]

    return run


@kernel("partition-id")
def _partition(instruction: Instruction, context: Context) -> Kernel:
    del instruction
    value = np.uint32(context.partition_id)
    return lambda: value


@kernel("replica-id")
def _replica(instruction: Instruction, context: Context) -> Kernel:
    del instruction
    value = np.uint32(context.replica_id)
    return lambda: value


@kernel("infeed")
def _infeed(instruction: Instruction, context: Context) -> Kernel:
    shape = instruction.shape.subshape((0,))

    def run(*_: Any) -> Any:
        if context.infeed is not None:
            return context.infeed(shape), None
        return map_leaves(shape, zeros), None

    return run


@kernel("outfeed")
def _outfeed(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda *_: None


# -- native asynchronous copies ------------------------------------------------------


@kernel("copy-start")
def _copy_start(instruction: Instruction, context: Context) -> Kernel:
    context_value = np.uint32(0)
    mover = context.mover
    if mover is not None:
        return lambda x: (mover.start(instruction, x), x, context_value)
    return lambda x: (x, x, context_value)


@kernel("copy-done")
def _copy_done(instruction: Instruction, context: Context) -> Kernel:
    mover = context.mover
    if mover is None:
        return lambda started: started[0]

    def finish(started: Any) -> Any:
        mover.finish(instruction, started[0])
        return started[0]

    return finish


@kernel("all-gather-done", "collective-permute-done")
def _second(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda started: started[1]


@kernel("all-reduce-done")
def _whole(instruction: Instruction, context: Context) -> Kernel:
    del instruction, context
    return lambda started: started
