"""What a simulated profiler recorded, as a trace in the Chrome JSON format."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from msa.files import write_text
from msa.runtime.perf.counters import CounterLine
from msa.runtime.perf.events import EventType, ProfilerEvent, ProfilerSim

_PLACED: Final = frozenset({"type", "name", "start", "end"})
_POINTS: Final = (EventType.ALLOCATE, EventType.FREE)


def profiler_trace(
    profiler: ProfilerSim,
    path: str | Path | None = None,
    *,
    counters: tuple[CounterLine, ...] = (),
) -> str:
    """One process per device (and one for the host), one lane per stream.

    Args:
        profiler: what was recorded; capabilities of the devices and the number of
            dropped events go into `otherData`.
        path: also written there, if given.
        counters: from `sample_counters`, drawn as curves in per cent.

    Microseconds. O(n log n) in the events.

    >>> import json
    >>> from msa.runtime.perf import DeviceDescription
    >>> profiler = ProfilerSim([DeviceDescription.preset("a100_40")])
    >>> profiler.kernel("dot", 0.0, 1e-3, bytes_read=4096)
    >>> events = json.loads(profiler_trace(profiler))["traceEvents"]
    >>> [(e["name"], e["dur"]) for e in events if e["ph"] == "X"]
    [('dot', 1000.0)]
    """
    rows: list[dict[str, Any]] = []
    for pid, (plane, lines) in enumerate(profiler.planes().items(), 1):
        rows.append(_named("process_name", pid, 0, plane))
        for tid, (line, events) in enumerate(lines.items(), 1):
            rows.append(_named("thread_name", pid, tid, line))
            rows += [_event(event, pid, tid) for event in events]
    for counter in counters:
        rows += [
            {
                "name": counter.name,
                "ph": "C",
                "pid": 0,
                "ts": time * 1e6,
                "args": {"per cent": value},
            }
            for time, value in zip(
                counter.times.tolist(), counter.values.tolist(), strict=True
            )
        ]
    devices = range(len(profiler.devices))
    text = json.dumps(
        {
            "traceEvents": rows,
            "displayTimeUnit": "ns",
            "otherData": {
                "dropped": profiler.dropped,
                "devices": [profiler.device_stats(device) for device in devices],
            },
        }
    )
    return write_text(text, path)


def _named(kind: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": text}}


def _event(event: ProfilerEvent, pid: int, tid: int) -> dict[str, Any]:
    """A span, or a point for what takes no time; figures that are zero are left out."""
    figures = asdict(event)
    row = {
        "name": event.name,
        "cat": str(event.type),
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "ts": event.start * 1e6,
        "dur": event.seconds * 1e6,
        "args": {k: v for k, v in figures.items() if v and k not in _PLACED},
    }
    if event.type in _POINTS:
        del row["dur"]
        row |= {"ph": "i", "s": "t"}
    return row
