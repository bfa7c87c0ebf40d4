"""Buffer assignment: expected outcomes, row by row.

Row ids: `A-n` are the outcomes of running an assignment, `11-…` the behaviours of
the assigner. Sizes are hand-computed: f32 arrays of 100 elements are 400 bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import msa
from msa.analysis import prepare
from msa.analysis.buffer_assignment import (
    BufferAssignment,
    BufferAssignmentOptions,
    EventKind,
    Isolation,
    PresetAssignments,
    TraceEvent,
    allocation_classes,
    load_allocations,
    peak_memory,
)
from msa.analysis.values import Position
from msa.errors import FileFormatError, HloError, OptionsError, PlanError

BASIC = """
HloModule m, is_scheduled=true
ENTRY main {
  p0 = f32[] parameter(0)
  p1 = f32[100] parameter(1)
  p2 = f32[100] parameter(2)
  bcast = f32[100] broadcast(p0), dimensions={}
  mul = f32[100] multiply(bcast, p1)
  add = f32[100] add(mul, p2)
  ROOT sub = f32[100] subtract(add, p2)
}"""


def assign(text_or_module, **options) -> BufferAssignment:
    module = text_or_module
    if isinstance(module, str):
        module = msa.parse(module)
    assignment = BufferAssignment.run(module, BufferAssignmentOptions(**options))
    assignment.verify()
    return assignment


def named(assignment, name):
    return next(
        x
        for c in assignment.module.computations
        for x in c.instructions
        if x.name == name
    )


def place(assignment, name, index=()):
    return assignment.unique_slice(named(assignment, name), index)


def home(assignment, name, index=()):
    return assignment.allocations[place(assignment, name, index).allocation]


def same(assignment, *names):
    return len({place(assignment, name) for name in names}) == 1


def apart(assignment, *names):
    slices = [place(assignment, name) for name in names]
    return not any(a.overlaps(b) for i, a in enumerate(slices) for b in slices[i + 1 :])


def test_a1_basic():
    a = assign(BASIC)
    assert apart(a, "p0", "p1", "p2", "add")
    assert same(a, "mul", "add")
    assert home(a, "mul").kind != "parameter"
    assert home(a, "p1").is_readonly
    assert home(a, "sub").maybe_live_out
    assert home(a, "sub").size == 400
    # The output's own storage holds the chain: nothing else is needed.
    assert a.temporary_bytes == 0


def test_a2_colours_never_share():
    names = ["p0", "p1", "p2", "bcast", "mul", "add", "sub"]
    a = assign(BASIC, color=lambda v: names.index(v.instruction.name) + 1)
    assert apart(a, *names)
    module = a.colored_module()
    spaces = [x.shape.memory_space for x in module.entry.instructions]
    assert spaces == [1, 2, 3, 4, 5, 6, 7]
    assert {c: s for c, s in a.total_by_color().items() if c > 2} == {
        3: 400,
        4: 400,
        5: 400,
        6: 400,
        7: 400,
    }


def test_a3_must_not_live_out():
    a = assign(BASIC, must_not_live_out=lambda v: v.instruction.name == "add")
    assert apart(a, "add", "sub")
    assert not home(a, "add").maybe_live_out


ALIASED = """
HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  p = f32[100] parameter(0)
  n1 = f32[100] negate(p)
  ROOT n2 = f32[100] negate(n1)
}"""


def test_a4_aliased_parameter_is_reused():
    a = assign(ALIASED)
    assert same(a, "p", "n1", "n2")
    assert len(a.allocations) == 1
    assert a.allocations[0].aliased_with_output
    assert not a.allocations[0].is_readonly


def test_a5_input_output_colours_must_match():
    color = {"p": 1, "n1": 0, "n2": 1}
    a = assign(
        ALIASED,
        color=lambda v: color[v.instruction.name],
        can_use=lambda mine, other: mine == other or (mine, other) == (0, 1),
    )
    assert same(a, "p", "n2")
    assert apart(a, "p", "n1")


def cross(text, **options):
    return assign(
        text, can_use=lambda mine, other: mine == other or (mine, other) == (0, 1)
    )


SUM = (
    "sum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }"
)


def test_a6_other_colour_is_reused():
    a = cross(f"""
    HloModule m, is_scheduled=true
    {SUM}
    ENTRY main {{
      p = f32[2048] parameter(0)
      z = f32[] constant(0)
      first = f32[2048]{{0:S(1)}} negate(p)
      s = f32[] reduce(first, z), dimensions={{0}}, to_apply=sum
      second = f32[1024] broadcast(s), dimensions={{}}
      ROOT out = f32[3] slice(second), slice={{[0:3]}}
    }}""")
    block = home(a, "first")
    assert (block.color, block.size) == (1, 8192)
    assert home(a, "second") is block
    value = a.alias.dataflow.values_at(named(a, "second"), ())[0]
    assert value.id in block.cross_color


def test_a7_touching_ranges_do_not_overlap_in_space():
    a = cross(f"""
    HloModule m, is_scheduled=true
    {SUM}
    ENTRY main {{
      p = f32[2048] parameter(0)
      z = f32[] constant(0)
      d = f32[2048]{{0:S(1)}} negate(p)
      s = f32[] reduce(d, z), dimensions={{0}}, to_apply=sum
      a = f32[1024] broadcast(s), dimensions={{}}
      b = f32[1024] reverse(a), dimensions={{0}}
      t = f32[] reduce(b, z), dimensions={{0}}, to_apply=sum
      k = f32[256]{{0:S(1)}} broadcast(t), dimensions={{}}
      ROOT out = f32[3] slice(k), slice={{[0:3]}}
    }}""")
    block = home(a, "d")
    assert (block.color, block.size) == (1, 8192)
    offsets = {name: place(a, name).offset for name in ("d", "k", "a", "b")}
    assert all(home(a, name) is block for name in offsets)
    assert offsets == {"d": 0, "k": 0, "a": 0, "b": 4096}


def test_a8_other_colour_is_not_grown():
    a = cross(f"""
    HloModule m, is_scheduled=true
    {SUM}
    ENTRY main {{
      p = f32[1024] parameter(0)
      z = f32[] constant(0)
      first = f32[1024]{{0:S(1)}} negate(p)
      s = f32[] reduce(first, z), dimensions={{0}}, to_apply=sum
      second = f32[2048] broadcast(s), dimensions={{}}
      ROOT out = f32[3] slice(second), slice={{[0:3]}}
    }}""")
    assert home(a, "first").size == 4096
    assert home(a, "second") is not home(a, "first")


def test_a9_chain_is_one_allocation():
    a = assign("""
    HloModule m, is_scheduled=true
    ENTRY main {
      p = f32[100] parameter(0)
      e1 = f32[100] exponential(p)
      t = f32[100] tanh(e1)
      e2 = f32[100] exponential(t)
      ROOT n = f32[100] negate(e2)
    }""")
    assert same(a, "e1", "t", "e2", "n")
    assert apart(a, "p", "n")


RESIZE = """
HloModule m, is_scheduled=true
ENTRY main {{
  p = f32[100] parameter(0)
  negate = f32[100] negate(p)
  slice = f32[10] slice(negate), slice={{[0:10]}}
  {result}
}}"""
BROADCAST = "f32[10,10] broadcast(slice), dimensions={0}"


def test_a10_reuse_of_a_non_operand():
    a = assign(RESIZE.format(result=f"ROOT broadcast = {BROADCAST}"))
    assert place(a, "negate") == place(a, "broadcast")
    assert apart(a, "negate", "slice")


@pytest.mark.parametrize("nested", [False, True], ids=["direct", "in a tuple"])
def test_a11_output_operands_stay_apart(nested):
    result = f"broadcast = {BROADCAST}\n"
    if nested:
        result += """  inner = (f32[100]) tuple(negate)
  ROOT out = ((f32[100]), f32[10,10]) tuple(inner, broadcast)"""
    else:
        result += "  ROOT out = (f32[100], f32[10,10]) tuple(negate, broadcast)"
    a = assign(RESIZE.format(result=result))
    assert apart(a, "negate", "slice", "broadcast")


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "in a tuple"])
def test_a12_oversized_storage_is_not_an_output(nested):
    result = "broadcast = f32[10,4] broadcast(slice), dimensions={0}"
    if nested:
        result += "\n  ROOT out = (f32[10,4]) tuple(broadcast)"
    else:
        result = f"ROOT {result}"
    a = assign(RESIZE.format(result=result))
    assert apart(a, "negate", "slice", "broadcast")
    assert home(a, "broadcast").size == 160


DOTS = """
HloModule m, is_scheduled=true
ENTRY main {
  a = f32[2,3] parameter(0)
  b = f32[3,4] parameter(1)
  c = f32[4,4] parameter(2)
  ab = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bc = f32[3,4] dot(b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = f32[2,3] dot(ab, bc), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}"""


@pytest.mark.parametrize("alignment", [1, 64])
def test_a13_two_temporaries_in_one_block(alignment):
    a = assign(DOTS, alignment=alignment)
    assert len(a.allocations) == 5
    ab, bc = place(a, "ab"), place(a, "bc")
    assert ab.allocation == bc.allocation
    assert (ab.size, bc.size) == (32, 48)
    assert min(ab.offset, bc.offset) == 0
    if alignment == 1:
        assert home(a, "ab").size == 80
    else:
        assert max(ab.offset, bc.offset) == 64
        assert home(a, "ab").size == (112 if bc.offset else 96)


def test_a14_heap_limit_cuts_the_block():
    lines = ["x = f32[10,10] parameter(0)"]
    lines += [
        f"d{i} = f32[10,10] dot(x, x), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={0}"
        for i in range(4)
    ]
    lines += [
        "t = (f32[10,10], f32[10,10], f32[10,10], f32[10,10]) tuple(d0, d1, d2, d3)",
        'ROOT c = f32[7] custom-call(t), custom_call_target="f"',
    ]
    text = "HloModule m, is_scheduled=true\nENTRY main {\n" + "\n".join(lines) + "\n}"
    a = assign(text, heap_limit=801)
    dots = {home(a, f"d{i}").index for i in range(4)}
    assert len(dots) == 2
    assert all(a.allocations[i].size == 800 for i in dots)


CONSTANT = """
HloModule m, is_scheduled=true
ENTRY main {
  p = f32[2] parameter(0)
  c = f32[2] constant({1, 2})
  x = f32[2] add(p, c)
  ROOT y = f32[2] negate(x)
}"""


def test_a15_constants():
    a = assign(CONSTANT, allocate_constants=True)
    constant = home(a, "c")
    assert constant.is_constant
    assert constant.is_readonly
    assert list(constant.assigned.values()) == [(0, 8)]
    without = assign(CONSTANT)
    value = without.alias.dataflow.values_at(named(without, "c"), ())[0]
    assert not without.has_allocation(value)
    with pytest.raises(PlanError, match="no allocation"):
        without.slice_of(value)


LOOP = """
body{n} {{
  bs{n} = (s32[], f32[100]) parameter(0)
  bi{n} = s32[] get-tuple-element(bs{n}), index=0
  bx{n} = f32[100] get-tuple-element(bs{n}), index=1
  one{n} = s32[] constant(1)
  ni{n} = s32[] add(bi{n}, one{n})
  nx{n} = f32[100] negate(bx{n})
  ROOT br{n} = (s32[], f32[100]) tuple(ni{n}, nx{n})
}}
cond{n} {{
  cs{n} = (s32[], f32[100]) parameter(0)
  ci{n} = s32[] get-tuple-element(cs{n}), index=0
  five{n} = s32[] constant(5)
  ROOT lt{n} = pred[] compare(ci{n}, five{n}), direction=LT
}}
"""


def test_a16_loop_state_is_one_slice():
    module = prepare(
        msa.parse(
            "HloModule m, is_scheduled=true\n"
            + LOOP.format(n=1)
            + """
    ENTRY main {
      i = s32[] parameter(0)
      x = f32[100] parameter(1)
      init = (s32[], f32[100]) tuple(i, x)
      w = (s32[], f32[100]) while(init), condition=cond1, body=body1
      r = f32[100] get-tuple-element(w), index=1
      ROOT out = f32[] slice(r), slice={[0:1]}
    }""".replace("f32[] slice", "f32[1] slice")
        )
    )
    a = assign(module)
    state = named(a, "w").operands[0]
    for index in ((0,), (1,)):
        slices = {
            a.unique_slice(x, index)
            for x in (
                state,
                named(a, "bs1"),
                named(a, "br1"),
                named(a, "cs1"),
                named(a, "w"),
            )
        }
        assert len(slices) == 1
    assert home(a, "w", (1,)).kind == "temporary"


def test_a17_overlapping_loop_results_are_distinct():
    module = prepare(
        msa.parse(
            "HloModule m, is_scheduled=true\n"
            + LOOP.format(n=1)
            + LOOP.format(n=2)
            + """
    ENTRY main {
      i = s32[] parameter(0)
      x = f32[100] parameter(1)
      t1 = (s32[], f32[100]) tuple(i, x)
      w1 = (s32[], f32[100]) while(t1), condition=cond1, body=body1
      t2 = (s32[], f32[100]) tuple(i, x)
      w2 = (s32[], f32[100]) while(t2), condition=cond2, body=body2
      r1 = f32[100] get-tuple-element(w1), index=1
      r2 = f32[100] get-tuple-element(w2), index=1
      ROOT out = f32[100] add(r1, r2)
    }"""
        )
    )
    a = assign(module)
    assert not place(a, "w1", (1,)).overlaps(place(a, "w2", (1,)))


def test_a18_live_out_loop_over_a_parameter():
    module = prepare(
        msa.parse(
            "HloModule m, is_scheduled=true\n"
            + LOOP.format(n=1)
            + """
    ENTRY main {
      p = (s32[], f32[100]) parameter(0)
      ROOT w = (s32[], f32[100]) while(p), condition=cond1, body=body1
    }"""
        )
    )
    a = assign(module)
    root = a.module.entry.root
    for index in ((0,), (1,)):
        result = a.allocations[a.unique_slice(root, index).allocation]
        assert result.maybe_live_out
        assert not result.is_parameter


def test_a19_updates_in_nested_state_share():
    module = prepare(
        msa.parse("""
    HloModule m, is_scheduled=true
    body {
      s = (s32[], (f32[100], f32[10])) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      inner = (f32[100], f32[10]) get-tuple-element(s), index=1
      x = f32[100] get-tuple-element(inner), index=0
      u = f32[10] get-tuple-element(inner), index=1
      one = s32[] constant(1)
      ni = s32[] add(i, one)
      d1 = f32[100] dynamic-update-slice(x, u, i)
      d2 = f32[100] dynamic-update-slice(d1, u, ni)
      pair = (f32[100], f32[10]) tuple(d2, u)
      ROOT r = (s32[], (f32[100], f32[10])) tuple(ni, pair)
    }
    cond {
      cs = (s32[], (f32[100], f32[10])) parameter(0)
      ci = s32[] get-tuple-element(cs), index=0
      five = s32[] constant(5)
      ROOT lt = pred[] compare(ci, five), direction=LT
    }
    ENTRY main {
      i0 = s32[] parameter(0)
      x0 = f32[100] parameter(1)
      u0 = f32[10] parameter(2)
      p0 = (f32[100], f32[10]) tuple(x0, u0)
      t0 = (s32[], (f32[100], f32[10])) tuple(i0, p0)
      w = (s32[], (f32[100], f32[10])) while(t0), condition=cond, body=body
      wp = (f32[100], f32[10]) get-tuple-element(w), index=1
      ROOT out = f32[100] get-tuple-element(wp), index=0
    }""")
    )
    a = assign(module)
    assert same(a, "d1", "d2", "x")
    assert place(a, "d1") == place(a, "w", (1, 0))


def test_a20_value_used_after_a_loop_that_received_it():
    module = prepare(
        msa.parse(
            "HloModule m, is_scheduled=true\n"
            + LOOP.format(n=1)
            + """
    ENTRY main {
      i = s32[] parameter(0)
      p = f32[100] parameter(1)
      x = f32[100] exponential(p)
      t = (s32[], f32[100]) tuple(i, x)
      w = (s32[], f32[100]) while(t), condition=cond1, body=body1
      r = f32[100] get-tuple-element(w), index=1
      s = f32[100] reverse(r), dimensions={0}
      later = f32[100] negate(x)
      ROOT out = f32[100] add(s, later)
    }"""
        )
    )
    a = assign(module)
    # The loop overwrites its state, so it works on a copy; `x` lives on and its
    # later elementwise user may take its place.
    assert apart(a, "x", "bx1")
    assert same(a, "x", "later")


def test_a21_embedded_computations_are_thread_local():
    a = assign(f"""
    HloModule m, is_scheduled=true
    {SUM}
    ENTRY main {{
      p = f32[10,10] parameter(0)
      z = f32[] parameter(1)
      e = f32[10,10] exponential(p)
      ROOT r = f32[10] reduce(e, z), dimensions={{1}}, to_apply=sum
    }}""")
    assert all(home(a, n).is_thread_local for n in ("x", "y", "s"))
    assert apart(a, "x", "y", "s")
    assert apart(a, "e", "r")
    assert a.statistics().thread_local == 12


def test_a22_mapped_and_called():
    module = msa.parse(
        """
    f { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
    ENTRY main {
      p = f32[10] parameter(0)
      q = f32[] parameter(1)
      m = f32[10] map(p), dimensions={0}, to_apply=f
      c = f32[] call(q), to_apply=f
      ROOT t = (f32[10], f32[]) tuple(m, c)
    }""",
        verify=False,
    )
    with pytest.raises(HloError, match="conflicting allocation requirements"):
        allocation_classes(module)


def test_a23_tuple_storage_is_not_reused():
    a = assign("""
    HloModule m, is_scheduled=true
    ENTRY main {
      p = f32[4] parameter(0)
      n = f32[4] negate(p)
      t = (f32[4]) tuple(n)
      g = f32[4] get-tuple-element(t), index=0
      ROOT r = f32[4] reverse(g), dimensions={0}
    }""")
    # The table dies before `r` is made, and yet nothing else takes its bytes.
    assert apart(a, "t", "n", "r", "p")


def test_a24_presets():
    module = msa.parse(BASIC.replace("mul = f32[100]", "mul = f32[100]{0:S(1)}"))
    mul = next(x for x in module.entry.instructions if x.name == "mul")
    presets = PresetAssignments({1: 1024}, {Position(mul, ()): (512, 400)})
    a = assign(module, presets=presets)
    assert (place(a, "mul").offset, home(a, "mul").size) == (512, 1024)
    assert home(a, "mul").color == 1
    assert same(a, "add", "sub")


def test_a24_presets_in_a_loop():
    module = prepare(
        msa.parse(
            "HloModule m, is_scheduled=true\n"
            + LOOP.format(n=1)
            + """
    ENTRY main {
      i = s32[] parameter(0)
      p = f32[100] parameter(1)
      x = f32[100] exponential(p)
      t = (s32[], f32[100]) tuple(i, x)
      w = (s32[], f32[100]) while(t), condition=cond1, body=body1
      ROOT out = f32[100] get-tuple-element(w), index=1
    }"""
        )
    )
    x = next(x for x in module.entry.instructions if x.name == "x")
    presets = PresetAssignments({0: 600}, {Position(x, ()): (100, 400)})
    a = assign(module, presets=presets)
    for name in ("x", "bx1", "nx1"):
        assert place(a, name).offset == 100
        assert home(a, name).preset


def test_a25_view_colour():
    text = BASIC.replace("mul = f32[100]", "mul = f32[100]{0:S(7)}")
    a = assign(text, view_color=7)
    assert not a.all_slices(named(a, "mul"))
    b = assign(text)
    assert b.all_slices(named(b, "mul"))


def trace(text: str) -> list[TraceEvent]:
    """`A1 S2=1 F1`: allocate 1, let 2 share with 1, free 1."""
    kinds = {"A": EventKind.ALLOC, "S": EventKind.SHARE_WITH, "F": EventKind.FREE}
    events = []
    for word in text.split():
        number, _, canonical = word[1:].partition("=")
        events.append(TraceEvent(kinds[word[0]], int(number), int(canonical or -1)))
    return events


@pytest.mark.parametrize(
    ("events", "padded", "unpadded", "expected"),
    [
        ("A1 F1", {1: 10}, {1: 10}, (10, 10)),
        ("A1 F1", {1: 64}, {1: 36}, (64, 36)),
        ("A1 A2 F1 F2", {1: 64, 2: 20}, {1: 36, 2: 20}, (84, 56)),
    ],
    ids=["A-26-one", "A-26-padded", "A-26-two"],
)
def test_a26_peak_of_a_trace(events, padded, unpadded, expected):
    found = tuple(peak_memory(0, trace(events), sizes) for sizes in (padded, unpadded))
    assert found == expected


@pytest.mark.parametrize(
    "events",
    [
        "A1 S2=1 S3=2 F1 F2 F3",
        "A1 S2=1 F1 S3=2 F2 F3",
        "A1 S2=1 S3=1 F3 F1 F2",
    ],
)
def test_a27_share_chains_count_once(events):
    assert peak_memory(5, trace(events), dict.fromkeys((1, 2, 3), 10)) == 15


def test_a27_bytes_return_with_the_last_sharer():
    sizes = {1: 10, 2: 10, 3: 10}
    assert peak_memory(0, trace("A1 S2=1 F1 A3 F2 F3"), sizes) == 20
    assert peak_memory(0, trace("A1 S2=1 F1 F2 A3 F3"), sizes) == 10
    with pytest.raises(FileFormatError):
        peak_memory(0, trace("F1"), sizes)


@pytest.mark.parametrize("limit", [0, 10_000_000, 100])
def test_a28_fallback(limit):
    a = assign(
        DOTS,
        buffer_order="live_range_start",
        color_limit={0: limit},
        enable_fallback=True,
        fallback_margin_bytes=0,
    )
    assert a.temporary_bytes == 80


def test_a29_pages():
    a = assign(DOTS, page_bytes=48)
    pages = sorted(x.page for x in a.allocations if x.is_temporary)
    assert pages == [0, 1]
    with pytest.raises(OptionsError, match="page"):
        assign(DOTS, page_bytes=40)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("allocations", 0, "size"), -1),
        (("allocations", 0, "assigned", 0, 1), -4),
        (("allocations", 0, "assigned", 0, 2), -4),
        (("allocations", 0, "assigned", 0, 1), 400),
        (("allocations", 0, "index"), 7),
        (("allocations", 0, "assigned"), None),
        (("allocations",), 3),
    ],
)
def test_a30_broken_files(path, value):
    data = json.loads(json.dumps(assign(BASIC).to_dict()))
    assert load_allocations(data)[0].size == data["allocations"][0]["size"]
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(FileFormatError):
        load_allocations(data)


def test_round_trip():
    a = assign(DOTS)
    data = json.loads(json.dumps(a.to_dict()))
    for old, new in zip(a.allocations, load_allocations(data), strict=True):
        assert old.assigned == new.assigned
        assert (old.kind, old.size, old.peak) == (new.kind, new.size, new.peak)


# -- further behaviours of the assigner ----------------------------------------------


def test_11_conditional_branches_reuse_storage():
    module = prepare(
        msa.parse("""
    HloModule m, is_scheduled=true
    t { a = f32[100] parameter(0)
        r0 = f32[100] reverse(a), dimensions={0}
        ROOT r1 = f32[100] reverse(r0), dimensions={0} }
    f { b = f32[100] parameter(0)
        q0 = f32[100] reverse(b), dimensions={0}
        ROOT q1 = f32[100] reverse(q0), dimensions={0} }
    ENTRY main {
      p = pred[] parameter(0)
      x = f32[100] parameter(1)
      ROOT c = f32[100] conditional(p, x, x), true_computation=t, false_computation=f
    }""")
    )
    a = assign(module)
    assert place(a, "r1") == place(a, "q1") == place(a, "c")
    assert place(a, "r0") == place(a, "q0")
    assert a.temporary_bytes == 400


def test_11_custom_call_writes_into_its_operand():
    a = assign("""
    HloModule m, is_scheduled=true
    ENTRY main {
      p = f32[100] parameter(0)
      x = f32[100] negate(p)
      c = f32[100] custom-call(x), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}
      ROOT r = f32[100] reverse(c), dimensions={0}
    }""")
    assert same(a, "x", "c")


def test_11_parameter_is_read_only():
    a = assign("""
    HloModule m, is_scheduled=true
    ENTRY main {
      p = f32[100] parameter(0)
      n = f32[100] negate(p)
      r = f32[100] reverse(n), dimensions={0}
      ROOT o = f32[100] add(r, p)
    }""")
    assert apart(a, "p", "n", "r")


def test_11_peak_buffers():
    a = assign(DOTS)
    (block,) = [x for x in a.allocations if x.is_temporary]
    peak = {a.alias.dataflow.value(v).instruction.name for v in block.peak}
    assert peak == {"ab", "bc"}
    assert sum(block.assigned[v][1] for v in block.peak) == block.size


def test_11_isolation():
    # Base 10, padding 5: the first of two is moved to 80 + 10 + 5 = 95.
    a = BufferAssignment.run(
        msa.parse(DOTS),
        BufferAssignmentOptions(isolation=Isolation(base=10, padding=5, fuel=1)),
    )
    plain = assign(DOTS)
    ab = place(a, "ab")
    assert ab.offset == 95
    assert place(a, "bc").offset == plain.unique_slice(named(plain, "bc")).offset + 10
    assert home(a, "ab").size == 95 + 32


PRIVATE = """
HloModule m, is_scheduled=true
f {{ a = f32[{big}] parameter(0)
    x = f32[{big}]{{0:S(3)}} reverse(a), dimensions={{0}}
    ROOT y = f32[{big}] reverse(x), dimensions={{0}} }}
g {{ b = f32[10] parameter(0)
    u = f32[10]{{0:S(3)}} reverse(b), dimensions={{0}}
    ROOT v = f32[10] reverse(u), dimensions={{0}} }}
ENTRY main {{
  p = f32[{big}] parameter(0)
  q = f32[10] parameter(1)
  c = f32[{big}] call(p), to_apply=f
  d = f32[10] call(q), to_apply=g
  ROOT t = (f32[{big}], f32[10]) tuple(c, d)
}}"""


@pytest.mark.parametrize("strict", [False, True])
def test_private_stacks_overlay(strict):
    module = msa.parse(PRIVATE.format(big=100))
    f, g = module.computations[:2]
    a = BufferAssignment.run(
        module,
        BufferAssignmentOptions(private_stacks={3: (f, g)}, strict_source=strict),
    )
    x, u = place(a, "x"), place(a, "u")
    assert x.allocation == u.allocation
    assert (x.offset, u.offset) == (0, 0)
    assert home(a, "x").size == (40 if strict else 400)
    if strict:
        with pytest.raises(PlanError, match="outside"):
            a.verify()
    else:
        a.verify()


@pytest.mark.parametrize("order", ["topological", "live_range_start", "biggest_first"])
def test_buffer_orders_are_valid(order):
    assign(BASIC, buffer_order=order)
    with pytest.raises(OptionsError, match="buffer_order"):
        BufferAssignmentOptions(buffer_order="random")


def test_verify_notices_moved_offsets():
    a = assign(DOTS)
    value = a.alias.dataflow.values_at(named(a, "bc"), ())[0]
    other = place(a, "ab")
    a.allocation_of(value).assigned[value.id] = (other.offset, 48)
    with pytest.raises(PlanError, match="both needed"):
        a.verify()


def test_queries():
    a = assign(BASIC)
    p1, p2, mul, add = (named(a, n) for n in ("p1", "p2", "mul", "add"))
    assert a.shares_slice(Position(mul, ()), Position(add, ()))
    assert not a.shares_slice(Position(p1, ()), Position(p2, ()))
    assert a.disjoint_slices(p1, p2)
    assert not a.disjoint_slices(mul, add)
    stats = a.statistics()
    assert (stats.parameters, stats.outputs, stats.total) == (804, 400, 1204)


ASYNC = """
HloModule m, is_scheduled=true
wrapped {
  q = f32[4096] parameter(0)
  n1 = f32[4096] reverse(q), dimensions={0}
  n2 = f32[4096] reverse(n1), dimensions={0}
  ROOT n3 = f32[4096] reverse(n2), dimensions={0}
}
ENTRY main {
  a = f32[4096] parameter(0)
  b = f32[4096] parameter(1)
  first = f32[4096] reverse(b), dimensions={0}
  start = ((f32[4096]), f32[4096], u32[]) async-start(first), calls=wrapped
  second = f32[4096] reverse(a), dimensions={0}
  done = f32[4096] async-done(start)
  third = f32[4096] reverse(second), dimensions={0}
  ROOT out = f32[4096] add(done, third)
}"""


def test_11_async_values_live_until_the_operation_is_done():
    a = assign(ASYNC)
    # All values of the wrapped computation are in flight while `second` is made.
    assert apart(a, "first", "n1", "n2", "n3", "second")


def test_11_tuple_parameter_as_output_keeps_its_slices():
    module = prepare(
        msa.parse("""
    HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {0}, may-alias), {1}: (0, {1}, may-alias) }
    ENTRY main { ROOT p = (f32[4], f32[8]) parameter(0) }""")
    )
    a = assign(module)
    parameter = module.entry.parameters[0]
    root = module.entry.root
    for index in ((0,), (1,)):
        assert a.unique_slice(parameter, index) == a.unique_slice(root, index)
    assert a.temporary_bytes == 0


def test_11_sort_writes_keys_and_values_in_place():
    a = assign("""
    HloModule m, is_scheduled=true
    less {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = s32[] parameter(2)
      d = s32[] parameter(3)
      ROOT l = pred[] compare(a, b), direction=LT
    }
    ENTRY main {
      p = f32[100] parameter(0)
      q = s32[100] parameter(1)
      keys = f32[100] negate(p)
      values = s32[100] negate(q)
      s = (f32[100], s32[100]) sort(keys, values), dimensions={0}, to_apply=less
      k = f32[100] get-tuple-element(s), index=0
      v = s32[100] get-tuple-element(s), index=1
      ROOT out = f32[3] custom-call(k, v), custom_call_target="f"
    }""")
    assert same(a, "keys", "k")
    assert same(a, "values", "v")
    assert apart(a, "k", "v", "out")
    assert a.temporary_bytes == 816  # two arrays and the table of the pair


def test_11_fused_update_in_a_loop_shares_its_state():
    module = prepare(
        msa.parse("""
    HloModule m, is_scheduled=true
    fused {
      fp = f32[100] parameter(0)
      fi = s32[] parameter(1)
      fu = f32[1] dynamic-slice(fp, fi), dynamic_slice_sizes={1}
      fn = f32[1] negate(fu)
      ROOT fd = f32[100] dynamic-update-slice(fp, fn, fi)
    }
    body {
      bs = (s32[], f32[100]) parameter(0)
      bi = s32[] get-tuple-element(bs), index=0
      bx = f32[100] get-tuple-element(bs), index=1
      one = s32[] constant(1)
      nx = f32[100] fusion(bx, bi), kind=kLoop, calls=fused
      ni = s32[] add(bi, one)
      ROOT br = (s32[], f32[100]) tuple(ni, nx)
    }
    cond {
      cs = (s32[], f32[100]) parameter(0)
      ci = s32[] get-tuple-element(cs), index=0
      five = s32[] constant(5)
      ROOT lt = pred[] compare(ci, five), direction=LT
    }
    ENTRY main {
      i = s32[] parameter(0)
      p = f32[100] parameter(1)
      x = f32[100] exponential(p)
      t = (s32[], f32[100]) tuple(i, x)
      w = (s32[], f32[100]) while(t), condition=cond, body=body
      ROOT out = f32[100] get-tuple-element(w), index=1
    }""")
    )
    a = assign(module)
    assert same(a, "x", "bx", "nx", "out")
    assert a.statistics().outputs == 400


@pytest.mark.parametrize("hash_seed", ["0", "1", "7"])
def test_results_do_not_depend_on_hash_seeds(hash_seed):
    program = (
        "import json, msa;"
        "from msa.analysis.buffer_assignment import *;"
        f"m = msa.parse({DOTS!r});"
        "a = BufferAssignment.run(m, BufferAssignmentOptions(sharing='tight'));"
        "print(json.dumps(a.to_dict()))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(output) == json.loads(
        json.dumps(assign(DOTS, sharing="tight").to_dict())
    )


@pytest.mark.parametrize("factor", [3, 64])
def test_scaled_sizes_scale_offsets(factor):
    plain = assign(DOTS)
    scaled = assign(DOTS, size=lambda v: factor * v.byte_size(), alignment=factor)
    for name in ("ab", "bc", "out"):
        one, two = place(plain, name), place(scaled, name)
        assert (one.offset * factor, one.size * factor) == (two.offset, two.size)
