"""The collector, sampled counters, simulated events and the bottleneck finder."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.analysis import InstructionCosts
from msa.errors import OptionsError
from msa.runtime.perf import (
    DeviceDescription,
    ProfilerSim,
    SamplerOptions,
    concurrency_report,
    counter_lines,
    demands,
    find_bottlenecks,
    profiler_trace,
    record_simulation,
    roofline,
    sample_counters,
)
from msa.runtime.perf.bottlenecks import Bottleneck, judge
from msa.runtime.perf.counters import shown_name
from msa.testing import random_module

A100 = DeviceDescription.preset("a100_40")
TPU = msa.Target.preset("tpu_v5e")


def profiler() -> ProfilerSim:
    return ProfilerSim([A100])


# -- the collector (PT-13) -------------------------------------------------------------


def test_events_beyond_the_limit_are_counted_PT13() -> None:
    p = ProfilerSim([A100], max_events=2)
    for i in range(5):
        p.kernel(f"k{i}", i, i + 1)
    assert [e.name for e in p.events] == ["k0", "k1"]
    assert p.dropped == 3


def test_planes_and_lines_PT13() -> None:
    p = ProfilerSim([A100, A100])
    p.kernel("late", 2.0, 3.0, stream=7)
    p.kernel("early", 0.0, 1.0, stream=7)
    p.copy("HostToDevice", 0.0, 1.0, 64, stream=3, device=1, destination=1)
    p.allocate("device", 0.5, 256, 0x1000)
    p.free("device", 0.9, 256, 0x1000)
    p.memset(1.0, 1.5, 32)
    p.mark("step 1", 0.0, 3.0)
    planes = p.planes()
    assert list(planes) == ["/device:0", "/device:1", "/host"]
    assert [e.name for e in planes["/device:0"]["stream 7"]] == ["early", "late"]
    assert planes["/device:1"]["stream 3"][0].details == (
        "kind:HostToDevice size:64 dest:1"
    )
    assert [e.details for e in planes["/device:0"]["memory"]] == [
        "kind:device size:256 address:0x1000"
    ] * 2
    assert [e.name for e in planes["/host"]["marks"]] == ["step 1"]


def test_the_trace_holds_every_event_and_the_devices_PT13(tmp_path: Path) -> None:
    p = ProfilerSim([A100, A100], max_events=4)
    p.kernel("k", 0.25, 1.0, stream=7, bytes_read=4096, shared_memory=48)
    p.copy("HostToDevice", 0.0, 0.5, 64, device=1, destination=1)
    p.allocate("device", 0.5, 256, 0x1000)
    p.mark("step 1", 0.0, 3.0)
    p.kernel("dropped", 0.0, 1.0)
    curves = sample_counters(
        p,
        metrics=["dramc__read_throughput"],
        options=SamplerOptions(interval=0.5, decode_period=5.0),
    )
    path = tmp_path / "trace.json"
    text = profiler_trace(p, path, counters=curves)
    assert path.read_text() == text
    trace = json.loads(text)
    rows = trace["traceEvents"]
    for row in rows:  # what the format asks of each kind of event
        assert {"name", "ph", "pid"} <= set(row)
        assert (row["ph"] == "M") or isinstance(row["ts"], (int, float))
        assert row["ph"] != "X" or row["dur"] >= 0
    names = {(r["pid"], r["tid"]): r["args"]["name"] for r in rows if r["ph"] == "M"}
    spans = {r["name"]: r for r in rows if r["ph"] == "X"}
    assert set(spans) == {"k", "HostToDevice", "step 1"}
    assert (spans["k"]["ts"], spans["k"]["dur"]) == (250_000.0, 750_000.0)
    assert spans["k"]["args"] == {
        "stream": 7,
        "bytes_read": 4096,
        "shared_memory": 48,
        "runs": 1.0,
    }
    assert names[spans["k"]["pid"], spans["k"]["tid"]] == "stream 7"
    assert names[spans["HostToDevice"]["pid"], 0] == "/device:1"
    (point,) = [r for r in rows if r["ph"] == "i"]
    assert point["args"]["details"] == "kind:device size:256 address:0x1000"
    # 4096 B over [0.25, 1): a third of them in the first half second.
    values = [r["args"]["per cent"] for r in rows if r["ph"] == "C"]
    peak = 0.5 * A100.memory_bandwidth
    assert values == pytest.approx([100 * 4096 / 3 / peak, 100 * 4096 * 2 / 3 / peak])
    assert trace["otherData"]["dropped"] == 1
    assert trace["otherData"]["devices"] == [p.device_stats(0), p.device_stats(1)]


def test_device_stats_PT13() -> None:
    stats = profiler().device_stats(0)
    assert stats["device_vendor"] == "Nvidia"
    assert stats["clock_rate_khz"] == 1_410_000
    assert stats["core_count"] == 108
    assert stats["memory_bandwidth"] == 1555e9
    assert stats["memory_size"] == 40 << 30
    assert stats["compute_capability"] == "8.0"


def test_bad_events_are_refused_PT13() -> None:
    with pytest.raises(OptionsError, match="before it starts"):
        profiler().kernel("k", 1.0, 0.0)
    with pytest.raises(OptionsError, match="device 4"):
        profiler().kernel("k", 0.0, 1.0, device=4)


# -- counters (PT-14) ------------------------------------------------------------------


def test_names_for_people_K11_PT14() -> None:
    assert shown_name("dramc__read_throughput.avg") == "DRAM Read Bandwidth (%)"
    assert shown_name("dramc__write_throughput.avg") == "DRAM Write Bandwidth (%)"
    assert shown_name("nvlrx__bytes.sum") == "NVLink RX Bandwidth (%)"
    assert shown_name("nvltx__bytes.sum") == "NVLink TX Bandwidth (%)"
    assert shown_name("pcie__read_bytes.avg") == "PCIe RX Throughput (%)"
    assert shown_name("pcie__write_bytes.avg") == "PCIe TX Throughput (%)"
    assert shown_name("l1tex__whatever.sum") == "l1tex__whatever.sum"


def test_counter_lines_K11_PT14() -> None:
    lines = counter_lines(
        {
            "dramc__read_throughput.x": [(0.0, 1.0), (1.0, math.nan), (2.0, 3.0)],
            "mystery": [(0.0, math.nan)],
        },
        1.0,
    )
    assert [line.name for line in lines] == ["DRAM Read Bandwidth (%)", "mystery"]
    assert lines[0].times.tolist() == [0.0, 2.0]
    assert lines[0].values.tolist() == [1.0, 3.0]
    assert lines[1].values.tolist() == []


def test_samples_by_hand_PT14() -> None:
    p = profiler()
    # 1 ms from 0.25 ms: a quarter, a half and a quarter of the bytes per 0.5 ms.
    p.kernel("k", 0.25e-3, 1.25e-3, bytes_read=777.5e6)
    [line] = sample_counters(p, metrics=["dramc__read_throughput"])
    assert line.values == pytest.approx([25.0, 50.0, 25.0])
    assert line.times == pytest.approx([0.0, 0.5e-3, 1e-3])


EVENT = st.tuples(
    st.floats(0, 0.05), st.floats(0, 0.02), st.integers(0, 10**9), st.integers(0, 10**9)
)


@settings(max_examples=50, deadline=None)
@given(st.lists(EVENT, max_size=12))
def test_samples_add_up_to_the_bytes_PT14(rows) -> None:
    p = profiler()
    for start, length, read, written in rows:
        p.kernel("k", start, start + length, bytes_read=read, bytes_written=written)
    reads, writes = sample_counters(
        p, metrics=["dramc__read_throughput", "dramc__write_throughput"]
    )
    assert reads.total == pytest.approx(sum(r[2] for r in rows), rel=1e-6, abs=1)
    assert writes.total == pytest.approx(sum(r[3] for r in rows), rel=1e-6, abs=1)


def test_links_PT14() -> None:
    p = profiler()
    p.copy("PeerToPeer", 0.0, 1e-3, 300_000_000, link="NVLink", bytes_received=3e8)
    lines = {line.metric: line for line in sample_counters(p)}
    # 300 MB in 1 ms is half of 600 GB/s.
    assert lines["nvlrx__bytes"].values == pytest.approx([50.0, 50.0])
    assert lines["nvltx__bytes"].values == pytest.approx([0.0, 0.0])
    assert lines["pcie__read_bytes"].values == pytest.approx([0.0, 0.0])
    bare = ProfilerSim([A100.replace(copy_bandwidths={})])
    bare.copy("PeerToPeer", 0.0, 1e-3, 1, link="NVLink", bytes_received=1.0)
    # Without a peak there is nothing to compare with: no samples.
    assert len(sample_counters(bare, metrics=["nvlrx__bytes"])[0].values) == 0


def test_a_decode_period_holds_so_many_samples_PT14() -> None:
    assert SamplerOptions() == SamplerOptions(500e-6, 0.1, 500)
    p = profiler()
    p.kernel("k", 0.0, 0.4, bytes_read=1e9)
    options = SamplerOptions(interval=1e-3, decode_period=0.1, max_samples=30)
    [line] = sample_counters(p, metrics=["dramc__read_throughput"], options=options)
    assert len(line.values) == 4 * 30
    assert line.total == pytest.approx(0.3e9)


def test_unknown_metrics_cannot_be_derived_PT14() -> None:
    with pytest.raises(OptionsError, match="cannot be derived"):
        sample_counters(profiler(), metrics=["lts__hits"])
    with pytest.raises(OptionsError):
        SamplerOptions(interval=0)


# -- events of simulations -------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_simulated_events_carry_all_traffic(seed: int) -> None:
    module = random_module(seed, size=30)
    simulation = msa.simulate(module, TPU)
    p = record_simulation(simulation)
    end = max((e.end for e in p.events), default=0.0)
    assert end == pytest.approx(simulation.elapsed_seconds, rel=1e-6)
    lines = sample_counters(
        p,
        metrics=["dramc__read_throughput", "dramc__write_throughput"],
        options=SamplerOptions(interval=max(end / 17, 1e-12)),
    )
    want = sum(e.bytes_read + e.bytes_written for e in p.events)
    assert sum(line.total for line in lines) == pytest.approx(want, rel=1e-6)


PLANNED = """
HloModule m, is_scheduled=true
ENTRY main {
  w = f32[1024,1024]{1,0} parameter(0)
  x = f32[1024,1024]{1,0} parameter(1)
  s = (f32[1024,1024]{1,0:S(1)}, f32[1024,1024]{1,0}, u32[]) copy-start(w)
  a = f32[1024,1024]{1,0:S(1)} negate(x)
  d = f32[1024,1024]{1,0:S(1)} copy-done(s)
  ROOT r = f32[1024,1024]{1,0} add(a, d)
}"""


def test_copies_are_recorded_beside_kernels() -> None:
    p = record_simulation(msa.simulate(msa.parse(PLANNED), TPU))
    events = {e.name: e for e in p.events}
    size = 1024 * 1024 * 4
    assert events["s"].details == f"kind:DefaultToAlternate size:{size} dest:0"
    assert (events["s"].bytes_read, events["s"].fast_bytes) == (size, size)
    assert (events["r"].bytes_read, events["r"].fast_bytes) == (0, 2 * size)
    assert events["s"].start == 0
    assert events["s"].end >= events["a"].end
    assert find_bottlenecks(p).overlap_seconds == pytest.approx(events["a"].seconds)


def test_planned_copies_do_not_oversubscribe_PT5() -> None:
    """Copies move in time that kernels leave: a plan never asks for much more."""
    p = record_simulation(msa.simulate(msa.parse(PLANNED), TPU))
    report = concurrency_report(demands(p), TPU.default_memory_bandwidth)
    assert report.peak_demand <= 2 * TPU.default_memory_bandwidth


# -- bottlenecks (PT-15) ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "kind"),
    [
        ((71, 39, 0), Bottleneck.MEMORY),
        ((71, 41, 0), Bottleneck.NONE),
        ((70, 10, 0), Bottleneck.NONE),
        ((39, 39, 0), Bottleneck.LATENCY),
        ((39, 41, 0), Bottleneck.NONE),
        ((99, 0, 71), Bottleneck.COMMUNICATION),
    ],
)
def test_flags_PT15(figures, kind) -> None:
    assert judge(*figures) is kind


def test_the_table_joins_measured_and_modelled_PT15() -> None:
    module = msa.parse(
        "ENTRY e { p = f32[4096,4096] parameter(0) ROOT n = f32[4096,4096] negate(p) }"
    )
    row = roofline(module.entry.root, A100, InstructionCosts.run(module))
    p = profiler()
    size = 4096 * 4096 * 4
    p.kernel("n", 0.0, 2 * row.total, bytes_read=size, bytes_written=size)
    p.copy("HostToDevice", row.total, 3 * row.total, 64, name="h2d")
    report = find_bottlenecks(p, [row], keys={"n": "k1"})
    found = {r.name: r for r in report.rows}
    assert found["n"].ratio == pytest.approx(2.0)
    assert (found["n"].bound, found["n"].key) == ("memory", "k1")
    assert found["n"].memory_percent == pytest.approx(50, rel=0.02)
    assert math.isnan(found["h2d"].modelled)
    assert report.overlap_seconds == pytest.approx(row.total)
    assert report.kernel_seconds == pytest.approx(2 * row.total)
    assert "n" in report.to_text()
    assert report.to_dict()["rows"][0]["bottleneck"] in ("", "memory", "latency")
