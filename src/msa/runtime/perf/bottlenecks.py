"""Measured times beside modelled ones: which instructions are slow, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from msa.runtime.perf.events import EventType, ProfilerEvent, ProfilerSim
from msa.runtime.perf.rooflines import Roofline
from msa.units import format_bytes, format_seconds

_HIGH: Final = 70.0
_LOW: Final = 40.0


class Bottleneck(StrEnum):
    """What holds an instruction up."""

    MEMORY = "memory"
    LATENCY = "latency"
    COMMUNICATION = "communication"
    NONE = ""


@dataclass(frozen=True, slots=True)
class BottleneckRow:
    """One instruction; seconds, per cent, bytes.

    Attributes:
        name: of the instruction.
        measured, modelled: seconds of all its runs; modelled is NaN without a model.
        ratio: measured / modelled.
        memory_percent, compute_percent, link_percent: of the peak, while it ran.
        bound: what the roofline says, or an empty string.
        bottleneck: what the measurement says.
        fast_bytes: traffic of fast memory.
        key: of its tuned configuration, or an empty string.
    """

    name: str
    measured: float
    modelled: float
    ratio: float
    memory_percent: float
    compute_percent: float
    link_percent: float
    bound: str
    bottleneck: Bottleneck
    fast_bytes: float
    key: str


@dataclass(frozen=True, slots=True)
class BottleneckReport:
    """All instructions, slowest first.

    Attributes:
        rows: one per name.
        kernel_seconds, copy_seconds: in which kernels, copies ran.
        overlap_seconds: in which both did.
    """

    rows: tuple[BottleneckRow, ...]
    kernel_seconds: float
    copy_seconds: float
    overlap_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data = asdict(self)
        for row in data["rows"]:
            row["bottleneck"] = str(row["bottleneck"])
        return data

    def to_text(self, top: int = 20) -> str:
        """For a terminal."""
        lines = [
            (
                f"kernels {format_seconds(self.kernel_seconds)}, copies "
                f"{format_seconds(self.copy_seconds)}, both at once "
                f"{format_seconds(self.overlap_seconds)}"
            )
        ]
        lines += [
            f"  {format_seconds(row.measured):>9} × {row.ratio:.2f} of the model  "
            f"memory {row.memory_percent:.0f} %, compute {row.compute_percent:.0f} %, "
            f"fast {format_bytes(row.fast_bytes)}  {row.name}"
            + (f"  [{row.bottleneck}]" if row.bottleneck else "")
            for row in self.rows[:top]
        ]
        return "\n".join(lines)


def find_bottlenecks(
    profiler: ProfilerSim,
    rooflines: Iterable[Roofline] = (),
    *,
    device: int = 0,
    keys: Mapping[str, str] | None = None,
) -> BottleneckReport:
    """Join what was recorded with what was modelled, by name.

    Memory over 70 % of its peak and compute under 40 %: memory; both under 40 %:
    latency; a link over 70 %: communication, whatever the rest.

    Args:
        profiler: with kernels and copies.
        rooflines: of the instructions, for one run each.
        device: whose events count.
        keys: of tuned configurations, by instruction.

    >>> from msa.runtime.perf.device import DeviceDescription
    >>> profiler = ProfilerSim([DeviceDescription.preset("a100_40")])
    >>> profiler.kernel("copy.1", 0.0, 1e-3, bytes_read=1400e6)  # 90 % of 1555 GB/s
    >>> [row] = find_bottlenecks(profiler).rows
    >>> str(row.bottleneck), round(row.memory_percent)
    ('memory', 90)
    """
    chosen = [e for e in profiler.events if e.device == device]
    kernels = [e for e in chosen if e.type is EventType.KERNEL]
    copies = [e for e in chosen if e.type is EventType.COPY]
    models = {row.name: row for row in rooflines}
    grouped: dict[str, list[ProfilerEvent]] = {}
    for event in (*kernels, *copies):
        grouped.setdefault(event.name, []).append(event)
    description = profiler.devices[device]
    rows = []
    for name, events in grouped.items():
        seconds = sum(e.seconds for e in events)
        memory = _percent(
            sum(e.bytes_read + e.bytes_written for e in events),
            seconds,
            description.memory_bandwidth,
        )
        compute = _percent(
            sum(e.flops for e in events), seconds, description.peak_flops
        )
        link = max(
            (
                _percent(
                    max(e.bytes_received, e.bytes_sent),
                    e.seconds,
                    description.copy_bandwidths.get(e.link, 0.0),
                )
                for e in events
            ),
            default=0.0,
        )
        model = models.get(name)
        modelled = float("nan") if model is None else model.total * len(events)
        rows.append(
            BottleneckRow(
                name,
                seconds,
                modelled,
                seconds / modelled if modelled else float("inf"),
                memory,
                compute,
                link,
                "" if model is None else str(model.bound),
                judge(memory, compute, link),
                sum(e.fast_bytes for e in events),
                (keys or {}).get(name, ""),
            )
        )
    rows.sort(key=lambda row: (-row.measured, row.name))
    busy, copying = _union(kernels), _union(copies)
    return BottleneckReport(
        tuple(rows),
        sum(end - start for start, end in busy),
        sum(end - start for start, end in copying),
        _overlap(busy, copying),
    )


def judge(memory: float, compute: float, link: float) -> Bottleneck:
    """What percentages of the peaks say.

    >>> [str(judge(*row)) for row in ((71, 39, 0), (10, 10, 0), (50, 50, 71), (71, 50, 0))]
    ['memory', 'latency', 'communication', '']
    """
    if link > _HIGH:
        return Bottleneck.COMMUNICATION
    if memory > _HIGH and compute < _LOW:
        return Bottleneck.MEMORY
    if memory < _LOW and compute < _LOW:
        return Bottleneck.LATENCY
    return Bottleneck.NONE


def _percent(amount: float, seconds: float, peak: float) -> float:
    return 100 * amount / (seconds * peak) if seconds > 0 and peak > 0 else 0.0


def _union(events: Iterable[ProfilerEvent]) -> list[tuple[float, float]]:
    """Disjoint intervals in which any of the events runs, in order."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted((e.start, e.end) for e in events):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _overlap(a: list[tuple[float, float]], b: list[tuple[float, float]]) -> float:
    total, i, j = 0.0, 0, 0
    while i < len(a) and j < len(b):
        total += max(0.0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total
