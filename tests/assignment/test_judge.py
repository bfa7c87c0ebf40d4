"""Reasons of finished plans: against the plans themselves, and worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from msa import Reason
from msa.assignment import Assignment, Finding
from msa.assignment.allocation import CopyAllocation, SlicedCopyAllocation, Use
from msa.assignment.estimate import Estimator
from msa.assignment.judge import Judge
from msa.assignment.problem import Value
from msa.testing import modules, random_module

V5E = msa.Target.preset("tpu_v5e")


def judged(plan: Assignment) -> Iterator[tuple[Value, Use, tuple[Finding, ...]]]:
    for value in plan.problem.values:
        for use in value.uses:
            yield value, use, plan._judge.of_use(value, use)


def largest_hole(plan: Assignment, value: Value, start: int, end: int) -> int:
    """The plain way: every address of the memory, in units of the alignment."""
    machine = plan.problem.machine
    mates = {value.id, *plan.problem.buffers[value.buffer]}
    busy = [False] * (machine.capacity // machine.alignment)
    for a in plan.allocations:
        if not a.is_alternate or a.chunk is None or a.value in mates:
            continue
        pieces = [(a.chunk, a.start)]
        if isinstance(a, SlicedCopyAllocation):
            pieces = [(s.chunk, s.start_after + 1) for s in a.slices]
        for chunk, first in pieces:
            if first <= end and a.end >= start and chunk.size:
                low = chunk.offset // machine.alignment
                high = -(-chunk.end // machine.alignment)
                busy[low:high] = [True] * (high - low)
    longest = run = 0
    for taken in busy:
        run = 0 if taken else run + 1
        longest = max(longest, run)
    return longest * machine.alignment


def in_flight(plan: Assignment, start: int, end: int) -> set[str]:
    found = set()
    for a in plan.allocations:
        if isinstance(a, CopyAllocation):
            first = a.start_after + 1
        elif isinstance(a, SlicedCopyAllocation):
            first = a.start
        else:
            continue
        if first <= end and a.done_before > start:
            value = plan.problem.values[a.value]
            found.add(plan.problem.describe(value.position))
    return found


def check_finding(plan: Assignment, value: Value, use: Use, found: Finding) -> None:
    """What a finding says is so in the plan."""
    assert found.start <= found.end
    assert found.sentence
    needed = -(-value.size // plan.problem.machine.alignment)
    needed *= plan.problem.machine.alignment
    text = " ".join((found.sentence, *found.lines()))
    if found.reason is Reason.NO_ROOM:
        assert largest_hole(plan, value, found.start, found.end) < needed
        assert found.competitors
        assert found.change
        assert all(c.what == "room" for c in found.competitors)
        assert all(c.start <= found.end for c in found.competitors)
        assert all(c.end >= found.start for c in found.competitors)
    else:
        assert "no room" not in text
    if found.reason is Reason.OPEN and found.way == "stay":
        tied = len(plan.problem.buffers[value.buffer]) > 1
        assert tied or largest_hole(plan, value, found.start, found.end) >= needed
    if found.reason is Reason.NO_BANDWIDTH:
        flying = in_flight(plan, found.start, found.end)
        assert flying
        assert found.competitors
        assert {c.name for c in found.competitors} <= flying
        assert found.change
    else:
        assert "bandwidth left" not in text
    if found.reason is Reason.TOO_MANY_COPIES:
        limit = plan.options.max_outstanding_prefetches
        assert 0 <= limit <= len(in_flight(plan, found.start, found.end)) or not limit
    if found.reason is Reason.NO_GAIN:
        assert found.seconds == 0.0
        traffic = plan._judge.traffic
        bound = traffic.compute[use.step] >= traffic.memory[use.step]
        left = {x.name for x in plan.analyses.schedule.instructions}
        removed = plan.problem.names[use.step] not in left
        assert bound or removed or not traffic.trips(use.step)
        assert removed or "is removed" not in text


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    module=modules(max_size=40, max_vector=1024),
    capacity=st.sampled_from([1024, 4096, 16384, 1 << 20]),
    strategy=st.sampled_from(["greedy", "search"]),
    flops=st.sampled_from([1e9, 197e12]),
    limit=st.sampled_from([-1, -1, 1]),
)
def test_reasons_hold_in_the_finished_plan(
    module: msa.Module, capacity: int, strategy: str, flops: float, limit: int
) -> None:
    target = V5E.replace(
        alternate_memory_bytes=capacity, alignment_bytes=256, flops_per_second=flops
    )
    options = msa.Options(strategy=strategy, max_outstanding_prefetches=limit)
    plan = msa.assign(module, target, options)
    fast = {(a.value, u) for a in plan.allocations if a.is_alternate for u in a.uses}
    for value, use, findings in judged(plan):
        assert findings
        if findings[0].reason is Reason.FAST:
            assert (value.id, use) in fast
        for found in findings:
            check_finding(plan, value, use, found)
    for decision in plan.decisions:
        assert isinstance(decision.reason, Reason)
        assert decision.fast == (not decision.reasons) or not decision.use
        assert (decision.reason is Reason.FAST) <= decision.fast
        if decision.reasons and decision.reason is not Reason.RULE:
            assert decision.reasons[0] == decision.reason.sentence


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    module=modules(max_size=30, max_vector=1024),
    capacity=st.sampled_from([4096, 1 << 20]),
)
def test_times_of_steps_add_up_to_the_estimated_run(
    module: msa.Module, capacity: int
) -> None:
    target = V5E.replace(alternate_memory_bytes=capacity, alignment_bytes=256)
    plan = msa.assign(module, target)
    traffic, last = plan._judge.traffic, plan.problem.end - 1
    left = {x.name for x in plan.analyses.schedule.instructions}
    kept = [step for step, name in enumerate(plan.problem.names) if name in left]
    run = Estimator(plan.problem, kept).run(plan.allocations)
    assert traffic.seconds(0, last) == pytest.approx(run.seconds - run.stall, rel=1e-6)
    assert traffic.left(0, last) <= traffic.idle(0, last) * (1 + 1e-9)
    assert traffic.idle(0, last) <= traffic.seconds(0, last) * (1 + 1e-9)
    for mover in traffic.movers(0, last):
        size = plan.problem.values[mover.copy.value].size
        assert 0.0 < mover.seconds <= size / traffic.rate * (1 + 1e-9)


# 512 × 512 floats are 1 MiB, of which a copy takes 2**20 / 819e9 s = 1.28 µs. The dot
# multiplies 2 · 512³ flops in 3.9 µs and reads x twice in 2.56 µs (its result is in fast
# memory): 1.34 µs are idle, enough for one of two copies. The other one would be waited
# for 2.56 - 1.34 = 1.22 µs, and saves nine tenths of 1.28 µs, 1.15 µs.
NARROW = """
HloModule narrow, is_scheduled=true
ENTRY main {
  x = f32[512,512]{1,0} parameter(0)
  w1 = f32[512,512]{1,0} parameter(1)
  w2 = f32[512,512]{1,0} parameter(2)
  d = f32[512,512]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[512,512]{1,0} add(w1, w2)
  ROOT r = f32[512,512]{1,0} add(s, d)
}
"""
NARROW_TARGET = V5E.replace(
    alternate_memory_bytes="8MiB", flops_per_second=2 * 512**3 / 3.9e-6
)


def narrow_plan() -> Assignment:
    options = msa.Options(strategy="search")
    return msa.assign(msa.parse(NARROW), NARROW_TARGET, options)


def test_no_bandwidth_names_the_copies_that_have_it() -> None:
    plan = narrow_plan()
    (copy,) = plan.copies
    out = {"w1{}": "w2", "w2{}": "w1"}[copy.value]
    found = plan.why_not(out)
    (use,) = found.values[0].slow
    assert use.reason is Reason.NO_BANDWIDTH
    (finding,) = use.findings
    (rival,) = finding.competitors
    assert (rival.what, rival.name, rival.bytes) == ("bandwidth", copy.value, 2**20)
    assert (finding.start, finding.end) == ({"w1": 2, "w2": 3}[out], 3)
    assert "no copy bandwidth left in that time" in found
    assert "a copy of 1 MiB takes 1.28 µs" in found
    assert f"copied there: {copy.value} (1 MiB, " in found
    assert f"it would be hidden if {copy.value} were not copied then" in found
    decision = next(d for d in plan.decisions if d.value == f"{out}{{}}")
    assert (decision.reason, decision.competitors) == (use.reason, (rival,))
    assert decision.change == finding.change


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_nothing_is_gained_where_arithmetic_takes_longer(strategy: str) -> None:
    """859 µs of arithmetic: 2 · 2048³ flops at 20e12 flops a second."""
    shape = "f32[2048,2048]{1,0}"
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    module = msa.parse(f"""
HloModule bound, is_scheduled=true
ENTRY main {{
  x = {shape} parameter(0)
  w = {shape} parameter(1)
  a = {shape} dot(x, x), {dims}
  ROOT c = {shape} dot(a, w), {dims}
}}""")
    plan = msa.assign(
        module,
        V5E.replace(flops_per_second=20e12),
        msa.Options(strategy=strategy),
    )
    (use,) = plan.why_not("w").values[0].slow
    assert use.reason is Reason.NO_GAIN
    text = plan.why_not("w")
    assert "it would gain nothing" in text
    assert "c (step 3) is bound by arithmetic: it computes for 859 µs" in text
    assert "save 0 s" in text
    assert {d.reason for d in plan.decisions if d.value == "w{}"} == {Reason.NO_GAIN}


def test_a_limit_of_copies_is_named_only_with_copies_under_way() -> None:
    wide = NARROW_TARGET.replace(flops_per_second=2 * 512**3 / 8e-6)
    options = msa.Options(max_outstanding_prefetches=1)
    plan = msa.assign(msa.parse(NARROW), wide, options)
    (copy,) = plan.copies
    out = {"w1{}": "w2", "w2{}": "w1"}[copy.value]
    (use,) = plan.why_not(out).values[0].slow
    assert use.reason is Reason.TOO_MANY_COPIES
    assert [c.name for c in use.findings[0].competitors] == [copy.value]
    none = msa.assign(
        msa.parse(NARROW), wide, msa.Options(max_outstanding_prefetches=0)
    )
    assert not none.copies
    assert "under way in" in none.why_not("w1")
    assert ": none; 0 are allowed" in none.why_not("w1")


@pytest.mark.parametrize("question", ["explain", "why_not"])
def test_an_explanation_is_text_and_data_and_a_page(question: str) -> None:
    plan = narrow_plan()
    (copy,) = plan.copies
    out = {"w1{}": "w2", "w2{}": "w1"}[copy.value]
    found = getattr(plan, question)(out)
    data = json.loads(found.to_json())
    assert (data["schema"], data["question"]) == ("msa.explanation/1", question)
    assert data["text"] == found
    (value,) = data["values"]
    (use,) = value["slow"]
    assert (value["value"], use["reason"]) == (f"{out}{{}}", "no_bandwidth")
    assert use["uses"] == [f"s:{int(out[1]) - 1}{{}}"]
    (rival,) = use["findings"][0]["competitors"]
    assert (rival["name"], rival["bytes"]) == (copy.value, 2**20)
    page = found.html()
    assert page.startswith("<!doctype html>")
    for part in ("no_bandwidth", copy.value, "were not copied then"):
        assert part in page


# The same, but the second copy would be waited for 1.12 µs only, less than it saves.
def test_a_copy_that_is_waited_for_less_than_it_saves_is_left_open() -> None:
    wider = NARROW_TARGET.replace(flops_per_second=2 * 512**3 / 4.0e-6)
    plan = msa.assign(msa.parse(NARROW), wider, msa.Options(strategy="search"))
    assert {copy.value for copy in plan.copies} == {"w1{}", "w2{}"}
    narrow = narrow_plan()
    (copy,) = narrow.copies
    out = {"w1{}": "w2{}", "w2{}": "w1{}"}[copy.value]
    judge = Judge(plan.problem, narrow.allocations, plan.options)
    values = {plan.problem.describe(v.position): v for v in plan.problem.values}
    (use,) = values[out].uses
    (found,) = judge.of_use(values[out], use)
    assert found.reason is Reason.OPEN
    assert "a copy would be waited for 1.12 µs there, less than it saves" in (
        found.details
    )


TIED = """
HloModule tied, is_scheduled=true
inside {
  a = f32[512,512]{1,0} parameter(0)
  ROOT b = f32[512,512]{1,0} tanh(a)
}
ENTRY main {
  p = f32[512,512]{1,0} parameter(0)
  v = f32[512,512]{1,0} negate(p)
  c = f32[512,512]{1,0} call(v), to_apply=inside
  ROOT r = f32[512,512]{1,0} add(c, v)
}
"""


@pytest.mark.parametrize("strategy", ["greedy", "search"])
def test_nothing_is_said_of_room_where_the_memory_is_empty(strategy: str) -> None:
    """Whatever is placed: 3 MiB are alive at most, and 8 MiB are there."""
    target = V5E.replace(alternate_memory_bytes="8MiB")
    plan = msa.assign(msa.parse(TIED), target, msa.Options(strategy=strategy))
    for name in ("p", "v", "b", "c"):
        text = plan.explain(name) + plan.why_not(name)
        assert "no room" not in text
        assert "0 B of" not in text


def test_reasons_are_words_for_programs_with_sentences_for_people() -> None:
    assert len({reason.sentence for reason in Reason}) == len(Reason)
    assert all(reason == reason.name.lower() for reason in Reason)


def test_a_reader_that_is_removed_is_said_to_be_removed() -> None:
    """Nothing reads `unused`, so the planned module does not have it."""
    module = msa.parse("""
HloModule m, is_scheduled=true
ENTRY main {
  p = f32[1024]{0} parameter(0)
  unused = f32[1024]{0} tanh(p)
  ROOT r = f32[1024]{0} negate(p)
}""")
    plan = msa.assign(module, V5E)
    (use,) = (u for u in plan.why_not("p").values[0].slow if "unused" in u.uses[0])
    assert use.reason is Reason.NO_GAIN
    assert use.lines()[1].strip() == "unused (step 1) is removed: nothing reads it"


@pytest.mark.parametrize("seed", [48, 49, 50])
def test_steps_that_the_planned_module_has_are_not_said_to_be_removed(
    seed: int,
) -> None:
    target = V5E.replace(alternate_memory_bytes=16384, alignment_bytes=256)
    plan = msa.assign(random_module(seed, size=60, vector=1024), target)
    left = {x.name for x in plan.analyses.schedule.instructions}
    traffic, names = plan._judge.traffic, plan.problem.names
    gone = {names[step] for step in range(plan.problem.end) if traffic.is_removed(step)}
    assert gone
    assert not gone & left
    for _, use, findings in judged(plan):
        for found in findings:
            said = "is removed" in " ".join(found.lines())
            assert not said or names[use.step] in gone
    run = plan.simulation
    seconds = traffic.seconds(0, plan.problem.end - 1)
    assert seconds == pytest.approx(run.elapsed_seconds - run.copy_stall_seconds)
