"""The instructions that memory bandwidth limits, and what can be done about each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from msa.analysis.costs import InstructionCosts
from msa.analysis.costs.rules import ELEMENTWISE
from msa.hlo.instruction import Instruction
from msa.hlo.module import Module
from msa.runtime.perf.device import DeviceDescription
from msa.runtime.perf.kernels import read_seconds
from msa.runtime.perf.rooflines import (
    Bound,
    OperandTraffic,
    Roofline,
    launch_overhead,
    roofline,
)
from msa.runtime.perf.running import kernels
from msa.units import format_bytes, format_seconds

_FAST: Final = 10.0
"""Bandwidth of a fast memory that is not described, as a multiple of the slow one's."""

_FUSIBLE: Final = ELEMENTWISE | frozenset(
    {"broadcast", "iota", "reshape", "slice", "transpose", "copy", "concatenate", "pad"}
)


class Remedy(StrEnum):
    """What can be done about an instruction that memory limits."""

    FAST_MEMORY = "fast memory"
    FUSION = "fuse with the producer"
    LAYOUT = "change the layout"
    RECOMPUTE = "recompute"
    LOOP = "loop optimizer"


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to try.

    Attributes:
        remedy: what.
        subject: the operand or loop that it is about.
        bytes: traffic that it saves or moves to fast memory.
        seconds: what one run saves, 0 if that cannot be said.
    """

    remedy: Remedy
    subject: str
    bytes: float
    seconds: float

    def __str__(self) -> str:
        saved = f", saves {format_seconds(self.seconds)}" if self.seconds else ""
        return f"{self.remedy}: {self.subject} ({format_bytes(self.bytes)}{saved})"


@dataclass(frozen=True, slots=True)
class LimitedRow:
    """An instruction that memory limits.

    Attributes:
        roofline: its figures.
        runs: how often it runs.
        seconds: of memory traffic in all runs.
        advice: most seconds first.
    """

    roofline: Roofline
    runs: float
    seconds: float
    advice: tuple[Advice, ...]


@dataclass(frozen=True, slots=True)
class BandwidthReport:
    """What memory bandwidth limits in a module.

    Attributes:
        module, device: names.
        rows: instructions bound by memory, most seconds of traffic first.
        counts: instructions by bound.
        total_seconds: of the program without overlap of kernels, launches included.
        limited_seconds: the part of it that `Bound.MEMORY` instructions take.

    >>> BandwidthReport("m", "a100_40", (), {"memory": 2}, 2.0, 1.0).to_text()
    'm on a100_40: 2 s, 50% in instructions that memory limits (2 memory)'
    """

    module: str
    device: str
    rows: tuple[LimitedRow, ...]
    counts: dict[str, int]
    total_seconds: float
    limited_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "module": self.module,
            "device": self.device,
            "counts": dict(self.counts),
            "total_seconds": self.total_seconds,
            "limited_seconds": self.limited_seconds,
            "rows": [
                {
                    "roofline": row.roofline.to_dict(),
                    "runs": row.runs,
                    "seconds": row.seconds,
                    "advice": [
                        {**asdict(a), "remedy": str(a.remedy)} for a in row.advice
                    ],
                }
                for row in self.rows
            ],
        }

    def to_text(self) -> str:
        """For a terminal."""
        share = self.limited_seconds / self.total_seconds if self.total_seconds else 0.0
        counts = ", ".join(f"{n} {name}" for name, n in sorted(self.counts.items()))
        lines = [
            (
                f"{self.module} on {self.device}: {format_seconds(self.total_seconds)}"
                f", {share:.0%} in instructions that memory limits ({counts})"
            )
        ]
        for row in self.rows:
            r = row.roofline
            lines.append(
                f"  {format_seconds(row.seconds):>9}  {r.name} ({r.opcode}), "
                f"{format_bytes(r.bytes)} × {row.runs:g}, "
                f"{r.intensity:.3g} flop/B of {r.ridge:.3g}"
            )
            lines += [f"             {advice}" for advice in row.advice]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


def bandwidth_limited(
    module: Module,
    device: DeviceDescription,
    *,
    top: int = 10,
    fast_bandwidth: float = 0.0,
    costs: InstructionCosts | None = None,
) -> BandwidthReport:
    """Instructions bound by memory, with what to try.

    Args:
        module: scheduled or not.
        device: the device.
        top: how many rows.
        fast_bandwidth: bytes/s of reading fast memory; 0 means ten times the slow one.
        costs: of the module, if at hand.

    Linear in the size of the module, plus sorting.

    >>> import msa
    >>> module = msa.parse('''
    ... ENTRY main {
    ...   a = f32[4096,4096] parameter(0)
    ...   b = f32[4096,4096] negate(a)
    ...   ROOT c = f32[4096,4096] exponential(b)
    ... }''')
    >>> report = bandwidth_limited(module, DeviceDescription.preset("a100_40"))
    >>> [row.roofline.name for row in report.rows]
    ['b', 'c']
    >>> [str(a.remedy) for a in report.rows[1].advice]
    ['fuse with the producer', 'fast memory']
    """
    known = costs or InstructionCosts.run(module)
    fast = fast_bandwidth or _FAST * device.memory_bandwidth
    counts: dict[str, int] = {}
    total = limited = 0.0
    found: list[tuple[float, int, Instruction, Roofline, float]] = []
    for number, (x, runs) in enumerate(kernels(module)):
        row = roofline(x, device, known)
        counts[str(row.bound)] = counts.get(str(row.bound), 0) + 1
        seconds = (row.total + launch_overhead(x)) * runs
        total += seconds
        if row.bound is Bound.MEMORY:
            limited += seconds
            found.append((-row.memory * runs, number, x, row, runs))
    found.sort(key=lambda entry: entry[:2])
    rows = tuple(
        LimitedRow(row, runs, -seconds, _advice(x, row, device, fast, runs))
        for seconds, _, x, row, runs in found[: max(0, top)]
    )
    return BandwidthReport(module.name, device.name, rows, counts, total, limited)


def _advice(
    x: Instruction, row: Roofline, device: DeviceDescription, fast: float, runs: float
) -> tuple[Advice, ...]:
    found: list[Advice] = []
    gains = [(t.seconds - t.bytes / fast, t) for t in row.operands if t.bytes]
    if gains:
        gain, best = max(gains, key=lambda pair: pair[0])
        if gain > 0:
            found.append(Advice(Remedy.FAST_MEMORY, best.name, best.bytes, gain))
    for traffic in row.operands:
        producer = x.operands[traffic.number]
        found += _about_producer(x, producer, traffic, device)
        if not traffic.coalesced:
            found.append(_layout(x, row, traffic, device))
    if runs > 1:
        found.append(Advice(Remedy.LOOP, x.computation.name, row.bytes, 0.0))
    found.sort(key=lambda advice: -advice.seconds)
    return tuple(found)


def _about_producer(
    x: Instruction,
    producer: Instruction,
    traffic: OperandTraffic,
    device: DeviceDescription,
) -> list[Advice]:
    if producer.opcode not in _FUSIBLE or x.opcode in ("while", "conditional", "call"):
        return []
    size = float(producer.shape.byte_size())
    if producer.users == (x,):
        saved = size + traffic.bytes
        seconds = traffic.seconds + size / device.memory_bandwidth
        return [Advice(Remedy.FUSION, producer.name, saved, seconds)]
    inputs = sum(o.shape.byte_size() for o in producer.operands)
    if inputs < size:
        seconds = traffic.seconds - inputs / device.memory_bandwidth
        return [Advice(Remedy.RECOMPUTE, producer.name, size - inputs, seconds)]
    return []


def _layout(
    x: Instruction, row: Roofline, traffic: OperandTraffic, device: DeviceDescription
) -> Advice:
    size = float(x.operands[traffic.number].shape.byte_size())
    straight = read_seconds(
        device, row.launch, operand_bytes=size, accessed_bytes=traffic.bytes
    )
    gain = max(0.0, traffic.seconds - straight)
    return Advice(Remedy.LAYOUT, traffic.name, traffic.bytes, gain)
