"""Counters of bandwidth, sampled from what was recorded.

Source: `xla/backends/profiler/gpu/cupti_pm_sampler*` (names, intervals).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from msa.errors import OptionsError
from msa.runtime.perf.device import DeviceDescription
from msa.runtime.perf.events import EventType, ProfilerEvent, ProfilerSim

SHOWN_NAMES: Final[Mapping[str, str]] = {
    "dramc__read_throughput": "DRAM Read Bandwidth (%)",
    "dramc__write_throughput": "DRAM Write Bandwidth (%)",
    "nvlrx__bytes": "NVLink RX Bandwidth (%)",
    "nvltx__bytes": "NVLink TX Bandwidth (%)",
    "pcie__read_bytes": "PCIe RX Throughput (%)",
    "pcie__write_bytes": "PCIe TX Throughput (%)",
    "sm__cycles_active": "SM Active (%)",
    "sm__inst_issued": "SM Issue (%)",
    "sm__pipe_tensor_cycles_active": "Tensor Active (%)",
    "sm__warps_active": "SM Occupancy (%)",
}
"""Beginnings of metric names → what people read."""

_WORK: Final = (EventType.KERNEL, EventType.COPY, EventType.MEMSET)


def shown_name(metric: str) -> str:
    """The name for people; unknown metrics keep theirs.

    >>> shown_name("dramc__read_throughput.avg.pct_of_peak_sustained_elapsed")
    'DRAM Read Bandwidth (%)'
    >>> shown_name("lts__hits.sum")
    'lts__hits.sum'
    """
    return SHOWN_NAMES.get(metric.split(".")[0], metric)


@dataclass(frozen=True, slots=True)
class SamplerOptions:
    """When counters are sampled.

    Attributes:
        interval: seconds of a sample.
        decode_period: seconds between two decodings.
        max_samples: samples that one decoding can take; more are lost.

    >>> SamplerOptions().max_samples
    500
    """

    interval: float = 500e-6
    decode_period: float = 0.1
    max_samples: int = 500

    def __post_init__(self) -> None:
        if not (self.interval > 0 and self.decode_period > 0 and self.max_samples > 0):
            raise OptionsError("intervals and numbers of samples are positive")


@dataclass(frozen=True, slots=True, eq=False)
class CounterLine:
    """One metric over time.

    Attributes:
        metric, name: internal, and for people.
        times: seconds, the start of each sample.
        values: per cent, NaN samples left out.
        interval: seconds of a sample.
        peak: per second, what 100 % stands for.
    """

    metric: str
    name: str
    times: NDArray[np.float64]
    values: NDArray[np.float64]
    interval: float
    peak: float

    @property
    def total(self) -> float:
        """What the samples add up to (bytes, for metrics of bytes)."""
        return float(self.values.sum()) / 100 * self.interval * self.peak


@dataclass(frozen=True, slots=True)
class _Metric:
    amount: Callable[[ProfilerEvent], float]
    peak: Callable[[DeviceDescription], float]


def _link_peak(link: str) -> Callable[[DeviceDescription], float]:
    return lambda device: device.copy_bandwidths.get(link, math.nan)


def _link(link: str, side: str) -> Callable[[ProfilerEvent], float]:
    return lambda e: float(getattr(e, side)) if e.link == link else 0.0


def _busy(event: ProfilerEvent) -> float:
    return event.seconds if event.type is EventType.KERNEL else 0.0


def _bandwidth(device: DeviceDescription) -> float:
    return device.memory_bandwidth


_METRICS: Final[Mapping[str, _Metric]] = {
    "dramc__read_throughput": _Metric(lambda e: e.bytes_read, _bandwidth),
    "dramc__write_throughput": _Metric(lambda e: e.bytes_written, _bandwidth),
    "nvlrx__bytes": _Metric(_link("NVLink", "bytes_received"), _link_peak("NVLink")),
    "nvltx__bytes": _Metric(_link("NVLink", "bytes_sent"), _link_peak("NVLink")),
    "pcie__read_bytes": _Metric(_link("PCIe", "bytes_received"), _link_peak("PCIe")),
    "pcie__write_bytes": _Metric(_link("PCIe", "bytes_sent"), _link_peak("PCIe")),
    "sm__cycles_active": _Metric(_busy, lambda device: 1.0),
}
METRICS: Final = tuple(_METRICS)
"""Metrics that are derived from events."""


def counter_lines(
    rows: Mapping[str, Sequence[tuple[float, float]]],
    interval: float,
    peak: float = 1.0,
) -> tuple[CounterLine, ...]:
    """One line per metric from samples `(seconds, per cent)`; NaN is skipped.

    >>> nan = float("nan")
    >>> [line] = counter_lines({"pcie__read_bytes.x": [(0.0, 5.0), (1.0, nan)]}, 1.0)
    >>> line.name, line.values.tolist()
    ('PCIe RX Throughput (%)', [5.0])
    """
    lines = []
    for metric, samples in rows.items():
        kept = [(time, value) for time, value in samples if not math.isnan(value)]
        times = np.array([time for time, _ in kept], np.float64)
        values = np.array([value for _, value in kept], np.float64)
        lines.append(
            CounterLine(metric, shown_name(metric), times, values, interval, peak)
        )
    return tuple(lines)


def sample_counters(
    profiler: ProfilerSim,
    device: int = 0,
    *,
    metrics: Iterable[str] = METRICS,
    options: SamplerOptions | None = None,
) -> tuple[CounterLine, ...]:
    """Sample metrics of a device from its recorded events.

    Bytes are spread evenly over each event. The samples of a metric add up to the
    recorded bytes, unless a decoding period holds more samples than can be taken.
    Metrics without a peak (a link that the device does not have) have no samples.

    Raises:
        OptionsError: a metric cannot be derived.

    >>> profiler = ProfilerSim([DeviceDescription.preset("a100_40")])
    >>> profiler.kernel("k", 0.0, 1e-3, bytes_read=1555e6)  # 1555 GB/s for 1 ms
    >>> [line] = sample_counters(profiler, metrics=["dramc__read_throughput"])
    >>> line.values.tolist(), line.total
    ([100.0, 100.0], 1555000000.0)
    """
    chosen = options or SamplerOptions()
    events = [e for e in profiler.of_type(*_WORK) if e.device == device]
    end = max((e.end for e in events), default=0.0)
    count = max(1, math.ceil(end / chosen.interval - 1e-9)) if events else 0
    edges = np.arange(count + 1, dtype=np.float64) * np.float64(chosen.interval)
    taken = _taken(count, chosen)
    lines = []
    for metric in metrics:
        known = _METRICS.get(metric.split(".")[0])
        if known is None:
            raise OptionsError(
                f"{metric} cannot be derived from events",
                hint=f"one of {list(METRICS)}",
            )
        peak = known.peak(profiler.devices[device])
        amounts = _per_interval(events, known.amount, edges)
        values = 100 * amounts / (chosen.interval * peak)
        keep = taken & ~np.isnan(values)
        lines.append(
            CounterLine(
                metric,
                shown_name(metric),
                edges[:-1][keep],
                values[keep],
                chosen.interval,
                peak,
            )
        )
    return tuple(lines)


def _taken(count: int, options: SamplerOptions) -> NDArray[np.bool_]:
    """Which samples decoding keeps: the first ones of every period."""
    per_period = max(1, round(options.decode_period / options.interval))
    taken: NDArray[np.bool_] = np.arange(count) % per_period < options.max_samples
    return taken


def _per_interval(
    events: Sequence[ProfilerEvent],
    amount: Callable[[ProfilerEvent], float],
    edges: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Amounts per interval. O((events + intervals) log events)."""
    sums = np.zeros(max(0, len(edges) - 1))
    # Rates of shorter events would swamp all others: they count as points in time.
    shortest = 1e-6 * float(edges[1]) if len(edges) > 1 else 0.0
    changes: dict[float, float] = {}
    for event in events:
        value = amount(event)
        if not value:
            continue
        if event.seconds > shortest:
            rate = value / event.seconds
            changes[event.start] = changes.get(event.start, 0.0) + rate
            changes[event.end] = changes.get(event.end, 0.0) - rate
        elif len(sums):
            place = int(np.searchsorted(edges, event.start, "right")) - 1
            sums[min(place, len(sums) - 1)] += value
    if changes and len(sums):
        times = np.array(sorted(changes))
        rates = np.cumsum([changes[t] for t in times.tolist()])
        grown = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times))])
        sums += np.diff(np.interp(edges, times, grown))
    return sums
