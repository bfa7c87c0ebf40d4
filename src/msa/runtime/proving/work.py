"""How much work an execution is, counted from shapes."""

from __future__ import annotations

import math
from typing import Any, Final

from msa.analysis.trip_counts import TripCounts
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module

_UNKNOWN_TRIPS: Final = 100
_CALL: Final = 10_000
"""Elements whose computation costs as much as one call of numpy."""

_PRODUCTS_PER_ELEMENT: Final = 16
"""Multiplications in a matrix product that cost as much as one element."""

_COSTLY: Final = frozenset(
    [
        "exponential",
        "log",
        "tanh",
        "sine",
        "cosine",
        "tan",
        "power",
        "logistic",
        "erf",
        "exponential-minus-one",
        "log-plus-one",
        "atan2",
        "cbrt",
        "sort",
        "gather",
        "scatter",
        "reduce-window",
    ]
)
_FREE: Final = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast"}
)


def work_of(module: Module) -> float:
    """Elements computed by one execution, other costs converted to elements.

    Loops count by their trip counts, branches all together. Linear in the size of
    the module.
    """
    trips = TripCounts.run(module)
    times: dict[Computation, float] = {module.entry: 1.0}
    total = 0.0
    for computation in reversed(module.computation_post_order()):
        count = times.get(computation, 0.0)
        if not count:
            continue
        for instruction in computation.instructions:
            if instruction.opcode not in _FREE:
                total += count * (_CALL + _elements(instruction))
            inner = count
            if instruction.opcode == "while":
                known = trips.of(instruction)
                inner *= _UNKNOWN_TRIPS if known is None else known
            if instruction.opcode in _CALLERS:
                for callee in instruction.called_computations:
                    times[callee] = times.get(callee, 0.0) + inner
    return total


_CALLERS: Final = frozenset({"call", "while", "conditional", "fusion", "async-start"})


def _elements(instruction: Instruction) -> Any:
    opcode = instruction.opcode
    if opcode in _CALLERS:
        return 0.0
    size = float(
        sum(math.prod(leaf.dimensions) for _, leaf in instruction.shape.leaves())
    )
    if opcode == "dot":
        lhs = instruction.operands[0].shape.dimensions
        axes = instruction.attributes.get("lhs_contracting_dims", ())
        return size * (1.0 + math.prod(lhs[d] for d in axes) / _PRODUCTS_PER_ELEMENT)
    if opcode == "convolution":
        kernel = instruction.operands[1].shape
        outs = kernel.dimensions[
            instruction.attributes["dim_labels"].kernel_output_feature
        ]
        per = kernel.element_count / max(1, outs)
        return size * (1 + per / _PRODUCTS_PER_ELEMENT)
    if opcode in ("reduce", "select-and-scatter"):
        size += instruction.operands[0].shape.element_count
    if opcode == "custom-call":
        size = sum(x.shape.element_count**1.5 for x in instruction.operands[:1])
    return size * (8 if opcode in _COSTLY else 1)
