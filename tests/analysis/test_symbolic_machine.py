"""Alias sets and live ranges against symbolic runs of random modules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msa
from analysis.symbolic_machine import Machine
from msa.analysis import AliasAnalysis, FlattenedSchedule, LiveRanges
from msa.testing import random_module


def check_time(module, machine: Machine) -> None:
    schedule = FlattenedSchedule.run(module)
    assert {x: schedule.time_of(x) for x in schedule.instructions} == machine.time
    assert schedule.spans == machine.span


def check_groups(alias: AliasAnalysis, machine: Machine) -> None:
    """Positions share a buffer exactly if the run demands it."""
    of_group: dict[object, int] = {}
    of_buffer: dict[int, object] = {}
    seen = 0
    for key in list(machine.groups.parent):
        if isinstance(key, int):
            continue
        seen += 1
        group = machine.groups.find(key)
        buffer = alias.unique_buffer_at(*key).id
        assert of_group.setdefault(group, buffer) == buffer, key
        assert of_buffer.setdefault(buffer, group) == group, key
    assert seen


def check_cover(live: LiveRanges, machine: Machine) -> None:
    """A buffer is live at every step from a write to the last read of it."""
    covered: dict[int, set[int]] = {}
    for value in live.alias.dataflow.values:
        bound = live.range_of(value)
        if bound is not None:
            buffer = live.alias.buffer_of(value).id
            covered.setdefault(buffer, set()).update(range(bound.start, bound.end + 1))
    for content in machine.contents:
        if content.read < content.written:
            continue
        buffer = live.alias.unique_buffer_at(*content.defined).id
        needed = set(machine.ticks[content.written : content.read + 1])
        missing = needed - covered[buffer]
        assert not missing, f"{content.defined} is not live at {sorted(missing)}"


def check_ends(live: LiveRanges, machine: Machine) -> int:
    """Values that meet no loop or root end where they are last named or read."""
    ends: dict[tuple, int] = {}
    excluded = set()
    for content in machine.contents:
        key = content.defined
        ends[key] = max([ends.get(key, -1), *content.times])
        if content.entered_loop or content.at_root or key[0].opcode == "parameter":
            excluded.add(key)
    checked = 0
    for value in live.alias.dataflow.values:
        key = (value.instruction, value.index)
        context = live.schedule.async_context.get(value.instruction.computation)
        if key in ends and key not in excluded and context is None:
            bound = live.range_of(value)
            assert bound is not None
            assert (bound.start, bound.end) == (machine.time[key[0]], ends[key]), key
            checked += 1
    return checked


def check(module) -> int:
    machine = Machine(module)
    alias = AliasAnalysis.run(module)
    check_time(module, machine)
    check_groups(alias, machine)
    check_cover(LiveRanges.run(module, alias=alias), machine)
    check_cover(LiveRanges.run(module, alias=alias, normalise=False), machine)
    return check_ends(LiveRanges.run(module, alias=alias, normalise=False), machine)


@pytest.mark.parametrize("seed", range(40))
def test_random_modules(seed) -> None:
    assert check(random_module(seed, size=40))


@given(seed=st.integers(1000, 10**6), size=st.integers(5, 80), depth=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_any_random_module(seed, size, depth) -> None:
    check(random_module(seed, size=size, max_depth=depth))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_random_modules(seed) -> None:
    check(random_module(seed, size=30 + seed % 90))


C4 = """
HloModule c4, is_scheduled=true
body {
  bp = (s32[], f32[16], f32[16]) parameter(0)
  i = s32[] get-tuple-element(bp), index=0
  persistent = f32[16] get-tuple-element(bp), index=1
  sum = f32[16] get-tuple-element(bp), index=2
  early = f32[16] add(sum, persistent)
  later = f32[16] multiply(early, early)
  scratch = f32[16] reverse(later), dimensions={0}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT br = (s32[], f32[16], f32[16]) tuple(next, persistent, scratch)
}
cond {
  cp = (s32[], f32[16], f32[16]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  n = s32[] constant(4)
  ROOT lt = pred[] compare(ci, n), direction=LT
}
ENTRY main {
  x = f32[16] parameter(0)
  p = f32[16] negate(x)
  s = f32[16] exponential(x)
  zero = s32[] constant(0)
  z = s32[] copy(zero)
  init = (s32[], f32[16], f32[16]) tuple(z, p, s)
  w = (s32[], f32[16], f32[16]) while(init), condition=cond, body=body
  ROOT out = f32[16] get-tuple-element(w), index=2
}"""


def test_what_a_loop_carries_is_live_on_every_trip() -> None:
    """C4: read first in the body, needed again on the next trip."""
    module = msa.parse(C4)
    check(module)
    live = LiveRanges.run(module)
    flow = live.alias.dataflow
    by_name = {x.name: x for c in module.computations for x in c.instructions}
    buffer = live.alias.unique_buffer_at(by_name["persistent"])
    assert [str(v.position) for v in buffer.values] == ["p{}"]
    carried = live.range_of(buffer.values[0])
    assert carried is not None
    for name in ("early", "later", "scratch"):
        bound = live.range_of(flow.unique_value_at(by_name[name]))
        assert bound is not None
        assert carried.start <= bound.start
        assert bound.end <= carried.end


@pytest.mark.parametrize(
    "spoil",
    ["ends a range early", "splits a buffer", "joins two buffers"],
)
def test_the_oracle_notices(spoil, monkeypatch) -> None:
    """A checker that never fires is broken: wrong analyses must be caught."""
    import msa.analysis.alias as alias_module
    import msa.analysis.live_ranges as live_module

    if spoil == "splits a buffer":
        monkeypatch.setattr(alias_module, "_join_in_place", lambda *a: None)
    elif spoil == "joins two buffers":
        joined = alias_module._join_control_flow

        def join_parameters(flow, related):
            joined(flow, related)
            a, b = flow.module.entry.parameters[:2]
            related.join(flow.ids_at(a), flow.ids_at(b))

        monkeypatch.setattr(alias_module, "_join_control_flow", join_parameters)
    else:
        original = live_module._Measure._use_time
        monkeypatch.setattr(
            live_module._Measure,
            "_use_time",
            lambda self, user: original(self, user) - 1,
        )
    caught = 0
    for seed in range(12):
        try:
            check(random_module(seed, size=40))
        except AssertionError:
            caught += 1
    assert caught >= 10
