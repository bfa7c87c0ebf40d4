"""Flattened schedules and live ranges, row by row."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import AliasAnalysis, FlattenedSchedule, LiveRanges
from msa.errors import HloError, ScheduleError

HEADER = "HloModule m, is_scheduled=true{}\n"


def entry(*lines: str, outer: str = "", header: str = "") -> str:
    body = "\n  ".join(lines)
    return f"{HEADER.format(header)}{outer}\nENTRY main {{\n  {body}\n}}"


def ranges(text: str, **options) -> dict[str, tuple[int, int]]:
    live = LiveRanges.run(msa.parse(text, verify=False), **options)
    return {
        str(live.alias.dataflow.value(v).position): (r.start, r.end)
        for v, r in live.ranges.items()
    }


A = "a = f32[4] parameter(0)"
X = "x = f32[4] parameter(1)"
MUL = "mul = f32[4] multiply(a, x)"
Y = "y = f32[4] parameter(2)"

ROWS = [
    (
        "7-multiply",
        entry(A, X, "ROOT mul = f32[4] multiply(a, x)"),
        {"a{}": (0, 3), "x{}": (0, 3), "mul{}": (2, 3)},
    ),
    (
        "7-multiply-add",
        entry(A, X, MUL, Y, "ROOT add = f32[4] add(mul, y)"),
        {"a{}": (0, 5), "x{}": (0, 5), "y{}": (0, 5), "mul{}": (2, 4), "add{}": (4, 5)},
    ),
    (
        "7-tuple-root",
        entry(
            A,
            X,
            MUL,
            Y,
            "add = f32[4] add(mul, y)",
            "ROOT t = (f32[4], f32[4]) tuple(mul, add)",
        ),
        {"a{}": (0, 6), "mul{}": (2, 6), "add{}": (4, 6), "t{}": (5, 6)},
    ),
    (
        "7-root-in-the-middle",
        entry(
            A,
            X,
            MUL,
            Y,
            "add = f32[4] add(mul, y)",
            "ROOT t = (f32[4], f32[4]) tuple(mul, add)",
            "add2 = f32[4] add(mul, y)",
        ),
        {
            "a{}": (0, 7),
            "mul{}": (2, 7),
            "add{}": (4, 7),
            "t{}": (5, 7),
            "add2{}": (6, 6),
        },
    ),
    (
        "7-aliased-parameter",
        entry(
            A,
            X,
            MUL,
            Y,
            "ROOT add = f32[4] add(mul, y)",
            header=", input_output_alias={ {}: (0, {}) }",
        ),
        {"a{}": (0, 2), "x{}": (0, 5), "y{}": (0, 5), "mul{}": (2, 4), "add{}": (4, 5)},
    ),
    (
        "7-call",
        entry(
            "a = f32[4] parameter(0)",
            "b = f32[4] negate(a)",
            "c = f32[4] call(b), to_apply=callee",
            "d = f32[4] negate(c)",
            "ROOT e = f32[4] add(c, d)",
            outer="callee { p = f32[4] parameter(0)  ROOT negate_0 = f32[4] negate(p) }",
        ),
        # a0 b1 (p2 negate_0 3) c4 d5 e6
        {
            "a{}": (0, 7),
            "b{}": (1, 3),
            "negate_0{}": (3, 6),
            "d{}": (5, 6),
            "e{}": (6, 7),
        },
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_ranges(text, expected) -> None:
    found = ranges(text)
    assert {k: found[k] for k in expected} == expected


def test_a_loop_hands_its_counter_over() -> None:
    """7-while"""
    text = entry(
        "iter = s32[] parameter(0)",
        "init = (s32[]) tuple(iter)",
        "ROOT w = (s32[]) while(init), condition=cond, body=body",
        outer="""
cond { cp = (s32[]) parameter(0)  cond_iter = s32[] get-tuple-element(cp), index=0
  n = s32[] constant(4)  ROOT lt = pred[] compare(cond_iter, n), direction=LT }
body { bp = (s32[]) parameter(0)  body_iter = s32[] get-tuple-element(bp), index=0
  one = s32[] constant(1)  next = s32[] add(body_iter, one)
  ROOT br = (s32[]) tuple(next) }""",
        header=", input_output_alias={ {0}: (0, {}) }",
    )
    found = ranges(text)
    assert found["iter{}"][1] == found["cp{0}"][0]
    assert found["cp{0}"][1] == found["bp{0}"][0]
    assert found["bp{0}"][1] == found["next{}"][0]


ASYNC = """
{outer}
ENTRY main {{
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  negate_0 = f32[4] negate(a)
  negate_1 = f32[4] negate(b)
{chain}
  ROOT add_1 = f32[4] add(add_0, done)
}}"""
CALLEE = """
callee {
  p0 = f32[4] parameter(0)
  p1 = f32[4] parameter(1)
  negate_2 = f32[4] negate(p0)
  negate_3 = f32[4] negate(p1)
  ROOT add = f32[4] add(negate_2, negate_3)
}
wrapped {
  w0 = f32[4] parameter(0)
  w1 = f32[4] parameter(1)
  ROOT call = f32[4] call(w0, w1), to_apply=callee
}"""


def async_module(*chain: str) -> str:
    return HEADER.format("") + ASYNC.format(outer=CALLEE, chain="\n".join(chain))


def test_asynchronous_calls_keep_operands_to_the_done() -> None:
    """7-async-call"""
    found = ranges(
        async_module(
            "  start = ((f32[4], f32[4]), f32[4], s32[]) async-start(negate_0, negate_1), calls=wrapped",
            "  add_0 = f32[4] add(negate_0, negate_1)",
            "  done = f32[4] async-done(start)",
        )
    )
    # a0 b1 negate_0 2 negate_1 3 [w0 4 w1 5 p0 6 p1 7 negate_2 8 negate_3 9 add 10
    # call 11] start 12 add_0 13 done 14 add_1 15: two more for the wrapper than a
    # callee that is wrapped itself.
    assert found["a{}"] == (0, 16)
    assert found["negate_0{}"] == (2, 14)
    assert found["negate_1{}"] == (3, 14)
    assert found["add_0{}"] == (13, 15)
    assert found["add_1{}"] == (15, 16)
    # Everything within is live until the done: it runs at some time before that.
    for name, start in (("negate_2{}", 8), ("negate_3{}", 9), ("add{}", 10)):
        assert found[name] == (start, 14 if name != "add{}" else 15)


def test_operands_bound_by_an_update() -> None:
    """7-async-late-operand"""
    found = ranges(
        async_module(
            "  start = ((f32[4], ()), f32[4], s32[]) async-start(negate_0), calls=wrapped",
            "  update = ((f32[4], f32[4]), f32[4], s32[]) async-update(start, negate_1)",
            "  add_0 = f32[4] add(negate_0, negate_1)",
            "  done = f32[4] async-done(update)",
        )
    )
    assert found["a{}"] == (0, 17)
    assert found["negate_0{}"] == (2, 15)
    assert found["negate_1{}"] == (3, 15)
    assert found["add_0{}"] == (14, 16)
    assert found["add_1{}"] == (16, 17)


LATE = """
callee {{ param_0 = f32[4] parameter(0)  ROOT negate_2 = f32[4] negate(param_0) }}
wrapped {{ async_param = f32[4] parameter(0)
  ROOT call = f32[4] call(async_param), to_apply=callee }}
ENTRY main {{
  a = f32[4] parameter(0)
  negate_0 = f32[4] negate(a)
{chain}
}}"""


def flat(text: str) -> list[str]:
    module = msa.parse(text, verify=False)
    return [x.name for x in FlattenedSchedule.run(module).instructions]


INSIDE = ["async_param", "param_0", "negate_2", "call"]


def late(*chain: str) -> str:
    return HEADER.format("") + LATE.format(chain="\n".join(chain))


ORDERS = [
    (
        "7-late-bound",
        late(
            "  start = ((), (), s32[]) async-start(), calls=wrapped",
            "  negate_1 = f32[4] negate(negate_0)",
            "  update = ((f32[4]), f32[4], s32[]) async-update(start, negate_1)",
            "  done = f32[4] async-done(update)",
            "  ROOT add_1 = f32[4] add(negate_0, done)",
        ),
        ["a", "negate_0", "start", "negate_1", *INSIDE, "update", "done", "add_1"],
    ),
    (
        "7-second-update-binds-output",
        late(
            "  start = ((), (), s32[]) async-start(), calls=wrapped",
            "  negate_1 = f32[4] negate(negate_0)",
            "  update.1 = ((f32[4]), (), s32[]) async-update(start, negate_1)",
            "  exp = f32[4] exponential(negate_0)",
            "  update.2 = ((f32[4]), f32[4], s32[]) async-update(update.1)",
            "  done = f32[4] async-done(update.2)",
            "  ROOT add_1 = f32[4] add(exp, done)",
        ),
        [
            "a",
            "negate_0",
            "start",
            "negate_1",
            "update.1",
            "exp",
            *INSIDE,
            "update.2",
            "done",
            "add_1",
        ],
    ),
    (
        "7-output-bound-at-done",
        late(
            "  negate_1 = f32[4] negate(negate_0)",
            "  start = ((f32[4]), (), s32[]) async-start(negate_1), calls=wrapped",
            "  ROOT done = f32[4] async-done(start)",
        ),
        ["a", "negate_0", "negate_1", "start", *INSIDE, "done"],
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS]
)
def test_wrapped_computations_run_where_everything_is_bound(text, expected) -> None:
    assert flat(text) == expected


def test_a_chain_without_a_start_is_refused() -> None:
    text = late(
        "  start = ((f32[4]), f32[4], s32[]) async-start(negate_0), calls=wrapped",
        "  ROOT done = f32[4] async-done(start)",
    )
    module = msa.parse(text)
    done = module.entry.root
    done.called_computations = ()
    done.operands[0].called_computations = ()
    with pytest.raises(HloError, match="asynchronous"):
        FlattenedSchedule.run(module)


def test_loops_and_branches_lie_before_their_callers() -> None:
    text = entry(
        "p = pred[] parameter(0)",
        "x = f32[] parameter(1)",
        "c = f32[] conditional(p, x, x), true_computation=yes, false_computation=no",
        "t = (f32[]) tuple(c)",
        "ROOT w = (f32[]) while(t), condition=cond, body=body",
        outer="""
yes { yp = f32[] parameter(0)  ROOT yn = f32[] negate(yp) }
no { ROOT np = f32[] parameter(0) }
cond { cp = (f32[]) parameter(0)  ROOT f = pred[] constant(false) }
body { ROOT bp = (f32[]) parameter(0) }""",
    )
    module = msa.parse(text)
    schedule = FlattenedSchedule.run(module)
    names = [x.name for x in schedule.instructions]
    assert names == ["p", "x", "yp", "yn", "np", "c", "t", "cp", "f", "bp", "w"]
    spans = {c.name: span for c, span in schedule.spans.items()}
    assert spans == {
        "main": (0, 11),
        "yes": (2, 4),
        "no": (4, 5),
        "cond": (7, 9),
        "body": (9, 10),
    }
    only = FlattenedSchedule.run(module, module_scoped=False)
    assert [x.name for x in only.instructions] == ["p", "x", "c", "t", "w"]


def test_a_call_chain_as_deep_as_the_module() -> None:
    depth = 3000
    parts = ["c0 { ROOT x0 = f32[] parameter(0) }"]
    parts.extend(
        f"c{k} {{ x{k} = f32[] parameter(0)  "
        f"ROOT r{k} = f32[] call(x{k}), to_apply=c{k - 1} }}"
        for k in range(1, depth)
    )
    text = entry(
        "p = f32[] parameter(0)",
        f"ROOT r = f32[] call(p), to_apply=c{depth - 1}",
        outer="\n".join(parts),
    )
    live = LiveRanges.run(msa.parse(text))
    assert live.end == 2 * depth + 1
    assert [r.end for r in live.ranges.values()] == [live.end]


PEAK = entry(
    "paramA = f32[4] parameter(0)",
    "paramX = f32[4] parameter(1)",
    "ROOT multiply = f32[4] multiply(paramA, paramX)",
)


def test_text() -> None:
    """7-dump"""
    text = LiveRanges.run(msa.parse(PEAK)).to_text()
    head = """\
HloLiveRange (max 3):
  InstructionSequence:
    0:paramA
    1:paramX
    2:multiply
  BufferLiveRange:
    paramA{}:0-3
    paramX{}:0-3
    multiply{}:2-3
  Live ranges at 2 (peak):
    multiply{}: 16 bytes (cumulative: 16 bytes)
    paramA{}: 16 bytes (cumulative: 32 bytes)
    paramX{}: 16 bytes (cumulative: 48 bytes)
  Stack trace breakdown for peak usage: 48 bytes
"""
    assert text.startswith(head)


def test_text_with_a_tuple_constant() -> None:
    """7-dump-tuple"""
    live = LiveRanges.run(
        msa.parse(
            entry(
                "paramA = f32[4] parameter(0)",
                "constant = (f32[], f32[4]) constant((0, {1, 2, 3, 4}))",
                "gte = f32[4] get-tuple-element(constant), index=1",
                "ROOT add = f32[4] add(paramA, gte)",
            )
        )
    )
    found = {
        str(live.alias.dataflow.value(v).position): (r.start, r.end)
        for v, r in live.ranges.items()
    }
    assert found == {
        "paramA{}": (0, 4),
        "constant{}": (1, 2),
        "constant{0}": (1, 1),
        "constant{1}": (1, 3),
        "add{}": (3, 4),
    }
    assert live.peak_moment() == 1
    at_peak = live.to_text().split("(peak):\n")[1].splitlines()[:4]
    assert [row.split()[1] for row in at_peak] == ["16", "16", "16", "4"]


def test_an_unbounded_size_has_no_peak() -> None:
    """7-unbounded"""
    live = LiveRanges.run(msa.parse(entry("ROOT a = f32[?] parameter(0)")))
    assert live.peak_moment() == -1
    assert "could not be determined due to unbounded dynamic shape" in live.to_text()


def test_twenty_repetitions_are_identical() -> None:
    """7-deterministic"""
    texts = {LiveRanges.run(msa.parse(ROWS[3][1])).to_text() for _ in range(20)}
    assert len(texts) == 1


def test_a_module_without_a_schedule_is_refused() -> None:
    module = msa.parse("ENTRY main { ROOT p = f32[] parameter(0) }")
    with pytest.raises(ScheduleError, match=r"msa\.schedule"):
        LiveRanges.run(module)


def test_ranges_of_shared_storage_touch_but_do_not_overlap() -> None:
    text = entry(
        "x = f32[8] parameter(0)",
        "c = f32[8] copy(x)",
        "u = f32[2] parameter(1)",
        "i = s32[] constant(0)",
        "d = f32[8] dynamic-update-slice(c, u, i)",
        "e = f32[8] negate(x)",
        "d2 = f32[8] dynamic-update-slice(d, u, i)",
        "ROOT r = f32[8] add(d2, e)",
    )
    found = ranges(text)
    assert (found["c{}"], found["d{}"], found["d2{}"]) == ((1, 4), (4, 6), (6, 7))


def test_normalisation_may_be_left_out() -> None:
    text = entry(
        "x = f32[8] parameter(0)",
        "c = f32[8] copy(x)",
        "u = f32[2] parameter(1)",
        "i = s32[] constant(0)",
        "d = f32[8] dynamic-update-slice(c, u, i)",
        "ROOT r = f32[8] add(d, c)",
    )
    assert ranges(text)["c{}"] == (1, 4)
    assert ranges(text, normalise=False)["c{}"] == (1, 5)


def test_end_positions_are_places_not_uses() -> None:
    module = msa.parse(ROWS[2][1])
    alias = AliasAnalysis.run(module)
    live = LiveRanges.run(module, alias=alias)
    mul = next(v for v in alias.dataflow.values if v.instruction.name == "mul")
    bound = live.range_of(mul)
    assert bound is not None
    assert str(bound.end_position) == "t{0}"
    assert bound.half_open == (2, 7)
