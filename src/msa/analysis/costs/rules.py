"""Costs of each opcode, fusions and called computations aside.

A rule changes the default (all operands read, the whole result written) and says
whether the instruction takes time of its own.

Source: `xla/service/hlo_cost_analysis.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msa.analysis.costs.properties import (
    OUT,
    Properties,
    count,
    operand_key,
    output_key,
    single,
    utilization_key,
)
from msa.analysis.costs.windows import (
    convolution_flops,
    reduce_window_counts,
    window_size,
)
from msa.hlo.instruction import Instruction
from msa.hlo.opcode import OPCODES
from msa.hlo.shape import Shape
from msa.hlo.window import Window

if TYPE_CHECKING:
    from msa.analysis.costs.costs import InstructionCosts

Rule = Callable[["InstructionCosts", Instruction, Properties], bool]

TRANSCENDENTAL: Final = frozenset(
    {
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan2",
        "atanh",
        "cbrt",
        "cosine",
        "cosh",
        "erf",
        "exponential",
        "exponential-minus-one",
        "log",
        "log-plus-one",
        "logistic",
        "power",
        "rsqrt",
        "sine",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    }
)
ELEMENTWISE: Final = frozenset(
    {name for name, info in OPCODES.items() if info.elementwise}
) - {"copy", "constant", "rng", "map"}
"""Opcodes that cost one operation per element of the result."""


def first_element(shape: Shape) -> Shape:
    """A shape, or element 0 of a tuple."""
    return shape.children[0] if shape.is_tuple and shape.children else shape


def _ratio(a: int, b: int) -> float:
    return single(a / b) if b else 0.0


# -- operations that move no data ------------------------------------------------


def _free(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    p.bytes_accessed = 0.0
    p.keyed[OUT] = 0.0
    for i in range(len(x.operands)):
        p.keyed[operand_key(i)] = 0.0
    return False


def _bitcast(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    p.bytes_accessed = 0.0
    p.keyed[OUT] = 0.0
    p.keyed[operand_key(0)] = 0.0
    return True


def is_effective_bitcast(x: Instruction) -> bool:
    """Whether a transpose only renames dimensions."""
    source, result = x.operands[0].shape, x.shape
    if source.element_type is not result.element_type:
        return False
    if source.layout is None or result.layout is None:
        return False
    dimensions = x.attributes["dimensions"]
    return all(
        a == dimensions[b]
        for a, b in zip(
            source.layout.minor_to_major, result.layout.minor_to_major, strict=True
        )
    )


def _transpose(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    return _bitcast(costs, x, p) if is_effective_bitcast(x) else True


def _tuple(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    p.bytes_accessed = p.keyed[OUT] = count(costs.size(x.shape))
    for i in range(len(x.operands)):
        p.keyed[operand_key(i)] = 0.0
    return True


# -- slices ------------------------------------------------------------------------


def _slice(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    size = costs.size(x.shape)
    p.bytes_accessed = count(2 * size)
    p.keyed[OUT] = p.keyed[operand_key(0)] = count(size)
    p.keyed[utilization_key(0)] = _ratio(
        x.shape.element_count, x.operands[0].shape.element_count
    )
    return True


def _dynamic_slice(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    size = costs.size(x.shape)
    index = costs.size(x.operands[1].shape) if len(x.operands) > 1 else 0
    _slice(costs, x, p)
    p.bytes_accessed = count(2 * size + index)
    if len(x.operands) > 1:
        p.keyed[operand_key(1)] = count(index)
    return True


def _dynamic_update_slice(
    costs: InstructionCosts, x: Instruction, p: Properties
) -> bool:
    update = x.operands[1].shape
    size = costs.size(update)
    index = costs.size(x.operands[2].shape) if len(x.operands) > 2 else 0
    p.bytes_accessed = count(2 * size + index)
    p.keyed[OUT] = p.keyed[operand_key(1)] = count(size)
    p.keyed[operand_key(0)] = 0.0
    if len(x.operands) > 2:
        p.keyed[operand_key(2)] = count(index)
    whole = x.shape.element_count
    p.keyed[utilization_key(0)] = _ratio(whole - update.element_count, whole)
    return True


def gather_rule(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    """Reads as much as it writes, and the indices."""
    size, indices = costs.size(x.shape), costs.size(x.operands[1].shape)
    p.bytes_accessed = count(2 * size + indices)
    p.keyed[OUT] = p.keyed[operand_key(0)] = count(size)
    p.keyed[operand_key(1)] = count(indices)
    p.keyed[utilization_key(0)] = _ratio(
        x.shape.element_count, x.operands[0].shape.element_count
    )
    return True


def scatter_rule(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    """Reads, combines and writes as much as the updates."""
    n = len(x.operands) // 2
    sizes = [costs.size(x.operands[n + 1 + i].shape) for i in range(n)]
    indices = costs.size(x.operands[n].shape)
    for i, size in enumerate(sizes):
        p.keyed[operand_key(i)] = p.keyed[operand_key(n + 1 + i)] = count(size)
    p.keyed[operand_key(n)] = count(indices)
    p.bytes_accessed = count(3 * sum(sizes) + indices)
    p.keyed[OUT] = count(sum(sizes))
    _apply(costs, x, p, x.operands[n + 1].shape.element_count)
    return True


def _broadcast(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    if costs.options.count_multiple_input_accesses:
        p.keyed[operand_key(0)] = count(costs.size(x.shape))
        p.keyed[utilization_key(0)] = _ratio(
            x.shape.element_count, x.operands[0].shape.element_count
        )
    return True


# -- arithmetic --------------------------------------------------------------------


def _dot_flops(x: Instruction, elements: int) -> int:
    lhs = x.operands[0].shape.as_array.dimensions
    contracted: int = math.prod(
        lhs[d] for d in x.attributes.get("lhs_contracting_dims", ())
    )
    return 2 * elements * contracted


def _dot(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    p.flops = count(_dot_flops(x, x.shape.element_count))
    return True


def _ragged_dot(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    groups = len(x.attributes.get("rhs_group_dims", ()))
    # Dimension i is deleted for i = 0, 1, … of what is left each time.
    dimensions = list(x.shape.dimensions)
    for i in range(groups):
        if i < len(dimensions):
            del dimensions[i]
    p.flops = count(_dot_flops(x, math.prod(dimensions)))
    return True


def _convolution(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    p.flops = count(convolution_flops(x))
    return True


def _fft(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    log = math.prod(n.bit_length() - 1 for n in x.attributes["fft_length"] if n > 0)
    p.flops = count(8 * log * first_element(x.operands[0].shape).element_count)
    return True


def _triangular_solve(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    a, b = x.operands[0].shape, x.operands[1].shape
    out = costs.size(x.shape)
    p.keyed[OUT] = count(out)
    p.keyed[operand_key(0)] = count(costs.size(b))
    p.bytes_accessed = count(out + costs.size(a) // 2 + costs.size(b))
    p.flops = count(2 * (a.dimensions[-1] if a.dimensions else 1) * b.element_count)
    return True


def _cholesky(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    a = x.operands[0].shape
    size = costs.size(a)
    p.keyed[OUT] = p.keyed[operand_key(0)] = count(size // 2)
    p.bytes_accessed = count(size)
    rows = a.dimensions[-1] if a.dimensions else 1
    p.flops = count(rows * a.element_count // 3)
    return True


def _sort(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    elements = x.operands[0].shape.element_count
    log = (elements - 1).bit_length() if elements > 0 else 0
    p.flops = count(elements * log)
    return True


def _rng(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    p.transcendentals = count(first_element(x.shape).element_count)
    return True


def _rng_bits(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    p.transcendentals = count(
        sum(leaf.element_count for _, leaf in x.shape.leaves() if leaf.is_array)
    )
    return True


# -- operations that apply a computation ---------------------------------------------


def _apply(costs: InstructionCosts, x: Instruction, p: Properties, times: int) -> None:
    """Operations of the applied computation, so many times."""
    if not x.called_computations:
        return
    body = costs.totals(x.called_computations[0])
    factor = count(times)
    p.flops = single(body.flops * factor)
    p.transcendentals = single(body.transcendentals * factor)


def _map(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    _apply(costs, x, p, x.shape.element_count)
    return True


def _reduce(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    inputs = x.operands[0].shape.element_count
    _apply(costs, x, p, inputs - first_element(x.shape).element_count)
    return True


def _scan(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    if len(x.operands) > 1:
        _apply(costs, x, p, x.operands[1].shape.element_count)
    return True


def _reduce_window(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    size, times = reduce_window_counts(x)
    if costs.options.count_multiple_input_accesses:
        result = first_element(x.shape)
        source = x.operands[0].shape
        touched = result.element_count * size
        p.keyed[utilization_key(0)] = _ratio(touched, source.element_count)
        p.keyed[operand_key(0)] = count(touched * result.element_type.byte_width)
    _apply(costs, x, p, times)
    return True


def _select_and_scatter(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    elements = x.operands[1].shape.element_count
    window: Window = x.attributes.get("window", Window())
    chosen = count(elements * (window_size(window) - 1))
    for callee, times in zip(
        x.called_computations, (chosen, count(elements)), strict=False
    ):
        body = costs.totals(callee)
        p.flops = single(p.flops + single(body.flops * times))
        p.transcendentals = single(
            p.transcendentals + single(body.transcendentals * times)
        )
    return True


# -- transfers -----------------------------------------------------------------------


def _all_reduce(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    leaves = [leaf for _, leaf in x.shape.leaves() if leaf.is_array]
    out = sum(map(costs.size, leaves))
    p.flops = count(sum(leaf.element_count for leaf in leaves))
    p.keyed[OUT] = count(out)
    p.bytes_accessed = count(out + sum(costs.size(o.shape) for o in x.operands))
    return True


def _infeed(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    total = 0
    for index, leaf in x.shape.leaves():
        size = costs.size(leaf)
        total += size
        p.keyed[output_key(index)] = count(size)
    p.keyed[OUT] = p.bytes_accessed = count(total)
    return True


def _outfeed(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    total = 0
    for i, operand in enumerate(x.operands):
        size = 0
        for index, leaf in operand.shape.leaves():
            part = costs.size(leaf)
            p.keyed[operand_key(i, index)] = count(part)
            size += part
        p.keyed[operand_key(i)] = count(size)
        total += size
    p.bytes_accessed = count(total)
    return True


def _custom_call(costs: InstructionCosts, x: Instruction, p: Properties) -> bool:
    hook = costs.options.custom_call
    stated = hook(x) if hook is not None else None
    if stated is None:
        p.flops = p.bytes_accessed = p.optimal_seconds = p.keyed[OUT] = -1.0
        for i in range(len(x.operands)):
            p.keyed[operand_key(i)] = -1.0
        return False
    p.flops = single(stated.flops)
    p.transcendentals = single(stated.transcendentals)
    if stated.output_bytes is not None:
        p.keyed[OUT] = single(stated.output_bytes)
    total = p[OUT]
    for i in range(len(x.operands)):
        if stated.operand_bytes is not None:
            read = stated.operand_bytes[i] if i < len(stated.operand_bytes) else 0.0
            p.keyed[operand_key(i)] = single(read)
        total += p[operand_key(i)]
    p.bytes_accessed = single(total)
    return True


RULES: Final[dict[str, Rule]] = {
    "add-dependency": _free,
    "after-all": _free,
    "all-reduce": _all_reduce,
    "all-reduce-start": _all_reduce,
    "bitcast": _bitcast,
    "broadcast": _broadcast,
    "cholesky": _cholesky,
    "constant": _free,
    "convolution": _convolution,
    "custom-call": _custom_call,
    "domain": _free,
    "dot": _dot,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "fft": _fft,
    "gather": gather_rule,
    "get-tuple-element": _free,
    "infeed": _infeed,
    "map": _map,
    "outfeed": _outfeed,
    "parameter": _free,
    "ragged-dot": _ragged_dot,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "rng": _rng,
    "rng-bit-generator": _rng_bits,
    "scaled-dot": _dot,
    "scan": _scan,
    "scatter": scatter_rule,
    "select-and-scatter": _select_and_scatter,
    "slice": _slice,
    "sort": _sort,
    "transpose": _transpose,
    "triangular-solve": _triangular_solve,
    "tuple": _tuple,
}
"""Opcodes that differ from the default."""
