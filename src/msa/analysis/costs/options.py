"""Settings of the cost analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msa.analysis.costs.properties import Properties
from msa.hlo.instruction import Instruction
from msa.hlo.shape import Shape

ShapeSize = Callable[[Shape], int]
"""Bytes of a shape; a tuple is its table of pointers."""


def logical_size(shape: Shape) -> int:
    """Logical bytes, tiles ignored."""
    return shape.byte_size()


@dataclass(frozen=True, slots=True)
class CustomCallCost:
    """What a user says that a custom call costs.

    Attributes:
        flops, transcendentals: operations.
        operand_bytes: bytes read of each operand; None means all of it.
        output_bytes: bytes written; None means the whole result.
    """

    flops: float = 0.0
    transcendentals: float = 0.0
    operand_bytes: tuple[float, ...] | None = None
    output_bytes: float | None = None


CustomCallHook = Callable[[Instruction], CustomCallCost | None]
"""Cost of a custom call, or None when it is not known."""

MeasuredHook = Callable[[Instruction, Properties], None]
"""Corrects what is modelled of an instruction by what was measured, in place."""


@dataclass(frozen=True, slots=True)
class CostOptions:
    """Settings of the cost analysis.

    Attributes:
        shape_size: how bytes are counted.
        per_second_rates: operations or bytes per second, by property (`flops`,
            `transcendentals`, `bytes accessed`); without rates there are no times.
        min_latencies_seconds: least time by property.
        count_multiple_input_accesses: count an input as often as it is read.
        custom_call: costs of custom calls; those it does not know are -1.
        measured: is shown every instruction with what is modelled, to correct it.

    >>> import msa
    >>> module = msa.schedule(msa.parse('''
    ... ENTRY e { p = f32[256] parameter(0) n = f32[256] negate(p)
    ...           ROOT a = f32[256] abs(n) }'''))
    >>> from msa.analysis import InstructionCosts
    >>> options = CostOptions(per_second_rates={"bytes accessed": 1e9})
    >>> costs = InstructionCosts.run(module, options=options)
    >>> f"{costs.optimal_seconds(module.entry.root):.3e}"
    '2.048e-06'
    """

    shape_size: ShapeSize = logical_size
    per_second_rates: Mapping[str, float] = field(default_factory=dict)
    min_latencies_seconds: Mapping[str, float] = field(default_factory=dict)
    count_multiple_input_accesses: bool = False
    custom_call: CustomCallHook | None = None
    measured: MeasuredHook | None = None
