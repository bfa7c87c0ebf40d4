"""Kernel times, rooflines, the bandwidth report and loops."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.analysis import InstructionCosts
from msa.errors import OptionsError, UnsupportedError
from msa.runtime.perf import (
    Bound,
    Demand,
    DeviceDescription,
    bandwidth_limited,
    concurrency_report,
    loop_bound,
    roofline,
)
from msa.runtime.perf.access import is_coalesced
from msa.runtime.perf.bandwidth import Remedy
from msa.runtime.perf.kernels import (
    Launch,
    achievable_bandwidth,
    compute_seconds,
    flops_per_ns,
    full_launch,
    launch_for,
    matrix_seconds,
    read_seconds,
    total_seconds,
    utilization,
    write_seconds,
)
from msa.runtime.perf.rooflines import classify, launch_overhead
from msa.runtime.perf.running import kernels, run_counts

A100 = DeviceDescription.preset("a100_40")
TPU = msa.Target.preset("tpu_v5e")


# -- kernels (PT-2) and the figures of the specification -----------------------------


def test_overlap_PT2() -> None:
    assert total_seconds(10e-6, 10e-6) == pytest.approx(10.5e-6)
    assert total_seconds(1.0, 9.0) == pytest.approx(9.05)


def test_few_blocks_cannot_saturate_PT2() -> None:
    device = A100.replace(clock_rate_ghz=1.0)
    assert achievable_bandwidth(1555e9, device, Launch(2, 128)) == 64e9
    assert achievable_bandwidth(1555e9, device, Launch(1000, 128)) == 1555e9


def test_uncoalesced_reads_waste_transactions_PT2() -> None:
    assert utilization(A100, 4, coalesced=False) == 1 / 16
    assert utilization(A100, 4, coalesced=True) == 1.0
    assert utilization(A100, 128, coalesced=False) == 1.0


def test_effective_flops_are_truncated_PT2() -> None:
    # 1.41 × 2 × min(1, 108) × min(3, 64) = 8.46
    assert flops_per_ns(A100, Launch(1, 3)) == 8
    assert compute_seconds(8e9, A100, Launch(1, 3)) == 1.0
    # 1.41 × 2 × 108 × 64 = 19491.84
    assert flops_per_ns(A100, full_launch(A100)) == 19491


def test_matrix_units_PT2() -> None:
    # 1.41e9 × 256 × 2 × 108 × 4
    assert matrix_seconds(311869440000000, A100, "bf16") == pytest.approx(1.0)
    full = compute_seconds(1e9, A100, full_launch(A100))
    assert matrix_seconds(1e9, A100, "u8") == full


def test_reads_again_come_from_caches_PT2() -> None:
    bandwidth = A100.memory_bandwidth
    many = Launch(100_000, 128)

    def read(size: float, accessed: float, **more: object) -> float:
        return read_seconds(
            A100, many, operand_bytes=size, accessed_bytes=accessed, **more
        )

    # Larger than the L2 cache (40 MiB): memory both times.
    assert read(50 << 20, 100 << 20) == pytest.approx((100 << 20) / bandwidth)
    # In L2, not in the 20.25 MiB of all L1 caches.
    assert read(30 << 20, 60 << 20) == pytest.approx(
        (30 << 20) / bandwidth + (30 << 20) / (2.5 * bandwidth)
    )
    # In L1.
    assert read(1 << 20, 3 << 20) == pytest.approx(
        (1 << 20) / bandwidth + (2 << 20) / (20 * bandwidth)
    )
    # Less than the operand is read.
    assert read(1 << 20, 1 << 10) == pytest.approx((1 << 10) / bandwidth)
    # Uncoalesced.
    assert read(1 << 20, 1 << 20, coalesced=False) == pytest.approx(
        16 * (1 << 20) / bandwidth
    )


def test_writes_PT2() -> None:
    assert write_seconds(A100, 1555e9) == 1.0


def test_launches_cover_all_elements() -> None:
    for elements in (1, 127, 128, 129, 10**6):
        launch = launch_for(elements, A100)
        assert launch.blocks * launch.threads >= elements
        assert (launch.blocks - 1) * launch.threads < elements


# -- rooflines (PT-3) ------------------------------------------------------------------


def row_of(text: str, device: DeviceDescription = A100, **more: float):
    module = msa.parse(text)
    costs = InstructionCosts.run(module)
    return roofline(module.entry.root, device, costs, **more)


LARGE_DOT = """
ENTRY main {
  a = bf16[4096,4096] parameter(0)
  b = bf16[4096,4096] parameter(1)
  ROOT d = bf16[4096,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""


def test_elementwise_is_bound_by_memory_PT3() -> None:
    row = row_of(
        "ENTRY e { p = f32[4096,4096] parameter(0) ROOT n = f32[4096,4096] negate(p) }"
    )
    count = 4096 * 4096
    assert (row.flops, row.bytes) == (count, 8 * count)
    assert row.intensity == 1 / 8
    assert row.memory == pytest.approx(8 * count / 1555e9)
    assert row.bound is Bound.MEMORY
    assert row.attainable_flops == pytest.approx(1555e9 / 8)
    assert row.ridge == pytest.approx(A100.peak_flops / 1555e9)


def test_large_products_are_bound_by_compute_PT3() -> None:
    row = row_of(LARGE_DOT)
    assert row.flops == 2 * 4096**3
    assert row.compute == pytest.approx(2 * 4096**3 / A100.matrix_flops("bf16"))
    assert row.bound is Bound.COMPUTE
    assert row.attainable_flops == A100.matrix_flops("bf16")


def test_small_instructions_are_bound_by_latency_PT3() -> None:
    row = row_of("ENTRY e { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }")
    assert row.bound is Bound.LATENCY


@pytest.mark.parametrize(
    ("compute", "memory", "blocks", "bound"),
    [
        (1e-3, 1.2e-3, 108, Bound.MEMORY),
        (1.2e-3, 1e-3, 108, Bound.COMPUTE),
        (1e-3, 1.05e-3, 108, Bound.BALANCED),
        (1.05e-3, 1e-3, 108, Bound.BALANCED),
        (1e-3, 2e-3, 53, Bound.LATENCY),
        (1e-3, 2e-3, 54, Bound.MEMORY),
        (1e-6, 1.5e-6, 108, Bound.LATENCY),
    ],
)
def test_classes_PT3(compute: float, memory: float, blocks: int, bound: Bound) -> None:
    total = total_seconds(compute, memory)
    assert classify(compute, memory, total, blocks, 108) is bound


def test_intensity_without_bytes_or_flops_PT3() -> None:
    row = row_of("ENTRY e { ROOT t = () tuple() }")
    assert row.intensity == 0.0
    copy = row_of("ENTRY e { p = f32[64] parameter(0) ROOT c = f32[64] copy(p) }")
    assert (copy.flops, copy.intensity) == (0.0, 0.0)
    module = msa.parse(
        "ENTRY e { p = f32[64] parameter(0) ROOT n = f32[64] negate(p) }"
    )
    costs = InstructionCosts.run(module)
    costs.properties(module.entry.root).bytes_accessed = 0.0
    assert roofline(module.entry.root, A100, costs).intensity == inf


def test_measured_fraction_PT3() -> None:
    text = (
        "ENTRY e { p = f32[4096,4096] parameter(0) ROOT n = f32[4096,4096] negate(p) }"
    )
    best = row_of(text)
    seconds = best.flops / best.attainable_flops
    assert row_of(text, measured_seconds=2 * seconds).achieved == pytest.approx(0.5)
    assert best.achieved is None


def test_the_dominant_operand_PT3() -> None:
    row = row_of(
        """
ENTRY e {
  a = f32[1024,1024] parameter(0)
  b = f32[1024,16] parameter(1)
  ROOT d = f32[1024,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    )
    assert row.dominant == 0
    broadcast = row_of(
        "ENTRY e { p = f32[] parameter(0) ROOT b = f32[4096,64] broadcast(p),"
        " dimensions={} }"
    )
    assert broadcast.dominant == -1


def test_launch_overheads_PT2() -> None:
    module = msa.parse(
        """
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }
ENTRY e { p = f32[8] parameter(0) n = f32[8] negate(p)
  ROOT r = f32[8] all-reduce(n), to_apply=add, replica_groups={} }"""
    )
    assert launch_overhead(module.entry.root) == 5e-6
    assert launch_overhead(module.entry.root.operands[0]) == 1e-6


FUSED = """
fused {{
  p = f32[64,32]{{1,0}} parameter(0)
  c = f32[64,32]{{1,0}} bitcast(p)
  ROOT t = {body}
}}
ENTRY e {{ p = f32[64,32]{{1,0}} parameter(0)
  ROOT f = {shape} fusion(p), kind=kLoop, calls=fused }}"""


def test_coalescing_PT2() -> None:
    def coalesced(text: str) -> bool:
        return is_coalesced(msa.parse(text).entry.root, 0)

    transposed = "f32[32,64]{1,0} transpose(c), dimensions={1,0}"
    assert not coalesced(FUSED.format(body=transposed, shape="f32[32,64]{1,0}"))
    plain = "f32[64,32]{1,0} negate(c)"
    assert coalesced(FUSED.format(body=plain, shape="f32[64,32]{1,0}"))
    copy = (
        "ENTRY e {{ p = f32[64,32]{{1,0}} parameter(0) ROOT c = f32[64,32]{} copy(p) }}"
    )
    assert not coalesced(copy.format("{0,1}"))
    assert coalesced(copy.format("{1,0}"))
    # A transposition that only moves a dimension of size 1 keeps the order.
    unit = (
        "ENTRY e { p = f32[64,1]{1,0} parameter(0)"
        " ROOT t = f32[1,64]{1,0} transpose(p), dimensions={1,0} }"
    )
    assert coalesced(unit)
    # A layout that makes the transposition a bitcast.
    bitcast = (
        "ENTRY e { p = f32[64,32]{1,0} parameter(0)"
        " ROOT t = f32[32,64]{0,1} transpose(p), dimensions={1,0} }"
    )
    assert coalesced(bitcast)


# -- the report (PT-3) -----------------------------------------------------------------

LOOP = """
body {
  p = (s32[], f32[2048,2048]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2048,2048] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[2048,2048] negate(x)
  z = f32[2048,2048] abs(y)
  ROOT t = (s32[], f32[2048,2048]) tuple(next, z)
}
cond {
  p = (s32[], f32[2048,2048]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT
}
ENTRY main {
  zero = s32[] constant(0)
  x = f32[2048,2048] parameter(0)
  big = f32[4096,4096] parameter(1)
  t = (s32[], f32[2048,2048]) tuple(zero, x)
  w = (s32[], f32[2048,2048]) while(t), condition=cond, body=body
  o = f32[2048,2048] get-tuple-element(w), index=1
  tr = f32[4096,4096] transpose(big), dimensions={1,0}
  ROOT r = (f32[2048,2048], f32[4096,4096]) tuple(o, tr)
}"""


def test_runs_are_counted() -> None:
    module = msa.parse(LOOP)
    runs = {x.name: n for x, n in kernels(module)}
    assert (runs["y"], runs["z"], runs["lt"], runs["tr"]) == (10, 10, 10, 1)
    assert "w" not in runs
    counts = {c.name: n for c, n in run_counts(module).items()}
    assert counts == {"main": 1, "body": 10, "cond": 10}


def test_the_report_is_sorted_by_traffic_of_all_runs_PT3() -> None:
    report = bandwidth_limited(msa.parse(LOOP), A100)
    by_name = {row.roofline.name: row for row in report.rows}
    assert set(by_name) == {"tr", "y", "z"}
    seconds = [row.seconds for row in report.rows]
    assert seconds == sorted(seconds, reverse=True)
    for row in report.rows:
        assert row.seconds == pytest.approx(row.roofline.memory * row.runs)
    assert by_name["y"].runs == 10
    assert bandwidth_limited(msa.parse(LOOP), A100, top=1).rows == report.rows[:1]


def test_advice_PT3() -> None:
    report = bandwidth_limited(msa.parse(LOOP), A100, fast_bandwidth=15550e9)
    advice = {r.roofline.name: {a.remedy: a for a in r.advice} for r in report.rows}
    size = 2048 * 2048 * 4
    # z reads y, which nothing else reads: one write and one read less.
    assert advice["z"][Remedy.FUSION].bytes == 2 * size
    assert advice["z"][Remedy.FUSION].subject == "y"
    # Reading 16 MiB ten times faster saves nine tenths of the time.
    fast = advice["z"][Remedy.FAST_MEMORY]
    assert fast.seconds == pytest.approx(0.9 * size / 1555e9)
    assert Remedy.LOOP in advice["z"]
    # Of the transposed read, 15 of 16 bytes are wasted.
    layout = advice["tr"][Remedy.LAYOUT]
    assert layout.seconds == pytest.approx(15 * 4096 * 4096 * 4 / 1555e9)
    assert Remedy.LOOP not in advice["tr"]


def test_recomputing_is_advised_for_cheap_producers_PT3() -> None:
    text = """
ENTRY e {
  s = f32[2048] parameter(0)
  b = f32[2048,2048] broadcast(s), dimensions={1}
  x = f32[2048,2048] negate(b)
  y = f32[2048,2048] abs(b)
  ROOT t = (f32[2048,2048], f32[2048,2048]) tuple(x, y)
}"""
    report = bandwidth_limited(msa.parse(text), A100)
    advice = {r.roofline.name: {a.remedy: a for a in r.advice} for r in report.rows}
    assert advice["x"][Remedy.RECOMPUTE].subject == "b"
    assert advice["x"][Remedy.RECOMPUTE].bytes == 2048 * 2048 * 4 - 2048 * 4


def test_the_report_has_three_forms() -> None:
    report = bandwidth_limited(msa.parse(LOOP), A100)
    assert "tr (transpose)" in report.to_text()
    assert str(report) == report.to_text()
    assert report.to_dict()["rows"][0]["roofline"]["bound"] == "memory"


# -- loops (PT-4) ----------------------------------------------------------------------


def test_loop_sums_by_hand_PT4() -> None:
    module = msa.parse(LOOP)
    bound = loop_bound(module.entry.instructions[4], TPU)
    assert bound.loop == "w"
    size = 2048 * 2048
    # y and z read and write f32[2048,2048]; next and lt move 12 and 9 bytes.
    assert bound.bytes == 4 * 4 * size + 12 + 9
    assert bound.memory == pytest.approx(bound.bytes / TPU.default_memory_bandwidth)
    assert bound.compute == pytest.approx((2 * size + 2) / TPU.flops_per_second)
    assert bound.ratio == pytest.approx(bound.memory / bound.compute)
    assert bound.memory_bound
    assert bound.needed_bandwidth == pytest.approx(bound.bytes / bound.compute)
    assert bound.trips == 10
    assert all(idle == 0 for name, idle in bound.idle if name in "yz")


def test_the_optimizer_keeps_temporaries_fast_PT4() -> None:
    module = msa.parse(LOOP)
    optimized = loop_bound(module.entry.instructions[4], TPU).optimized
    assert optimized is not None
    assert optimized.after < optimized.before
    assert optimized.after >= optimized.lower_bound * (1 - 1e-6)
    # y is written and read within an iteration: that traffic is fast.
    assert optimized.alternate_bytes >= 2 * 2048 * 2048 * 4
    nothing = loop_bound(
        module.entry.instructions[4], TPU.replace(alternate_memory_bytes=1024)
    ).optimized
    assert nothing is not None
    assert nothing.after == pytest.approx(nothing.before, rel=1e-3)


def test_loops_that_cannot_be_handed_over_say_why_PT4() -> None:
    inner = LOOP.replace(
        "y = f32[2048,2048] negate(x)", "y = f32[2048,2048] call(x), to_apply=g"
    )
    inner = (
        "g { q = f32[2048,2048] parameter(0) ROOT v = f32[2048,2048] negate(q) }\n"
        + inner
    )
    module = msa.parse(inner)
    bound = loop_bound(module.entry.instructions[4], TPU)
    assert bound.optimized is None
    assert "other computations" in bound.reason
    assert bound.bytes == 4 * 4 * 2048 * 2048 + 12 + 9
    assert "not optimized" in bound.to_text()
    with pytest.raises(UnsupportedError, match="not while"):
        loop_bound(module.entry.root, TPU)


@pytest.mark.parametrize("capacity", ["1MiB", "40MiB", "128MiB"])
def test_no_iteration_beats_its_bound_PT4(capacity: str) -> None:
    module = msa.parse(LOOP)
    target = TPU.replace(alternate_memory_bytes=capacity)
    optimized = loop_bound(module.entry.instructions[4], target).optimized
    assert optimized is not None
    assert optimized.lower_bound <= optimized.after * (1 + 1e-6)
    assert optimized.after <= optimized.before * (1 + 1e-6)


# -- contention (PT-5) -----------------------------------------------------------------


def test_contention_by_hand_PT5() -> None:
    report = concurrency_report(
        [
            Demand("a", 0, 4, 60),
            Demand("b", 1, 3, 60),
            Demand("c", 2, 5, 30),
            Demand("nothing", 7, 7, 1e9),
            Demand("d", 9, 10, 10),
        ],
        100,
    )
    rows = [(i.start, i.end, i.demand) for i in report.intervals]
    assert rows == [
        (0, 1, 60),
        (1, 2, 120),
        (2, 3, 150),
        (3, 4, 90),
        (4, 5, 30),
        (9, 10, 10),
    ]
    assert report.stall_seconds == pytest.approx(0.2 + 0.5)
    assert report.peak_demand == 150
    assert [i.running for i in report.oversubscribed] == [("a", "b"), ("a", "b", "c")]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(0, 50)), max_size=9
    )
)
def test_contention_equals_brute_force_PT5(rows) -> None:
    timeline = [
        Demand(str(i), start, start + length, rate)
        for i, (start, length, rate) in enumerate(rows)
    ]
    report = concurrency_report(timeline, 40)
    want = 0.0
    for second in range(30):
        total = sum(d.bandwidth for d in timeline if d.start <= second < d.end)
        want += max(0.0, total / 40 - 1)
    assert report.stall_seconds == pytest.approx(want)


def test_contention_refuses_nonsense_PT5() -> None:
    with pytest.raises(OptionsError):
        concurrency_report([], 0)
    with pytest.raises(OptionsError):
        concurrency_report([Demand("a", 2, 1, 1)], 1)
