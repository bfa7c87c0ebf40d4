"""Traces in the Chrome JSON format, which Perfetto opens.

Lanes: compute (waits for copies apart), prefetches and evictions, and a counter of
the fast memory in use. Times are modelled microseconds.
"""

from __future__ import annotations

import json
from typing import Any, Final

from msa.report.capture import PlanCapture

_PID: Final = 1
_COMPUTE, _STALL, _PREFETCH, _EVICT = 1, 2, 3, 4
_LANES: Final = {
    _COMPUTE: "compute",
    _STALL: "waiting for copies",
    _PREFETCH: "copies into fast memory",
    _EVICT: "copies out of fast memory",
}


def to_perfetto(capture: PlanCapture) -> str:
    """The trace as JSON text; one event per step, copy and change of occupancy."""
    events: list[dict[str, Any]] = [_name("process_name", 0, capture["module"])]
    events += [_name("thread_name", lane, text) for lane, text in _LANES.items()]
    steps = capture["steps"]
    begins: list[float] = []
    now = 0.0
    used = -1
    for i, name in enumerate(steps["names"]):
        begins.append(now)
        trip = steps["trip"][i]
        stall = steps["stall"][i] * trip * 1e6
        work = max(steps["compute"][i], steps["memory"][i]) * trip * 1e6
        if stall > 0:
            events.append(_slice(name, _STALL, now, stall, {"step": i}))
        if work > 0:
            details = {"step": i, "opcode": steps["opcodes"][i], "trips": trip}
            events.append(_slice(name, _COMPUTE, now + stall, work, details))
        if capture["occupancy"][i] != used:
            used = capture["occupancy"][i]
            events.append(
                {
                    "name": "fast memory in use",
                    "ph": "C",
                    "pid": _PID,
                    "ts": now,
                    "args": {"bytes": used},
                }
            )
        now += stall + work
    begins.append(now)
    last = len(begins) - 1
    for number, copy in enumerate(capture["copies"]):
        lane = _EVICT if copy["kind"] == "eviction" else _PREFETCH
        start = begins[max(0, min(copy["start_step"], last))]
        end = begins[max(0, min(copy["done_step"], last))]
        common = {"cat": "copy", "id": number, "pid": _PID, "tid": lane}
        title = f"{copy['kind']} {copy['value']}"
        details = {"bytes": copy["bytes"], "source": copy["source"]}
        events.append(
            {"name": title, "ph": "b", "ts": start, "args": details, **common}
        )
        events.append({"name": title, "ph": "e", "ts": max(start, end), **common})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})


def _name(kind: str, lane: int, text: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PID, "tid": lane, "args": {"name": text}}


def _slice(
    name: str, lane: int, start: float, length: float, details: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "ph": "X",
        "pid": _PID,
        "tid": lane,
        "ts": start,
        "dur": length,
        "args": details,
    }
