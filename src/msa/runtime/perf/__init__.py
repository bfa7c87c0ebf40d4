"""Performance: devices, rooflines, bandwidth, loops, simulated counters, bottlenecks.

Everything here models; times are seconds, sizes bytes, rates per second.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msa.runtime.perf.bandwidth import BandwidthReport as BandwidthReport
    from msa.runtime.perf.bandwidth import bandwidth_limited as bandwidth_limited
    from msa.runtime.perf.bottlenecks import find_bottlenecks as find_bottlenecks
    from msa.runtime.perf.contention import Demand as Demand
    from msa.runtime.perf.contention import concurrency_report as concurrency_report
    from msa.runtime.perf.contention import demands as demands
    from msa.runtime.perf.counters import SamplerOptions as SamplerOptions
    from msa.runtime.perf.counters import counter_lines as counter_lines
    from msa.runtime.perf.counters import sample_counters as sample_counters
    from msa.runtime.perf.device import DeviceDescription as DeviceDescription
    from msa.runtime.perf.device import MatrixUnit as MatrixUnit
    from msa.runtime.perf.device import bandwidth_from_clocks as bandwidth_from_clocks
    from msa.runtime.perf.events import ProfilerEvent as ProfilerEvent
    from msa.runtime.perf.events import ProfilerSim as ProfilerSim
    from msa.runtime.perf.loops import LoopBound as LoopBound
    from msa.runtime.perf.loops import loop_bound as loop_bound
    from msa.runtime.perf.rooflines import Bound as Bound
    from msa.runtime.perf.rooflines import Roofline as Roofline
    from msa.runtime.perf.rooflines import roofline as roofline
    from msa.runtime.perf.simulated import record_simulation as record_simulation
    from msa.runtime.perf.traces import profiler_trace as profiler_trace

_HOMES = {
    "BandwidthReport": "bandwidth",
    "Bound": "rooflines",
    "Demand": "contention",
    "DeviceDescription": "device",
    "LoopBound": "loops",
    "MatrixUnit": "device",
    "ProfilerEvent": "events",
    "ProfilerSim": "events",
    "Roofline": "rooflines",
    "roofline": "rooflines",
    "SamplerOptions": "counters",
    "bandwidth_from_clocks": "device",
    "bandwidth_limited": "bandwidth",
    "concurrency_report": "contention",
    "counter_lines": "counters",
    "demands": "contention",
    "find_bottlenecks": "bottlenecks",
    "loop_bound": "loops",
    "record_simulation": "simulated",
    "profiler_trace": "traces",
    "sample_counters": "counters",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'msa.runtime.perf' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"msa.runtime.perf.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
