"""Dataflow analysis: expected values, positions and uses, row by row."""

from __future__ import annotations

import pytest

import msa
from analysis import flow_modules as modules
from msa.analysis import DataflowAnalysis
from msa.errors import HloError


def run(text: str, **options) -> DataflowAnalysis:
    return DataflowAnalysis.run(msa.parse(text, verify=False), **options)


def value(flow: DataflowAnalysis, position: str):
    """The value defined at `name{index}`."""
    return next(v for v in flow.values if str(v.position) == position)


def at(flow: DataflowAnalysis, position: str) -> list[str]:
    """Defining positions of the values at `name{index}`."""
    name, _, index = position.partition("{")
    found = next(
        x for c in flow.module.computations for x in c.instructions if x.name == name
    )
    numbers = tuple(int(i) for i in index.rstrip("}").split(",") if i)
    return [str(v.position) for v in flow.values_at(found, numbers)]


def uses(flow: DataflowAnalysis, position: str) -> list[str]:
    return [str(u) for u in value(flow, position).uses]


def positions(flow: DataflowAnalysis, position: str) -> list[str]:
    return [str(p) for p in value(flow, position).positions]


def phis(flow: DataflowAnalysis) -> set[str]:
    return {str(v.position) for v in flow.values if v.is_phi}


def live_out(flow: DataflowAnalysis) -> set[str]:
    return {str(v.position) for v in flow.values if v.live_out}


# id, module, options, number of values, phis, values at positions
COUNTS = [
    ("3-binary", modules.ADD, {}, 3, (), {}),
    ("3-tuple", modules.TUPLE, {}, 4, (), {}),
    ("3-nested-tuple", modules.NESTED_TUPLE, {}, 4, (), {}),
    ("3-call", modules.CALL, {}, 3, (), {"call{}": ["add{}"]}),
    ("3-nested-calls", modules.NESTED_CALLS, {}, 3, (), {"ip0{}": ["c2{}"]}),
    (
        "3-select",
        modules.SELECT,
        {},
        4,
        (),
        {"select{}": ["select{}"]},
    ),
    ("3-bitcast", modules.BITCAST, {}, 1, (), {"b{}": ["c{}"]}),
    (
        "3-bitcast-defines",
        modules.BITCAST,
        {"bitcast_defines_value": True},
        2,
        (),
        {"b{}": ["b{}"]},
    ),
    (
        "3-tuple-copy",
        modules.TUPLE_COPY,
        {},
        4,
        (),
        {"copy{}": ["copy{}"], "copy{0}": ["p0{}"], "copy{1}": ["p1{}"]},
    ),
    (
        "3-opt-barrier",
        modules.BARRIER,
        {},
        3,
        (),
        {"b{}": ["t{}"], "b{0}": ["p0{}"], "b{1}": ["p1{}"]},
    ),
    (
        "3-copy-start",
        modules.COPY_START,
        {},
        4,
        (),
        {
            "start{}": ["start{}"],
            "start{0}": ["start{0}"],
            "start{1}": ["c{}"],
            "start{2}": ["start{2}"],
            "done{}": ["start{0}"],
        },
    ),
    (
        "3-async-custom-call",
        modules.CUSTOM_CALL_ASYNC,
        {},
        7,
        (),
        {
            "start{}": ["start{}"],
            "start{0}": ["start{0}"],
            "start{0,0}": ["p{}"],
            "start{1}": ["op{}"],
            "start{2}": ["start{2}"],
            "update{}": ["update{}"],
            "update{0}": ["update{0}"],
            "update{0,0}": ["p{}"],
            "update{1}": ["op{}"],
            "update{2}": ["start{2}"],
            "done{}": ["op{}"],
            "wp{}": ["p{}"],
        },
    ),
    (
        "3-async-late-operand",
        modules.LATE_OPERAND,
        {},
        9,
        (),
        {
            "w0{}": ["p0{}"],
            "w1{}": ["p1{}"],
            "update{0,1}": ["p1{}"],
            "start{0,1}": ["start{0,1}"],
        },
    ),
    (
        "3-async-late-output",
        modules.LATE_OUTPUT,
        {},
        8,
        (),
        {"update{1}": ["op{}"], "done{}": ["op{}"], "start{1}": ["start{1}"]},
    ),
    (
        "3-async-excluded-thread",
        modules.SIDE_THREAD,
        {"execution_threads": ["main"]},
        7,
        (),
        {
            "start{1}": ["start{1}"],
            "update{1}": ["start{1}"],
            "done{}": ["start{1}"],
        },
    ),
    (
        "3-async-conditional",
        modules.ASYNC_CONDITIONAL,
        {},
        8,
        ("cond{}",),
        {"done{}": ["cond{}"], "start{1}": ["cond{}"]},
    ),
    (
        "3-async-tuple-result",
        modules.ASYNC_TUPLE,
        {},
        12,
        (),
        {
            "start{1}": ["start{1}"],
            "start{1,0}": ["op{0}"],
            "update{1}": ["update{1}"],
            "done{}": ["done{}"],
            "done{1}": ["op{1}"],
        },
    ),
    ("3-send", modules.SEND, {}, 6, (), {"send{0}": ["p{}"]}),
    (
        "3-recv",
        modules.RECV,
        {},
        7,
        (),
        {"done{0}": ["recv{0}"], "data{}": ["recv{0}"]},
    ),
    ("3-set-dimension-size", modules.SET_SIZE, {}, 3, (), {"s{}": ["s{}"]}),
    (
        "3-identity-conditional",
        modules.IDENTITIES,
        {},
        4,
        ("cond{}",),
        {"yp{}": ["c1{}"], "np{}": ["c2{}"], "cond{}": ["cond{}"]},
    ),
    (
        "3-identity-conditional-sets",
        modules.IDENTITIES,
        {"ssa_form": False},
        3,
        (),
        {"cond{}": ["c1{}", "c2{}"]},
    ),
    (
        "3-tuple-conditional",
        modules.TUPLE_CONDITIONAL,
        {},
        7,
        ("cond{}",),
        {"yp{}": ["t{}"], "np{1}": ["c2{}"]},
    ),
    (
        "3-tuple-conditional-sets",
        modules.TUPLE_CONDITIONAL,
        {"ssa_form": False},
        6,
        (),
        {},
    ),
    (
        "3-nested-conditionals",
        modules.NESTED_CONDITIONALS,
        {},
        11,
        ("cond{}", "inner_cond{}"),
        {"a1{}": ["x1{}"], "a3{}": ["x3{}"], "cond{}": ["cond{}"]},
    ),
    (
        "3-nested-conditionals-sets",
        modules.NESTED_CONDITIONALS,
        {"ssa_form": False},
        9,
        (),
        {"cond{}": ["ceil{}", "floor{}", "negate{}"]},
    ),
    ("3-add-dependency", modules.ADD_DEPENDENCY, {}, 2, (), {"d{}": ["p{}"]}),
    ("3-all-reduce-one", modules.ALL_REDUCE, {}, 5, (), {"done{}": ["start{}"]}),
    (
        "3-all-reduce-two",
        modules.ALL_REDUCE_TWO,
        {},
        8,
        (),
        {"done{}": ["start{}"], "done{1}": ["start{1}"]},
    ),
    (
        "3-permute-two",
        modules.PERMUTE_TWO,
        {},
        7,
        (),
        {
            "start{0,0}": ["p0{}"],
            "start{0,1}": ["p1{}"],
            "start{1}": ["start{1}"],
            "start{1,1}": ["start{1,1}"],
            "done{}": ["done{}"],
            "done{0}": ["start{1,0}"],
        },
    ),
    (
        "3-all-gather-two",
        modules.GATHER_TWO,
        {},
        8,
        (),
        {
            "start{0}": ["start{0}"],
            "start{0,1}": ["p1{}"],
            "done{}": ["done{}"],
            "done{1}": ["start{1,1}"],
        },
    ),
    (
        "3-while",
        modules.WHILE,
        {},
        12,
        ("bp{}", "cp{}", "while{}", "bp{1}", "cp{1}", "while{1}"),
        {
            "while{0}": ["c1{}"],
            "bp{0}": ["c1{}"],
            "cp{0}": ["c1{}"],
            "bp{1}": ["bp{1}"],
        },
    ),
    (
        "3-while-sets",
        modules.WHILE,
        {"ssa_form": False},
        6,
        (),
        {
            "while{0}": ["c1{}"],
            "while{1}": ["add{}", "c2{}"],
            "bp{1}": ["add{}", "c2{}"],
        },
    ),
    (
        "3-sequential-whiles",
        modules.SEQUENTIAL_WHILES,
        {},
        30,
        tuple(
            f"{x}{i}{index}"
            for i in range(3)
            for x in ("b", "q", "while")
            for index in ("{}", "{1}")
        ),
        {f"while{i}{{0}}": ["c1{}"] for i in range(3)},
    ),
    (
        "3-nested-while",
        modules.NESTED_WHILE,
        {},
        None,
        None,
        {
            "ip{0}": ["negate{}"],
            "nested_while{0}": ["negate{}"],
            "nested_while{1}": ["nested_while{1}"],
            "entry_while{0}": ["entry_while{0}"],
            "entry_while{1}": ["entry_while{1}"],
        },
    ),
    (
        "3-passing-nest",
        modules.PASSING_NEST,
        {},
        None,
        None,
        {f"{x}{{0}}": ["c{}"] for x in ("p1", "p2", "p3", "q3", "w0", "w1", "w2")},
    ),
    (
        "3-swizzling",
        modules.swizzling("c2"),
        {},
        14,
        tuple(f"{x}{{{i}}}" for i in ("", 0, 1) for x in ("while", "bp", "cp")),
        {"while{0}": ["while{0}"]},
    ),
    (
        "3-swizzling-same",
        modules.swizzling("c1"),
        {},
        8,
        ("while{}", "bp{}", "cp{}"),
        {"while{0}": ["c1{}"], "while{1}": ["c1{}"], "bp{0}": ["c1{}"]},
    ),
    (
        "3-passing-while-called-twice",
        modules.PASSING_WHILE_CALLED_TWICE,
        {},
        None,
        ("w{}", "bp{}", "cp{}"),
        {"x{}": ["c1{}", "c2{}"]},
    ),
]


@pytest.mark.parametrize(
    ("text", "options", "count", "expected_phis", "places"),
    [row[1:] for row in COUNTS],
    ids=[row[0] for row in COUNTS],
)
def test_values(text, options, count, expected_phis, places) -> None:
    flow = run(text, **options)
    for place, values in places.items():
        assert sorted(at(flow, place)) == sorted(values), place
    if expected_phis is not None:
        assert phis(flow) == set(expected_phis)
    if count is not None:
        assert len(flow.values) == count


# id, module, defining position -> uses
USES = [
    ("3-binary", modules.ADD, {"c1{}": ["add:0{}"]}),
    (
        "3-tuple",
        modules.TUPLE,
        {"p0{}": ["add:0{}"], "tuple{}": ["gte0:0{}", "gte1:0{}"]},
    ),
    (
        "3-nested-tuple",
        modules.NESTED_TUPLE,
        {
            "c1{}": ["gte_out:0{0}"],
            "c2{}": [],
            "t{}": ["gte_out:0{}"],
            "n{}": ["gte_tuple:0{}"],
        },
    ),
    ("3-call", modules.CALL, {"c1{}": ["add:0{}", "call:0{}"]}),
    (
        "3-nested-calls",
        modules.NESTED_CALLS,
        {"c1{}": ["call:0{}", "nested:1{}", "add:1{}"]},
    ),
    (
        "3-while",
        modules.WHILE,
        {"c1{}": ["add:0{}", "body_root:0{}", "while:0{0}"]},
    ),
    (
        "3-identity-conditional",
        modules.IDENTITIES,
        {"c1{}": ["cond:1{}"], "c2{}": ["cond:2{}"]},
    ),
    (
        "3-all-reduce-one",
        modules.ALL_REDUCE,
        {"p0{}": ["start:0{}"], "start{}": ["done:0{}"]},
    ),
    ("3-permute-two", modules.PERMUTE_TWO, {"p0{}": ["start:0{}", "done:0{0,0}"]}),
    ("3-all-gather-two", modules.GATHER_TWO, {"p0{}": ["start:0{}", "done:0{0,0}"]}),
    ("3-copy-start", modules.COPY_START, {"c{}": ["start:0{}", "done:0{1}"]}),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in USES], ids=[row[0] for row in USES]
)
def test_uses(text, expected) -> None:
    flow = run(text)
    for position, listed in expected.items():
        assert sorted(uses(flow, position)) == sorted(listed), position


POSITIONS = [
    ("3-tuple", modules.TUPLE, "p0{}", ["p0{}", "tuple{0}", "gte0{}"]),
    (
        "3-nested-tuple",
        modules.NESTED_TUPLE,
        "c1{}",
        ["c1{}", "t{0}", "n{0,0}", "n{1,0}", "n{2}", "gte_tuple{0}", "gte_out{}"],
    ),
]


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [row[1:] for row in POSITIONS],
    ids=[row[0] for row in POSITIONS],
)
def test_positions(text, position, expected) -> None:
    assert positions(run(text), position) == expected


LIVE_OUT = [
    ("3-binary", modules.ADD, {"add{}"}),
    ("3-nested-tuple", modules.NESTED_TUPLE, {"c1{}"}),
    ("3-call", modules.CALL, {"add{}"}),
    ("3-while", modules.WHILE, {"c1{}", "while{}", "while{1}"}),
    (
        "3-swizzling",
        modules.swizzling("c2"),
        {"while{}", "while{0}", "while{1}"},
    ),
    ("3-select", modules.SELECT, {"select{}"}),
    (
        "3-nested-while",
        modules.NESTED_WHILE,
        {f"entry_while{i}" for i in ("{}", "{0}", "{1}")},
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [row[1:] for row in LIVE_OUT],
    ids=[row[0] for row in LIVE_OUT],
)
def test_live_out(text, expected) -> None:
    assert live_out(run(text)) == expected


def test_mismatched_async_contexts_are_skipped() -> None:
    flow = run(modules.MISMATCHED_CONTEXT)
    assert at(flow, "update{1}") == ["op{}"]
    assert at(flow, "done{}") == ["op{}"]


def test_a_computation_mapped_and_called_is_refused() -> None:
    with pytest.raises(HloError, match="parallel .* and sequential"):
        run(modules.MIXED_CONTEXTS)


def test_calls_left_out_with_mixed_callers_are_refused() -> None:
    run(modules.MIXED_CALLERS)
    with pytest.raises(HloError, match="calls cannot be left out"):
        run(modules.MIXED_CALLERS, propagate_through_calls=False)


def test_calls_left_out_define_their_results() -> None:
    flow = run(modules.CALL, propagate_through_calls=False)
    assert at(flow, "call{}") == ["call{}"]
    assert at(flow, "a{}") == ["a{}"]


def test_queries_that_name_no_node_are_refused() -> None:
    flow = run(modules.TUPLE)
    root = flow.module.entry.root
    with pytest.raises(HloError, match="no element"):
        flow.values_at(root, (3,))
    with pytest.raises(HloError, match="no value 99"):
        flow.value(99)
    ambiguous = run(modules.IDENTITIES, ssa_form=False)
    with pytest.raises(HloError, match="2 values"):
        ambiguous.unique_value_at(ambiguous.module.entry.root)
    assert ambiguous.is_ambiguous(ambiguous.module.entry.root)


def test_wide_loop_states_take_linear_time() -> None:
    width = 3000
    state = f"({', '.join(['f32[]'] * width)})"
    gtes = "\n".join(
        f"  g{i} = f32[] get-tuple-element(bp), index={i}" for i in range(width)
    )
    elements = ", ".join(f"g{i}" for i in range(width))
    text = f"""
body {{
  bp = {state} parameter(0)
{gtes}
  ROOT br = {state} tuple({elements})
}}
cond {{ cp = {state} parameter(0)  ROOT f = pred[] constant(false) }}
ENTRY main {{
  p = {state} parameter(0)
  ROOT w = {state} while(p), condition=cond, body=body
}}"""
    flow = run(text)
    # The elements, their table, the body's table, the constant, merged tables.
    assert len(flow.values) == width + 1 + 1 + 1 + 3
    assert at(flow, f"w{{{width - 1}}}") == [f"p{{{width - 1}}}"]
