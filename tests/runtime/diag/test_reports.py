"""Statistics, usage, peaks, timelines, comparison, shortfalls and audits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa.analysis import BufferAssignment
from msa.analysis.buffer_assignment import EventKind, allocation_load
from msa.passes.binding import Platform
from msa.runtime.diag import (
    assignment_shortfall,
    audit,
    audit_lifetimes,
    compare,
    heap_trace,
    human_bytes,
    peak_report,
    pool_shortfall,
    statistics,
    top_buffers,
    usage_report,
    usage_timeline,
)
from msa.runtime.diag.audits import joined
from msa.runtime.diag.loads import usage_of
from msa.runtime.diag.peak import ValueKind
from msa.runtime.diag.usage import PlacedAllocation, PlacedValue
from msa.runtime.host import BFCAllocator, BFCOptions, SimSubAllocator
from msa.testing import random_module

TPU = msa.Target.preset("tpu_v5e")

MODULE = """
HloModule m, is_scheduled=true
ENTRY main {
  p = f32[256]{0} parameter(0)
  a = f32[1024]{0} broadcast(p), dimensions={}
  b = f32[1024]{0} negate(a), metadata={op_name="jit/neg" source_file="f.py" source_line=3}
  c = f32[2048]{0} concatenate(a, b), dimensions={0}
  d = f32[512]{0} slice(c), slice={[0:512]}
  ROOT e = f32[256]{0} slice(d), slice={[0:256]}
}""".replace("broadcast(p), dimensions={}", "concatenate(p, p, p, p), dimensions={0}")


def assigned(text: str = MODULE) -> BufferAssignment:
    return BufferAssignment.run(msa.parse(text))


SEEDS = st.integers(0, 10**6)


# -- sizes and statistics (DX-1) -------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (512, "512B"),
        (1023, "1023B"),
        (1024, "1.0KiB"),
        (4096, "4.0KiB"),
        (3 << 19, "1.50MiB"),
        (5 << 30, "5.00GiB"),
        (-4096, "-4.0KiB"),
    ],
)
def test_human_bytes_DX1(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_statistics_by_hand_DX1() -> None:
    assignment = assigned()
    found = statistics(assignment)
    assert (found.parameters.count, found.parameters.bytes) == (1, 1024)
    assert found.total.bytes == sum(a.size for a in assignment.allocations)
    # a and b (4 KiB each) with c (8 KiB) are needed at once.
    load = sum(
        allocation_load(a, assignment.live, 7)
        for a in assignment.allocations
        if a.is_temporary
    )
    assert max(load) == 16384
    assert found.temporary_fragmentation == found.temporaries.bytes - 16384
    lines = found.to_text().splitlines()
    assert len(lines) == 7
    assert lines[-1].endswith("%)")
    assert {len(line) for line in lines[:5]} == {49}


def test_total_fragmentation_needs_all_schedules_DX1() -> None:
    assignment = assigned()
    assert statistics(assignment).total_fragmentation >= 0
    assert assignment.module.schedule is not None
    assignment.module.schedule.remove(assignment.module.entry)
    found = statistics(assignment)
    assert found.total_fragmentation == -1
    assert "total_fragmentation" not in found.to_dict()
    assert "total fragmentation" not in found.to_text()


# -- usage (DX-2) ----------------------------------------------------------------------


def test_groups_by_color_DX2() -> None:
    report = usage_report(
        [
            PlacedAllocation(0, 4096, 0),
            PlacedAllocation(1, 1024, 0),
            PlacedAllocation(2, 2048, 1),
        ]
    )
    first, second = report.spaces
    assert (first.color, first.total, second.color, second.total) == (0, 5120, 1, 2048)
    assert [(e.size, e.share) for e in first.entries] == [(4096, 0.8), (1024, 1.0)]
    assert [(e.size, e.share) for e in second.entries] == [(2048, 1.0)]
    assert (first.name, second.name) == ("hbm", "vmem")
    gpu = usage_report([PlacedAllocation(0, 8, 1)], platform=Platform.preset("gpu"))
    assert gpu.spaces[0].name == "collective"


def test_ties_go_by_index_DX2() -> None:
    rows = [PlacedAllocation(3, 8, 0), PlacedAllocation(1, 8, 0)]
    assert [e.index for e in usage_report(rows).spaces[0].entries] == [1, 3]


def test_values_group_by_offset_DX2() -> None:
    values = (
        PlacedValue(0, 0, 64, "f32[16]"),
        PlacedValue(1, 0, 64, "f32[16]"),
        PlacedValue(2, 64, 128, "f32[32]"),
    )
    [entry] = usage_report([PlacedAllocation(0, 192, 0, values)]).spaces[0].entries
    rows = [(g.offset, g.size, g.count, g.shapes) for g in entry.groups]
    assert rows == [(64, 128, 1, ("f32[32]",)), (0, 64, 2, ("2×f32[16]",))]
    assert [g.cumulative for g in entry.groups] == [128, 192]


def many(last: int) -> PlacedAllocation:
    """51 offsets of equal size, then nine that hold `last` per cent together."""
    values = [PlacedValue(i, i * 10000, 9 * (100 - last), "f") for i in range(51)]
    values += [PlacedValue(51 + i, (51 + i) * 10000, 51 * last, "f") for i in range(9)]
    return PlacedAllocation(0, 10**7, 0, tuple(values))


def test_tables_stop_below_the_percentile_DX2() -> None:
    [entry] = usage_report([many(4)]).spaces[0].entries
    assert len(entry.groups) == 51
    assert entry.left is not None
    assert (entry.left.count, round(entry.left.share, 9)) == (9, 0.04)
    assert "9 offsets left, 4.0%, below 5%" in usage_report([many(4)]).to_text()


def test_tables_go_on_while_much_is_left_DX2() -> None:
    # Nine smallest of sixty hold at most 15 %. At 12 %, 1.33 % each, six more rows
    # leave 4 %.
    [entry] = usage_report([many(12)]).spaces[0].entries
    assert len(entry.groups) == 51 + 6
    assert entry.left is not None
    assert (entry.left.count, round(entry.left.share, 9)) == (3, 0.04)
    # Nine that hold 20 % are the largest: three of the others, 1.57 % each, are left.
    [entry] = usage_report([many(20)]).spaces[0].entries
    assert len(entry.groups) == 57
    assert entry.left is not None
    assert entry.left.share == pytest.approx(3 * 0.8 / 51)


def test_nothing_divides_by_zero_DX2() -> None:
    [space] = usage_report([PlacedAllocation(0, 0, 0)]).spaces
    assert space.entries[0].share == 0
    assert usage_report([]).spaces == ()


def test_usage_of_an_assignment_DX2() -> None:
    report = usage_report(assigned())
    [space] = report.spaces
    sizes = [e.size for e in space.entries]
    assert sizes == sorted(sizes, reverse=True)
    assert "f32[2048]" in report.to_text()
    assert "{0}" not in report.to_text()
    assert "f32[2048]{0}" in usage_report(assigned(), print_layout=True).to_text()
    assert json.loads(json.dumps(report.to_dict()))["spaces"][0]["color"] == 0


# -- peaks (DX-3) ----------------------------------------------------------------------


def test_the_peak_by_hand_DX3() -> None:
    report = peak_report(assigned())
    [space] = report.spaces
    # c reads a and b: 8 + 4 + 4 KiB of temporaries, the argument and the result.
    assert space.instruction == "c"
    assert space.bytes == 16384 + 1024 + 1024
    assert [v.name for v in space.values] == ["c{}", "a{}", "b{}", "p{}"]
    assert space.by_kind == {"temp": 16384, "parameter": 1024}
    [b] = [v for v in space.values if v.name == "b{}"]
    assert (b.op_name, b.source, b.producer) == ("jit/neg", "f.py:3", "negate")
    assert b.kind is ValueKind.TEMPORARY
    assert space.what_if[0].name == "c{}"
    # Without c, a and b are what is left at that moment.
    assert space.what_if[0].peak == 8192 + 2048
    text = report.to_text()
    assert "Entry Parameter Subshape: f32[256]" in text
    assert "jit/neg f.py:3" in text


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_live_sizes_and_holes_fill_the_temporaries_DX3(seed: int) -> None:
    assignment = BufferAssignment.run(random_module(seed, size=40))
    for space in peak_report(assignment).spaces:
        temporary = {
            a.index: a.size
            for a in assignment.allocations
            if a.is_temporary and a.color == space.space
        }
        live = sum(v.size for v in space.values if v.allocation in temporary)
        holes = sum(h.size for h in space.holes)
        assert live + holes == sum(temporary.values())
        for row in space.what_if:
            assert row.peak < space.bytes


def test_top_buffers_keep_the_first_of_equals_DX3() -> None:
    rows = top_buffers(assigned(), top=2)
    assert [v.name for v in rows] == ["c{}", "a{}"]


# -- timelines (DX-4) ------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_replaying_the_trace_gives_the_series_DX4(seed: int) -> None:
    assignment = BufferAssignment.run(random_module(seed, size=40))
    for space in (None, 0):
        fixed, moments, sizes = heap_trace(assignment, space)
        series, now = [], fixed
        for events in moments[:-1]:
            for event in events:
                sign = 1 if event.kind is EventKind.ALLOC else -1
                now += sign * sizes[event.buffer]
            series.append(now)
        timeline = usage_timeline(assignment, space)
        assert timeline.series() == series == usage_of(assignment, space).tolist()
        assert timeline.points[0].time == 0


def test_timeline_forms_DX4() -> None:
    timeline = usage_timeline(assigned())
    rows = timeline.to_csv().splitlines()
    assert rows[0] == "time,live,allocated,events"
    assert len(rows) == len(timeline.points) + 1
    assert "alloc a{}" in timeline.to_csv()
    assert "█" in timeline.to_text()
    assert timeline.to_dict()["points"][0]["time"] == 0


# -- before and after (DX-5) -----------------------------------------------------------


def test_compare_a_plan_DX5() -> None:
    text = MODULE.replace("1024", "1024000").replace("2048", "2048000")
    text = text.replace("256]{0} parameter", "256000]{0} parameter")
    module = msa.parse(
        text.replace("f32[256]{0} parameter", "f32[256000]{0} parameter")
    )
    plan = msa.assign(module, TPU)
    result = compare(module, plan.module, TPU)
    assert result.after.seconds == pytest.approx(plan.estimate.after_seconds)
    assert result.before.seconds == pytest.approx(plan.estimate.before_seconds)
    moved = {name for name, old, new in result.moved if (old, new) == (0, 1)}
    assert moved
    added = sum(count for count, _ in result.copies_added.values())
    assert added == len(plan.copies)
    assert result.after.default_traffic < result.before.default_traffic
    assert "values moved" in result.to_text()
    same = compare(module, module, TPU)
    assert same.moved == ()
    assert not any(n for n, _ in same.copies_added.values())


# -- shortfalls (DX-10) ----------------------------------------------------------------


def test_a_shortfall_by_hand_DX10() -> None:
    assignment = assigned()
    total = sum(a.size for a in assignment.allocations)
    assert assignment_shortfall(assignment, total) is None
    found = assignment_shortfall(assignment, total - 100)
    assert found is not None
    assert (found.request, found.limit, found.shortfall) == (total, total - 100, 100)
    sizes = [r.bytes for r in found.remedies]
    assert sizes == sorted(sizes, reverse=True)
    assert found.remedies[0].bytes == 8192
    assert found.remedies[0].subject == "c{}"
    assert "preallocated temp" in found.to_text()


def test_a_pool_that_is_cut_up_DX10() -> None:
    options = BFCOptions(allow_growth=False)
    pool = BFCAllocator(SimSubAllocator(), 4096, options, name="small")
    blocks = [pool.allocate(1024) for _ in range(4)]
    pool.deallocate(blocks[0])
    pool.deallocate(blocks[2])
    found = pool_shortfall(pool, 2000, 2048)
    assert found.shortfall == 1024
    assert ("defragment", 2048) in [(r.what, r.bytes) for r in found.remedies]
    assert "cannot allocate 2000 bytes" in found.to_text()


# -- audits (DX-12) --------------------------------------------------------------------


def test_good_plans_pass_and_bad_ones_do_not_DX12() -> None:
    module = msa.parse(MODULE)
    plan = msa.assign(module, TPU)
    assert audit(plan.module, plan).clean
    chunks = dict(plan.chunks)
    assert len(chunks) >= 2
    overlapping = {name: (0, size) for name, (_, size) in chunks.items()}
    report = audit(plan.module, overlapping, TPU, original=plan.original)
    assert not report.clean
    assert "violations" in report.to_text()
    name = next(iter(chunks))
    offset, size = chunks[name]
    for bad in ((offset + 1, size), (TPU.alternate_memory_bytes, size)):
        report = audit(plan.module, {**chunks, name: bad}, TPU, original=plan.original)
        assert not report.clean


def test_violations_have_place_step_and_figures_DX12() -> None:
    """Two chunks at the same place; one beyond the end by its own size."""
    module = msa.parse(MODULE)
    plan = msa.assign(module, TPU)
    overlapping = {name: (0, size) for name, (_, size) in plan.chunks.items()}
    report = audit(plan.module, overlapping, TPU, original=plan.original)
    rows = [row for row in report.rows if row.rule == "overlap"]
    steps = plan.analyses.schedule.instructions
    assert rows
    for row in rows:
        step = row.numbers["step"]
        assert row.where == f"step {step}, {steps[step].name}"
        assert row.numbers["bytes"] > 0
    assert f"(step {rows[0].numbers['step']}" in report.to_text()
    assert report.to_dict()["rows"][0]["numbers"]
    name, (_, size) = next(iter(plan.chunks.items()))
    beyond = {**plan.chunks, name: (TPU.alternate_memory_bytes, size)}
    report = audit(plan.module, beyond, TPU, original=plan.original)
    over = [row.numbers["over"] for row in report.rows if "over" in row.numbers]
    assert over == [size]


def test_several_audits_are_one_DX12() -> None:
    module = msa.parse(MODULE)
    plan = msa.assign(module, TPU)
    both = joined(audit(plan.module, plan), audit_lifetimes(plan.original))
    assert both.checks == ("plan", "lifetimes")
    assert both.clean


def test_assignments_are_audited_DX12() -> None:
    assignment = assigned()
    assert audit(assignment.module, assignment).clean
    temporary = max(
        (a for a in assignment.allocations if a.is_temporary), key=lambda a: a.size
    )
    for number, (_, size) in list(temporary.assigned.items()):
        temporary.assigned[number] = (0, size)
    assert not audit(assignment.module, assignment).clean


def test_lifetimes_are_audited_DX12() -> None:
    assert audit_lifetimes(msa.parse(MODULE)).clean
