"""Rooflines: what bounds each instruction, and how far it is from the roof."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from math import inf
from typing import Any, Final

from msa.analysis.costs import InstructionCosts
from msa.hlo.instruction import Instruction
from msa.runtime.perf.access import is_coalesced
from msa.runtime.perf.device import DeviceDescription
from msa.runtime.perf.kernels import (
    COLLECTIVE_LAUNCH_SECONDS,
    KERNEL_LAUNCH_SECONDS,
    Launch,
    compute_seconds,
    launch_for,
    matrix_seconds,
    read_seconds,
    total_seconds,
    write_seconds,
)

_MARGIN: Final = 1.1
_COLLECTIVES: Final = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-permute",
        "reduce-scatter",
        "collective-broadcast",
        "ragged-all-to-all",
    }
)


class Bound(StrEnum):
    """What limits an instruction.

    >>> [str(bound) for bound in Bound]
    ['memory', 'compute', 'latency', 'balanced']
    """

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class OperandTraffic:
    """Reading one operand.

    Attributes:
        number: of the operand.
        name: of the instruction that makes it.
        bytes: read; `seconds`: what that takes.
        coalesced: neighbouring threads read neighbouring elements.
    """

    number: int
    name: str
    bytes: float
    seconds: float
    coalesced: bool


@dataclass(frozen=True, slots=True)
class Roofline:
    """One instruction against the roof of its device. Seconds, bytes, operations.

    Attributes:
        name, opcode: of the instruction.
        flops, bytes: arithmetic and traffic.
        intensity: flops / bytes; infinite without traffic, 0 without arithmetic.
        ridge: the intensity at which both bounds meet.
        compute, memory, total: seconds; total lets them overlap.
        bound: what limits it.
        attainable_flops: operations/s under the roof at this intensity.
        achieved: measured operations/s as a share of that; None without measurement.
        operands: traffic by operand; `dominant` is the number of the one that takes
            longest, -1 when writing the result does.
        launch: how it is spread over the device.

    >>> import msa
    >>> module = msa.parse("ENTRY e { p = f32[64] parameter(0) ROOT n = f32[64] negate(p) }")
    >>> row = roofline(
    ...     module.entry.root, DeviceDescription.preset("cpu_like"), InstructionCosts.run(module))
    >>> row.flops, row.bytes, row.intensity
    (64.0, 512.0, 0.125)
    """

    name: str
    opcode: str
    flops: float
    bytes: float
    intensity: float
    ridge: float
    compute: float
    memory: float
    total: float
    bound: Bound
    attainable_flops: float
    achieved: float | None
    operands: tuple[OperandTraffic, ...]
    dominant: int
    written: float
    launch: Launch

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "bound": str(self.bound)}


def roofline(
    instruction: Instruction,
    device: DeviceDescription,
    costs: InstructionCosts,
    *,
    measured_seconds: float | None = None,
) -> Roofline:
    """Classify an instruction.

    Latency: shorter than twice the overhead of a launch, or on fewer blocks than half
    the cores. Memory or compute: one takes 10 % longer than the other. Else balanced.

    Args:
        instruction: any; products of matrices use matrix units.
        device: the device.
        costs: of the instruction's module.
        measured_seconds: gives the achieved share of the attainable rate.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[4096,4096] parameter(0)
    ...   ROOT b = f32[4096,4096] negate(a)
    ... }''')
    >>> device = DeviceDescription.preset("a100_40")
    >>> row = roofline(module.entry.root, device, InstructionCosts.run(module))
    >>> str(row.bound), row.intensity, row.dominant
    ('memory', 0.125, 0)
    """
    properties = costs.properties(instruction)
    flops, traffic = max(0.0, properties.flops), max(0.0, properties.bytes_accessed)
    launch = launch_for(_elements(instruction), device)
    matrix_type = _matrix_type(instruction)
    if matrix_type is None:
        peak = device.peak_flops
        compute = compute_seconds(flops, device, launch)
    else:
        peak = device.matrix_flops(matrix_type)
        compute = matrix_seconds(flops, device, matrix_type)
    operands = tuple(
        _operand(instruction, number, device, launch, costs)
        for number in range(len(instruction.operands))
    )
    written = write_seconds(
        device,
        sum(
            max(0.0, costs.output_bytes(instruction, index))
            for index, _ in instruction.shape.leaves()
        ),
    )
    memory = sum(row.seconds for row in operands) + written
    total = total_seconds(compute, memory)
    intensity = inf if not traffic else flops / traffic
    if not flops:
        intensity = 0.0
    attainable = min(peak, intensity * device.memory_bandwidth)
    achieved = None
    if measured_seconds and attainable:
        achieved = flops / measured_seconds / attainable
    slowest = max(operands, key=lambda row: row.seconds, default=None)
    dominant = -1
    if slowest is not None and slowest.seconds >= written and slowest.seconds > 0:
        dominant = slowest.number
    return Roofline(
        instruction.name,
        instruction.opcode,
        flops,
        traffic,
        intensity,
        peak / device.memory_bandwidth,
        compute,
        memory,
        total,
        classify(compute, memory, total, launch.blocks, device.core_count),
        attainable,
        achieved,
        operands,
        dominant,
        written,
        launch,
    )


def classify(
    compute: float, memory: float, total: float, blocks: int, cores: int
) -> Bound:
    """What limits a kernel of these seconds and blocks.

    >>> str(classify(1e-3, 1e-3, 1.05e-3, 108, 108))
    'balanced'
    """
    if total < 2 * KERNEL_LAUNCH_SECONDS or blocks < cores / 2:
        return Bound.LATENCY
    if memory > _MARGIN * compute:
        return Bound.MEMORY
    if compute > _MARGIN * memory:
        return Bound.COMPUTE
    return Bound.BALANCED


def launch_overhead(instruction: Instruction) -> float:
    """Seconds that starting a kernel takes; sums over whole programs add it."""
    opcode = instruction.opcode.removesuffix("-start")
    return (
        COLLECTIVE_LAUNCH_SECONDS if opcode in _COLLECTIVES else KERNEL_LAUNCH_SECONDS
    )


def _operand(
    instruction: Instruction,
    number: int,
    device: DeviceDescription,
    launch: Launch,
    costs: InstructionCosts,
) -> OperandTraffic:
    operand = instruction.operands[number]
    accessed = size = 0.0
    width = 4.0
    for index, leaf in operand.shape.leaves():
        accessed += max(0.0, costs.operand_bytes(instruction, number, index))
        size += leaf.byte_size()
        if leaf.is_array and leaf.element_type.bits:
            width = leaf.element_type.bits / 8
    coalesced = is_coalesced(instruction, number)
    seconds = read_seconds(
        device,
        launch,
        operand_bytes=size,
        accessed_bytes=accessed,
        element_bytes=width,
        coalesced=coalesced,
    )
    return OperandTraffic(number, operand.name, accessed, seconds, coalesced)


def _elements(instruction: Instruction) -> int:
    """Elements that the kernel works on: its largest result or operand."""
    shapes = [instruction.shape]
    if instruction.opcode in ("reduce", "reduce-window", "fusion"):
        shapes += [x.shape for x in instruction.operands]
    return max(
        (
            leaf.element_count
            for shape in shapes
            for _, leaf in shape.leaves()
            if leaf.is_array
        ),
        default=1,
    )


def _matrix_type(instruction: Instruction) -> str | None:
    """The element type of a product of matrices, also inside a fusion."""
    candidates = [instruction]
    if instruction.opcode == "fusion":
        candidates = instruction.fused_computation.instructions
    for x in candidates:
        if x.opcode in ("dot", "convolution"):
            return str(x.operands[0].shape.as_array.element_type.name)
    return None
