"""Whether transfers to and from the host hide behind what is computed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from msa.analysis import InstructionCosts, LiveRanges
from msa.analysis.async_chains import ASYNC_OPCODES, wrapped_computation
from msa.analysis.costs import CostOptions
from msa.analysis.values import HloBuffer
from msa.hlo.computation import Computation
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.hlo.opcode import RUNNING_OPCODES
from msa.passes.arguments import module_of, one_of
from msa.passes.offload.vocabulary import HOST, on_host_thread
from msa.passes.rematerialization.options import HostMemory
from msa.passes.runs import runs_of


@dataclass(frozen=True, slots=True)
class OffloadedValue:
    """One buffer in the memory of the host.

    Attributes:
        value: where it begins, such as `x{}`.
        bytes_out, bytes_in: sent to the host, and read back, per run of each step.
        transfer_seconds: of both, per run of the step that makes the value.
        compute_seconds: of what the device runs from the last way out to the end of
            the next way back, in the same measure: a loop between them counts with
            all its trips, and what runs beside an asynchronous transfer counts.
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

    Transfers are copies, slices of host buffers and updates of them in place, each
    also as an asynchronous pair. Near linear in the program for each value.

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
    times = Times(live, costs, runs)
    on_device = _device_bytes(live)
    rows = []
    for buffer in live.alias.buffers:
        shape = buffer.values[0].shape
        if shape.is_array and shape.memory_space == HOST:
            row = _row(buffer, times, host, on_device, runs)
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
    times: Times,
    host: HostMemory,
    on_device: list[int],
    runs: Mapping[Computation, float],
) -> OffloadedValue | None:
    outs, backs = _transfers(buffer)
    begin = min(buffer.values, key=lambda v: times.span(v.instruction))
    if times.span(begin.instruction)[0] < 0 or not (outs or backs):
        return None  # it never runs, or it does not move
    sent = max((times.span(x) for x in outs), default=(-1, -1))
    read = min(
        (times.span(x)[::-1] for x in backs if times.span(x) > sent),
        default=(times.end, times.end),
    )
    size = begin.byte_size()
    # The ends of whole copies are the value itself, on the device as it is.
    first = min(
        (times.span(x)[1] + 1 if _is_whole(x) else times.span(x)[0] for x in outs),
        default=0,
    )
    last = max(
        (times.span(x)[0] - 1 if _is_whole(x) else times.span(x)[1] for x in backs),
        default=times.end,
    )
    peak = max(on_device, default=0)
    other = max(on_device[first : last + 1], default=0)
    often = runs.get(begin.instruction.computation, 1.0) or 1.0
    transfer = _seconds(outs, runs, host.bytes_per_second_to)
    transfer += _seconds(backs, runs, host.bytes_per_second_from)
    return OffloadedValue(
        str(begin.position),
        sum(outs.values()),
        sum(backs.values()),
        transfer / often,
        times.computing(sent[0] + 1, read[0]) / often,
        max(0, other + size - peak),
    )


def _transfers(
    buffer: HloBuffer,
) -> tuple[dict[Instruction, int], dict[Instruction, int]]:
    """What moves (parts of) a host buffer out, and back, with the bytes of each."""
    outs: dict[Instruction, int] = {}
    backs: dict[Instruction, int] = {}
    for value in buffer.values:
        x = value.instruction
        if x.opcode in ("copy", "copy-start", "dynamic-update-slice"):
            piece = x.operands[x.opcode == "dynamic-update-slice"]
            if piece.shape.memory_space != HOST:
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
    return outs, backs


def _is_whole(transfer: Instruction) -> bool:
    return transfer.opcode in ("copy", "copy-start")


def _seconds(
    moves: Mapping[Instruction, int], runs: Mapping[Computation, float], rate: float
) -> float:
    """Of transfers, over all their runs."""
    return sum(size * runs.get(x.computation, 1.0) for x, size in moves.items()) / rate


class Times:
    """When things happen, and how long the device computes in between.

    Attributes:
        end: one past the last step.
    """

    __slots__ = ("_before", "_chains", "_flat", "end")

    def __init__(
        self,
        live: LiveRanges,
        costs: InstructionCosts,
        runs: Mapping[Computation, float],
    ) -> None:
        self._flat = flat = live.schedule
        self._chains: dict[Computation | None, tuple[int, int]] = {}
        seconds = []
        for step, x in enumerate(flat.instructions):
            if x.opcode in ASYNC_OPCODES:
                wrapped = wrapped_computation(x)
                start, _ = self._chains.get(wrapped, (step, step))
                self._chains[wrapped] = (start, step)
            idle = (
                _crosses(x)
                or x.opcode in RUNNING_OPCODES
                or on_host_thread(x)
                or x.opcode in ASYNC_OPCODES
            )
            often = runs.get(x.computation, 1.0)
            seconds.append(0.0 if idle else max(0.0, costs.optimal_seconds(x)) * often)
        self._before = [0.0, *accumulate(seconds)]
        self.end = len(seconds)

    def span(self, x: Instruction) -> tuple[int, int]:
        """First and last step of an instruction; of its chain if it is wrapped."""
        wrapped = self._flat.async_context.get(x.computation)
        if wrapped in self._chains:
            return self._chains[wrapped]
        start = end = self._flat.time_of(x)
        if x.opcode == "copy-start":
            end = max((self._flat.time_of(user) for user in x.users), default=start)
        return start, end

    def computing(self, first: int, end: int) -> float:
        """Seconds that the device computes in the steps from `first` up to `end`."""
        return max(0.0, self._before[end] - self._before[min(first, self.end)])


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
