"""Whether transfers to and from the host hide behind what is computed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from msa.analysis import InstructionCosts, LiveRanges
from msa.analysis.costs import CostOptions
from msa.analysis.flatten import FlattenedSchedule
from msa.analysis.values import HloBuffer
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.passes.arguments import module_of, one_of
from msa.passes.offload.vocabulary import HOST
from msa.passes.rematerialization.options import HostMemory
from msa.passes.runs import runs_of

_RUNS_OTHERS: Final = frozenset({"call", "conditional", "while"})
"""Their steps are those of what they run."""


@dataclass(frozen=True, slots=True)
class OffloadedValue:
    """One buffer in the memory of the host.

    Attributes:
        value: where it begins, such as `x{}`.
        bytes_out, bytes_in: sent to the host, and read back, per run of each step.
        transfer_seconds: of both, per run of the step that makes the value.
        compute_seconds: of what runs between the last way out and the next way back,
            in the same measure: a loop between them counts with all its trips.
        peak_saved_bytes: how much higher the peak on the device would be with the
            buffer there, from the first way out to the last way back.

    >>> row = OffloadedValue("x{}", 64, 64, 3.0, 2.0, 64)
    >>> row.hidden_seconds, row.exposed_seconds, row.can_hide
    (2.0, 1.0, False)
    """

    value: str
    bytes_out: int
    bytes_in: int
    transfer_seconds: float
    compute_seconds: float
    peak_saved_bytes: int

    @property
    def hidden_seconds(self) -> float:
        """Time of the transfers that computing can cover."""
        return min(self.transfer_seconds, self.compute_seconds)

    @property
    def exposed_seconds(self) -> float:
        """Time of the transfers that nothing can cover."""
        return self.transfer_seconds - self.hidden_seconds

    @property
    def can_hide(self) -> bool:
        """Whether all of the transfers can be covered."""
        return self.compute_seconds > 0 and not self.exposed_seconds


def offload_report(
    module: Module, host: HostMemory, *, costs: InstructionCosts | None = None
) -> tuple[OffloadedValue, ...]:
    """What each value on the host costs and saves, in order of definition.

    Near linear in the program for each value.

    Args:
        module: scheduled; values on the host are in the host's memory space 5.
        host: bandwidths, and rates of the device if no `costs` are given.
        costs: of the module's instructions.

    Raises:
        ScheduleError: the module has no schedule.

    >>> import msa
    >>> module = msa.parse('''
    ... HloModule m, is_scheduled=true
    ... ENTRY e {
    ...   x = f32[8]{0} parameter(0)
    ...   out = f32[8]{0:S(5)} copy(x)
    ...   y = f32[8]{0} negate(x)
    ...   back = f32[8]{0} copy(out)
    ...   ROOT z = f32[8]{0} add(y, back)
    ... }''')
    >>> host = HostMemory(32.0, 64.0, rates={"flops": 4.0})
    >>> (row,) = offload_report(module, host)
    >>> row.bytes_out, row.transfer_seconds, row.hidden_seconds, row.can_hide
    (32, 1.5, 1.5, True)
    """
    module = module_of(module, "offload_report")
    host = one_of(host, HostMemory, "offload_report")
    live = LiveRanges.run(module)
    if costs is None:
        options = CostOptions(per_second_rates=host.rates)
        costs = InstructionCosts.run(module, options=options)
    runs = runs_of(module)
    seconds = [
        0.0
        if _crosses(x) or x.opcode in _RUNS_OTHERS
        else max(0.0, costs.optimal_seconds(x)) * runs.get(x.computation, 1.0)
        for x in live.schedule.instructions
    ]
    before = [0.0, *accumulate(seconds)]
    on_device = _device_bytes(live)
    rows = []
    for buffer in live.alias.buffers:
        shape = buffer.values[0].shape
        if shape.is_array and shape.memory_space == HOST:
            row = _row(buffer, live, host, before, on_device, runs)
            if row is not None:
                rows.append(row)
    return tuple(rows)


def _crosses(x: Instruction) -> bool:
    """Whether an instruction moves data between host and device."""
    return x.opcode in ("copy-start", "copy-done") or any(
        s.is_array and s.memory_space == HOST
        for y in (x, *x.operands)
        for _, s in y.shape.leaves()
    )


def _row(
    buffer: HloBuffer,
    live: LiveRanges,
    host: HostMemory,
    before: list[float],
    on_device: list[int],
    runs: Mapping[Computation, float],
) -> OffloadedValue | None:
    flat = live.schedule
    outs: dict[Instruction, int] = {}
    backs: dict[Instruction, int] = {}
    for value in buffer.values:
        x = value.instruction
        piece = x.operands[-1] if x.operands else x
        if x.opcode == "dynamic-update-slice":
            piece = x.operands[1]
        moves = x.opcode in ("copy", "copy-start", "dynamic-update-slice")
        if moves and piece.shape.is_array and piece.shape.memory_space != HOST:
            outs[x] = piece.shape.byte_size()
        for use in value.uses:
            user = use.instruction
            into = user.shape
            if user.opcode == "copy-start":
                into = user.shape.subshape((0,))
            elif user.opcode not in ("copy", "dynamic-slice", "slice"):
                continue
            if into.memory_space != HOST:
                backs[user] = into.byte_size()
    if not outs and not backs:
        return None
    sent = [flat.time_of(x) for x in outs]
    read = [flat.time_of(x) for x in backs]
    last_out = max(sent, default=-1)
    steps = len(before) - 1
    next_back = min((t for t in read if t > last_out), default=steps)
    compute = before[min(next_back, steps)] - before[min(last_out + 1, steps)]
    size = buffer.values[0].byte_size()
    # The ends of whole copies are the value itself, on the device as it is.
    whole = ("copy", "copy-start")
    first = min(
        (_end(x, flat) + 1 if x.opcode in whole else flat.time_of(x) for x in outs),
        default=0,
    )
    last = max((flat.time_of(x) - (x.opcode in whole) for x in backs), default=steps)
    peak = max(on_device, default=0)
    other = max(on_device[first : last + 1], default=0)
    bytes_out, bytes_in = sum(outs.values()), sum(backs.values())
    often = runs.get(buffer.values[0].instruction.computation, 1.0) or 1.0
    transfer = _seconds(outs, runs, host.bytes_per_second_to)
    transfer += _seconds(backs, runs, host.bytes_per_second_from)
    return OffloadedValue(
        str(buffer.values[0].position),
        bytes_out,
        bytes_in,
        transfer / often,
        max(0.0, compute) / often,
        max(0, other + size - peak),
    )


def _seconds(
    moves: Mapping[Instruction, int], runs: Mapping[Computation, float], rate: float
) -> float:
    """Of transfers, over all their runs."""
    return sum(size * runs.get(x.computation, 1.0) for x, size in moves.items()) / rate


def _end(copy: Instruction, flat: FlattenedSchedule) -> int:
    """When a copy has been made."""
    ends = copy.users if copy.opcode == "copy-start" else (copy,)
    return max(flat.time_of(x) for x in ends)


def _device_bytes(live: LiveRanges) -> list[int]:
    """Bytes of live arrays on the device by step."""
    delta = [0] * (live.end + 3)
    for value in live.alias.dataflow.values:
        bound = live.range_of(value)
        shape = value.shape
        if bound is None or not shape.is_array or shape.memory_space == HOST:
            continue
        delta[bound.start] += value.byte_size()
        delta[bound.end + 1] -= value.byte_size()
    return list(accumulate(delta))
