"""Recomputing: rows I1-I22 and I29-I36 of the outcomes."""

from __future__ import annotations

import pytest

import msa
from msa.errors import CapacityError, OptionsError, ScheduleError
from msa.hlo import verify
from msa.passes import Pipeline, Rematerialization, rematerialize
from msa.passes.rematerialization import driver
from msa.passes.rematerialization.options import RematerializationOptions
from passes.rematerialization.remat_modules import (
    HEAD,
    KIB,
    SINGLE,
    SINGLE_BODY,
    condition,
    count,
    find,
    loop_around,
    names,
    oracle_total,
    renamed,
)


def run(text: str, limit: int, **settings: object) -> Rematerialization:
    module = msa.parse(text if text.startswith("HloModule") else HEAD + text)
    before = module.to_text()
    settings.setdefault("block_size_limit", 1)
    result = rematerialize(module, limit, **settings)
    assert module.to_text() == before, "the input is not changed"
    verify(result.module)
    old = {x.name for c in module.computations for x in c.instructions}
    for name in names(result.module):
        assert name in old or ".remat" in name, "I19: new names say so"
    assert result.before_bytes == oracle_total(module), "I37: before"
    assert result.after_bytes == oracle_total(result.module), "I37: after"
    assert result.after_bytes >= result.floor.bytes
    return result


def test_a_late_use_reads_a_clone_I1_I19() -> None:
    result = run(SINGLE, 14 * KIB)
    module = result.module
    assert result.changed
    assert result.fits
    assert module.entry.root.name == "slice_2"
    clone = find(module, "concat_2").operands[0]
    assert clone.opcode == "broadcast"
    assert clone.name == "bcast.remat"
    assert names(module)[-3:] == ["bcast.remat", "concat_2", "slice_2"]


def test_small_results_are_left_alone_I2() -> None:
    result = run(SINGLE, 14 * KIB, min_remat_bytes=14 * KIB)
    assert not result.changed
    assert not result.fits
    assert any("cannot reach" in warning for warning in result.warnings)


def test_what_fits_is_left_alone_I3() -> None:
    result = run(SINGLE, 20 * KIB)
    assert not result.changed
    assert result.module.instruction_count == 8
    assert result.module == msa.parse(SINGLE)


NESTED = (
    HEAD
    + condition("single")
    + f"single {{{renamed(SINGLE_BODY, '_b')}}}\n"
    + f"ENTRY e {{{loop_around('single')}}}"
)


@pytest.mark.parametrize(
    ("limit", "entry", "body"), [(17, 8, 8), (15, 9, 9)], ids=["I4", "I5"]
)
def test_loop_and_body(limit: int, entry: int, body: int) -> None:
    module = run(NESTED, limit * KIB).module
    assert len(names(module)) == entry
    assert len(names(module, "single")) == body


def test_nested_loops_I6() -> None:
    text = (
        condition("single")
        + condition("middle")
        + f"single {{{renamed(SINGLE_BODY, '_b')}}}\n"
        + f"middle {{{renamed(loop_around('single'), '_m')}}}\n"
        + f"ENTRY e {{{loop_around('middle')}}}"
    )
    module = run(text, 13 * KIB).module
    sizes = [len(names(module, c)) for c in ("single", "middle", "e")]
    assert sizes == [9, 9, 9]


def test_random_numbers_are_drawn_once_I7() -> None:
    result = run(
        """ENTRY e {
  param = f32[] parameter(0)
  rng = f32[1024] rng(param, param), distribution=rng_uniform
  tanh = f32[1024] tanh(rng)
  exp = f32[1024] exponential(rng)
  add_0 = f32[1024] add(rng, tanh)
  exp_add = f32[1024] add(exp, add_0)
  add_1 = f32[1024] add(rng, exp_add)
  tanh_add = f32[1024] add(tanh, add_1)
  ROOT add_2 = f32[1024] add(rng, tanh_add)
}""",
        4 * 4096,
    )
    assert result.changed
    assert count(result.module, "rng") == 1
    assert result.module.instruction_count > 9


SUB = """
sub {
  p = f32[1024] parameter(0)
  c = f32[2048] concatenate(p, p), dimensions={0}
  ROOT s = f32[1024] slice(c), slice={[0:1024]}
}
"""
THREE_CALLS = f"""{SUB}
ENTRY e {{
  param = f32[] parameter(0)
  bcast = f32[1024] broadcast(param), dimensions={{}}
  add_1 = f32[1024] add(bcast, bcast)
  call_1 = f32[1024] call(add_1), to_apply=sub
  add_2 = f32[1024] add(bcast, call_1)
  call_2 = f32[1024] call(add_2), to_apply=sub
  add_3 = f32[1024] add(bcast, call_2)
  call_3 = f32[1024] call(add_3), to_apply=sub
  ROOT add_4 = f32[1024] add(bcast, call_3)
}}"""


def test_again_and_again_I8() -> None:
    module = run(THREE_CALLS, 22 * KIB).module
    assert len(names(module)) == 12
    assert count(module, "broadcast") == 4
    read = [find(module, f"add_{k}").operands[0] for k in (2, 3, 4)]
    assert len({x.name for x in read}) == 3
    assert all(x.operands[0].name == "param" for x in read)


def test_copies_are_made_once_I9() -> None:
    result = run(
        """ENTRY e {
  param = f32[1024] parameter(0)
  copy = f32[1024] copy(param)
  a1 = f32[1024] negate(copy)
  b1 = f32[1024] negate(copy)
  b2 = f32[1024] negate(b1)
  a2 = f32[1024] negate(a1)
  ROOT add = f32[1024] add(a2, b2)
}""",
        KIB,
    )
    assert result.changed
    assert count(result.module, "copy") == 1


@pytest.mark.parametrize(
    ("given", "again"), [("0,1", True), ("1,0", False), ("1,0:S(5)", True)]
)
def test_copies_into_another_layout_are_made_again_I9(given: str, again: bool) -> None:
    result = run(
        f"""ENTRY e {{
  param = f32[32,32]{{{given}}} parameter(0)
  copy = f32[32,32]{{1,0}} copy(param)
  negate = f32[32,32]{{1,0}} negate(copy)
  wide = f32[64,32]{{1,0}} concatenate(negate, negate), dimensions={{0}}
  part = f32[32,32]{{1,0}} slice(wide), slice={{[0:32], [0:32]}}
  late = f32[32,32]{{1,0}} add(copy, part)
  ROOT out = f32[1,1]{{1,0}} slice(late), slice={{[0:1], [0:1]}}
}}""",
        14 * KIB,
    )
    assert result.changed == again
    read = find(result.module, "late").operands[0]
    assert read.name == ("copy.remat" if again else "copy")


def test_use_through_a_bitcast_I10() -> None:
    result = run(
        """ENTRY e {
  param = f32[1]{0} parameter(0)
  reshape = f32[] reshape(param)
  broadcast = f32[1024,1]{1,0} broadcast(reshape), dimensions={}
  bitcast = f32[1024]{0} bitcast(broadcast)
  negate = f32[1024,1]{1,0} negate(broadcast)
  concat = f32[2048,1]{1,0} concatenate(negate, negate), dimensions={0}
  slice = f32[1,1]{1,0} slice(concat), slice={[0:1], [0:1]}
  small = f32[1]{0} bitcast(slice)
  late = f32[1025]{0} concatenate(bitcast, small), dimensions={0}
  ROOT last = f32[1]{0} slice(late), slice={[0:1]}
}""",
        14 * KIB,
    )
    order = names(result.module)
    assert order[-4:] == ["broadcast.remat", "bitcast.remat", "late", "last"]
    assert result.module.entry.root.name == "last"


def test_moving_ends_I11() -> None:
    result = run(
        """ENTRY e {
  param = f32[1]{0} parameter(0)
  reshape = f32[] reshape(param)
  broadcast = f32[1024,1]{1,0} broadcast(reshape), dimensions={}
  bitcast = f32[1024]{0} bitcast(broadcast)
  broadcast2 = f32[1024,1]{1,0} broadcast(reshape), dimensions={}
  bitcast2 = f32[1024]{0} bitcast(broadcast2)
  ROOT add = f32[1024]{0} add(bitcast, bitcast2)
}""",
        KIB,
    )
    root = result.module.entry.root
    assert result.changed
    assert [x.opcode for x in root.operands] == ["bitcast"] * 2
    assert [x.operands[0].opcode for x in root.operands] == ["broadcast"] * 2


PAIR = """
pair {
  p0 = f32[] parameter(0)
  x = f32[1024] broadcast(p0), dimensions={}
  y = f32[1024] broadcast(p0), dimensions={}
  a = f32[1024] add(x, y)
  m = f32[1024] multiply(x, y)
  ROOT out = (f32[1024], f32[1024]) tuple(a, m)
}
"""


def with_pair(early: str, late: str, first: str = "") -> str:
    first = first or "first = f32[1024]{0} get-tuple-element(fus), index=0"
    return f"""{PAIR}
ENTRY e {{
  param = f32[] parameter(0)
  fus = (f32[1024]{{0}}, f32[1024]{{0}}) fusion(param), kind=kLoop, calls=pair
  {early}
  {first}
  add = f32[1024]{{0}} add(first, first)
  wide = f32[1024]{{0}} broadcast(param), dimensions={{}}
  mul = f32[1024]{{0}} multiply(add, wide)
  {late}
}}"""


SECOND = "second = f32[1024]{0} get-tuple-element(fus), index=1"


def fusion_of(x: msa.hlo.Instruction) -> str:
    """The fusion that a part, or a bitcast of one, comes from."""
    while x.opcode != "fusion":
        assert x.opcode in ("get-tuple-element", "bitcast", "tuple")
        x = x.operands[0]
    return x.name


def test_part_of_a_tuple_I12() -> None:
    text = with_pair("", f"{SECOND}\nROOT out = f32[1024]{{0}} add(mul, second)")
    root = run(text, 11 * KIB).module.entry.root
    part = root.operands[1]
    assert part.opcode == "get-tuple-element"
    assert part.tuple_index == 1
    assert fusion_of(part) == "fus.remat"


@pytest.mark.parametrize("early", [True, False])
def test_two_late_uses_share_a_clone_I13(early: bool) -> None:
    late = """add.2 = f32[1024]{0} add(mul, second)
  ROOT out = f32[1024]{0} multiply(add.2, second)"""
    text = with_pair(SECOND, late) if early else with_pair("", f"{SECOND}\n{late}")
    root = run(text, 11 * KIB).module.entry.root
    assert root.operands[1] is root.operands[0].operands[1]
    assert fusion_of(root.operands[1]) == "fus.remat"


def test_part_through_a_bitcast_I14() -> None:
    early = f"{SECOND}\nview = f32[1024,1]{{1,0}} bitcast(second)"
    late = """view2 = f32[1024,1]{1,0} bitcast(mul)
  ROOT out = f32[1024,1]{1,0} add(view2, view)"""
    view = run(with_pair(early, late), 11 * KIB).module.entry.root.operands[1]
    assert view.opcode == "bitcast"
    assert view.operands[0].tuple_index == 1
    assert fusion_of(view) == "fus.remat"


@pytest.mark.parametrize("tuple_first", [True, False])
def test_part_through_a_tuple_I15(tuple_first: bool) -> None:
    made = "t = (f32[1024]{0}, f32[]) tuple(second, param)"
    took = "third = f32[1024]{0} get-tuple-element(t), index=0"
    early = f"{SECOND}\n{made}" + (f"\n{took}" if tuple_first else "")
    late = ("" if tuple_first else took) + "\nROOT out = f32[1024]{0} add(mul, third)"
    part = run(with_pair(early, late), 11 * KIB).module.entry.root.operands[1]
    assert part.opcode == "get-tuple-element"
    assert part.tuple_index == 1
    assert part.operands[0].name == "fus.remat", "the fusion, not the tuple"


def test_collectives_get_channels_of_their_own_I16() -> None:
    members = ",".join(map(str, range(1024)))
    gather = (
        "f32[1024]{0} all-gather(reshape), dimensions={0}, channel_id=1, "
        f"use_global_device_ids=true, replica_groups={{{{{members}}}}}"
    )
    text = SINGLE.replace("f32[] reshape", "f32[1]{0} reshape").replace(
        "f32[1024]{0} broadcast(reshape), dimensions={}", gather
    )
    module = run(text, 14 * KIB).module
    channels = [
        x.attributes["channel_id"]
        for x in module.entry.instructions
        if x.opcode == "all-gather"
    ]
    assert sorted(channels) == [1, 2]


def test_tuple_consumed_whole_I17() -> None:
    bodies = """
sum {
  q = (f32[1024], f32[1024]) parameter(0)
  l = f32[1024] get-tuple-element(q), index=0
  r = f32[1024] get-tuple-element(q), index=1
  ROOT s = f32[1024] add(l, r)
}
sum_more {
  q2 = (f32[1024], f32[1024]) parameter(0)
  w = f32[1024] parameter(1)
  l2 = f32[1024] get-tuple-element(q2), index=0
  r2 = f32[1024] get-tuple-element(q2), index=1
  sum2 = f32[1024] add(l2, r2)
  ROOT more = f32[1024] add(w, sum2)
}
"""
    first = "first = f32[1024]{0} fusion(fus), kind=kLoop, calls=sum"
    late = "ROOT out = f32[1024]{0} fusion(fus, mul), kind=kLoop, calls=sum_more"
    module = run(bodies + with_pair("", late, first), 11 * KIB).module
    assert module.entry.root.operands[0].name == "fus.remat"
    assert find(module, "first").operands[0].name == "fus"


def test_bodies_are_cloned_I18() -> None:
    text = with_pair("", f"{SECOND}\nROOT out = f32[1024]{{0}} add(mul, second)")
    module = run(text, 11 * KIB).module
    clone = find(module, "fus.remat")
    assert clone.called_computations != find(module, "fus").called_computations
    schedule = module.schedule
    assert schedule is not None
    assert not schedule.check(module)


@pytest.mark.parametrize(("index", "left"), [(0, 3), (1, 9)])
def test_use_through_a_tuple_element_I20(index: int, left: int) -> None:
    result = run(
        f"""{SUB}
ENTRY e {{
  param = f32[] parameter(0)
  bcast = f32[1024] broadcast(param), dimensions={{}}
  add_1 = f32[1024] add(bcast, bcast)
  call_1 = f32[1024] call(add_1), to_apply=sub
  add_2 = f32[1024] add(bcast, call_1)
  t = (f32[1024], f32[1024]) tuple(bcast, add_2)
  part = f32[1024] get-tuple-element(t), index={index}
  ROOT out = f32[1024] negate(part)
}}""",
        22 * KIB,
    )
    assert result.changed
    assert len(names(result.module)) == left
    read = result.module.entry.root.operands[0]
    if index == 0:  # the clone itself: what filled the tuple is dead
        assert (read.opcode, read.name) == ("broadcast", "bcast.remat")
    else:
        assert find(result.module, "t").operands[0].name == "bcast.remat"


def test_nothing_dead_is_left_I21() -> None:
    text = with_pair("", f"{SECOND}\nROOT out = f32[1024]{{0}} add(mul, second)")
    result = run(text, 1, block_size_limit=4)
    again = Pipeline("dce")
    again.run(result.module)
    assert result.changed
    assert not again.records[0].changed


def test_threads_beside_the_program_I22() -> None:
    text = f"""{HEAD}
async_wrapped {{{renamed(SINGLE_BODY, "_a")}}}, execution_thread="beside"
ENTRY e {{{SINGLE_BODY.replace("ROOT slice_2", "last")}
  start = ((f32[1]{{0}}), f32[1]{{0}}, s32[]) async-start(last), calls=async_wrapped, async_execution_thread="beside"
  ROOT done = f32[1]{{0}} async-done(start)
}}"""
    beside = 16 * oracle_single()
    settings = {"async_parallelism": {"beside": 16}, "execution_threads": ()}
    limit = beside + 14 * KIB
    module = msa.parse(text)
    result = rematerialize(module, limit, block_size_limit=1, **settings)
    assert result.changed
    assert result.fits
    assert result.before_bytes > limit
    assert not rematerialize(module, limit + 4 * KIB, **settings).changed


def oracle_single() -> int:
    return oracle_total(msa.parse(SINGLE)) - 4


def test_excluded_entry_I36() -> None:
    module = msa.parse(SINGLE)
    result = rematerialize(module, KIB, execution_threads=("other",))
    assert not result.changed


PLATEAU = f"""{HEAD}
ENTRY e {{
  p = f32[] parameter(0)
  big = f32[262144] broadcast(p), dimensions={{}}
  small = f32[16384] broadcast(p), dimensions={{}}
  n1 = f32[262144] negate(big)
  n2 = f32[262144] negate(n1)
  part = f32[1] slice(n2), slice={{[0:1]}}
  late = f32[16385] concatenate(small, part), dimensions={{0}}
  ROOT out = f32[1] slice(late), slice={{[0:1]}}
}}"""


def test_the_highest_peak_first_I29() -> None:
    result = run(PLATEAU, 100, algorithm="peak-priority")
    order = names(result.module)
    assert "small" not in order
    assert order[order.index("late") - 1] == "small.remat"
    peak = result.timeline_before.index(max(result.timeline_before))
    after = {x.name for x in msa.parse(PLATEAU).entry.instructions[peak + 1 :]}
    assert not after & {name for action in result.actions for name in action.block}


def test_nested_calls_end_I30() -> None:
    calls = (
        SUB
        + """
outer {
  q = f32[1024] parameter(0)
  ROOT r = f32[1024] call(q), to_apply=sub
}
"""
        + THREE_CALLS.removeprefix(SUB).replace("to_apply=sub", "to_apply=outer")
    )
    assert run(calls, 0, algorithm="peak-priority").changed


def test_callback_gets_pairs_I31() -> None:
    pairs: list[tuple[str, str]] = []
    run(
        THREE_CALLS,
        22 * KIB,
        on_rematerialized=lambda old, new: pairs.append((old.name, new.name)),
    )
    assert pairs == [
        ("bcast", "bcast.remat"),
        ("bcast.remat", "bcast.remat.1"),
        ("bcast.remat.1", "bcast.remat.2"),
    ]


@pytest.mark.parametrize("seen_through", [False, True])
def test_callback_gets_replaced_operands_I31(seen_through: bool) -> None:
    pairs: list[tuple[str, str]] = []
    made = "t = (f32[1024]{0}, f32[]) tuple(second, param)"
    took = "third = f32[1024]{0} get-tuple-element(t), index=0"
    early = f"{SECOND}\n{made}\n{took}" if seen_through else SECOND
    read = "third" if seen_through else "second"
    run(
        with_pair(early, f"ROOT out = f32[1024]{{0}} add(mul, {read})"),
        11 * KIB,
        on_rematerialized=lambda old, new: pairs.append((old.name, new.name)),
    )
    assert pairs == [("fus", "fus.remat"), (read, "second.remat")]


def test_bitcasts_by_peak_priority_I32() -> None:
    text = SINGLE.replace(
        "  negate = f32[1024]{0} negate(bcast)",
        "  view = f32[32,32]{1,0} bitcast(bcast)\n  negate = f32[1024]{0} negate(bcast)",
    ).replace(
        "  ROOT slice_2 = f32[1]{0} slice(concat_2), slice={[0:1]}",
        """  side = f32[32,32]{1,0} negate(view)
  flat = f32[1024]{0} bitcast(side)
  slice_3 = f32[1]{0} slice(flat), slice={[0:1]}
  slice_2 = f32[1]{0} slice(concat_2), slice={[0:1]}
  ROOT sum = f32[1]{0} add(slice_2, slice_3)""",
    )
    result = run(text, 14 * KIB, algorithm="peak-priority", block_size_limit=32)
    order = names(result.module)
    place = order.index("view.remat")
    assert order[place - 1] == "bcast.remat"


def test_equal_values_on_one_peak_I33() -> None:
    text = f"""{HEAD}
ENTRY e {{
  p = f32[] parameter(0)
  one = f32[1024] broadcast(p), dimensions={{}}
  two = f32[1024] broadcast(p), dimensions={{}}
  q = f32[] negate(p)
  big = f32[4096] broadcast(q), dimensions={{}}
  s = f32[1024] slice(big), slice={{[0:1024]}}
  a = f32[1024] add(one, s)
  ROOT b = f32[1024] add(two, a)
}}"""
    module = run(text, 0, algorithm="peak-priority").module
    order = names(module)
    assert "one.remat" in order
    assert "two.remat" in order
    assert "one" not in order or "two" not in order


def test_time_is_watched_I34() -> None:
    times = iter([0.0, *[300.0] * 1000])
    result = driver.run(
        msa.parse(SINGLE), RematerializationOptions(14 * KIB), lambda: next(times)
    )
    assert sum("too long" in w for w in result.warnings) == 1


def test_progress_is_watched_I35() -> None:
    tiny = f"""{HEAD}
ENTRY e {{
  p = f32[] parameter(0)
  little = f32[2] broadcast(p), dimensions={{}}
  big = f32[4096] broadcast(p), dimensions={{}}
  n = f32[4096] negate(big)
  s = f32[2] slice(n), slice={{[0:2]}}
  ROOT out = f32[2] add(s, little)
}}"""
    result = run(tiny, 100, algorithm="peak-priority")
    assert sum("too little progress" in w for w in result.warnings) == 1


def test_floor_and_blockers() -> None:
    result = run(SINGLE, 10 * KIB)
    # concat_1 reads 4 KiB and creates 8 KiB; the result has 4 bytes.
    assert result.floor.bytes == 12 * KIB + 4
    assert result.floor.instruction == "concat_1"
    assert result.infeasible
    assert not result.fits
    with pytest.raises(CapacityError) as caught:
        result.require()
    assert caught.value.live == [
        ("concat_1{}", 8192),
        ("negate{}", 4096),
        ("results", 4),
    ]
    assert result.shortfall() == (
        f"infeasible: {12 * KIB + 4} bytes "
        f"({100 * (12 * KIB + 4) / result.before_bytes:.1f} % of the peak before) are "
        f"live at concat_1 whatever is done, {10 * KIB} are allowed:"
    )
    assert "concat_1{}: 8192 bytes, concat_1 creates it" in result.summary()


def test_no_work_for_what_cannot_be_reached() -> None:
    result = run(SINGLE, 10 * KIB, stop_at_floor=True)
    usual = run(SINGLE, result.floor.bytes)
    assert result.after_bytes == usual.after_bytes
    assert result.added == usual.added


def test_results_that_cannot_be_created_twice_run_later() -> None:
    state = "(f32[1024]{0}, f32[1024]{0})"
    text = f"""{HEAD}
body {{
  s = {state} parameter(0)
  l = f32[1024]{{0}} get-tuple-element(s), index=0
  r = f32[1024]{{0}} get-tuple-element(s), index=1
  n = f32[1024]{{0}} add(l, r)
  ROOT t = {state} tuple(n, r)
}}
cond {{
  c = {state} parameter(0)
  ROOT never = pred[] constant(false)
}}
ENTRY e {{
  p = f32[] parameter(0)
  start = f32[1024]{{0}} broadcast(p), dimensions={{}}
  big = f32[4096]{{0}} broadcast(p), dimensions={{}}
  other = f32[1024]{{0}} slice(big), slice={{[0:1024]}}
  init = {state} tuple(start, other)
  loop = {state} while(init), condition=cond, body=body
  left = f32[1024]{{0}} get-tuple-element(loop), index=0
  ROOT out = f32[1]{{0}} slice(left), slice={{[0:1]}}
}}"""
    result = run(text, 22 * KIB)
    # 16 KiB of big and 4 KiB of other; start comes after big is gone.
    assert result.after_bytes < 21 * KIB
    assert [a.strategy for a in result.actions] == ["move"]
    order = names(result.module)
    assert order[order.index("init") - 1] == "start"
    assert result.added.flops == result.added.bytes_accessed == 0


def test_what_no_action_moves_is_part_of_the_floor() -> None:
    text = THREE_CALLS.replace(
        "broadcast(param), dimensions={}", 'custom-call(param), custom_call_target="x"'
    )
    result = run(text, 22 * KIB)
    # bcast, call_1's operand and result, and 8 KiB inside the callee.
    assert result.floor.bytes == 6 * 4096
    assert result.infeasible
    assert ("bcast{}", 4096) in [(b.name, b.bytes) for b in result.floor.blockers]
    assert not result.changed


def test_overwritten_operands_are_not_read_again() -> None:
    text = f"""{HEAD}
ENTRY e {{
  p = f32[] parameter(0)
  zero = s32[] constant(0)
  base = f32[1024] broadcast(p), dimensions={{}}
  view = f32[1024] negate(base)
  one = f32[1] reshape(p)
  next = f32[1024] dynamic-update-slice(base, one, zero)
  twice = f32[2048] concatenate(next, next), dimensions={{0}}
  s = f32[1024] slice(twice), slice={{[0:1024]}}
  ROOT out = f32[1024] add(view, s)
}}"""
    module = msa.parse(text)
    result = rematerialize(module, 16 * KIB, block_size_limit=1)
    assert not msa.analysis.missing_copies(result.module)


def test_off_unscheduled_and_wrong_settings() -> None:
    assert not run(SINGLE, 1, recompute=False).changed
    with pytest.raises(ScheduleError):
        rematerialize(msa.parse("ENTRY e { ROOT p = f32[4] parameter(0) }"), 1)
    with pytest.raises(OptionsError):
        rematerialize(msa.parse(SINGLE), 1, algorithm="magic")
    with pytest.raises(OptionsError):
        rematerialize(msa.parse(SINGLE), 1, colour="red")


def test_as_a_pass() -> None:
    pipeline = Pipeline("rematerialize{memory_limit=14KiB,block_size_limit=1}")
    assert "bcast.remat" in names(pipeline.run(msa.parse(SINGLE)))
    stopped = "rematerialize{memory_limit=10KiB,block_size_limit=1,stop_at_floor}"
    result = run(SINGLE, 10 * KIB, stop_at_floor=True)
    assert Pipeline(stopped).run(msa.parse(SINGLE)) == result.module
    with pytest.raises(CapacityError):
        Pipeline("rematerialize{memory_limit=1KiB,required}").run(msa.parse(SINGLE))
