"""Alias analysis: which values share storage, row by row."""

from __future__ import annotations

import pytest

import msa
from analysis import flow_modules as modules
from analysis.test_in_place import CHAINED_DUS, DUS_FUSION, MULTI_OUTPUT
from msa.analysis import AliasAnalysis
from msa.errors import HloError


def run(text: str) -> AliasAnalysis:
    return AliasAnalysis.run(msa.parse(text, verify=False))


def buffers(alias: AliasAnalysis) -> set[frozenset[str]]:
    return {frozenset(str(v.position) for v in b.values) for b in alias.buffers}


def positions(alias: AliasAnalysis, position: str) -> set[str]:
    """Positions of the buffer of the value defined there."""
    value = next(v for v in alias.dataflow.values if str(v.position) == position)
    return {str(p) for p in alias.buffer_of(value).positions}


ALIASED = """
HloModule m, input_output_alias={{ {{0}}: (0, {{{a}}}), {{1}}: (0, {{{b}}}) }}
ENTRY main {{
  param = (f32[4], f32[4]) parameter(0)
  gte0 = f32[4] get-tuple-element(param), index=0
  gte1 = f32[4] get-tuple-element(param), index=1
  negate0 = f32[4] negate(gte0)
  negate1 = f32[4] negate(gte1)
  ROOT tuple = (f32[4], f32[4]) tuple({roots})
}}"""

ALIASED_WHILE = """
HloModule m, input_output_alias={ {0}: (0, {0}), {1}: (0, {1}) }
body {
  bp = (f32[], f32[]) parameter(0)
  bg0 = f32[] get-tuple-element(bp), index=0
  bg1 = f32[] get-tuple-element(bp), index=1
  add = f32[] add(bg0, bg1)
  ROOT br = (f32[], f32[]) tuple(bg0, add)
}
cond { cp = (f32[], f32[]) parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main {
  param = (f32[], f32[]) parameter(0)
  while = (f32[], f32[]) while(param), condition=cond, body=body
  w0 = f32[] get-tuple-element(while), index=0
  w1 = f32[] get-tuple-element(while), index=1
  negate1 = f32[] negate(w0)
  negate2 = f32[] negate(w1)
  ROOT tuple = (f32[], f32[]) tuple(negate1, negate2)
}"""

CALLED_TWICE = """
callee {
  x0 = f32[] parameter(0)
  x1 = f32[] parameter(1)
  ROOT add = f32[] add(x0, x1)
}
ENTRY main {
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  call1 = f32[] call(c1, c2), to_apply=callee
  ROOT call2 = f32[] call(call1, c2), to_apply=callee
}"""

SWIZZLE3 = """
body {
  bp = (f32[], f32[], f32[]) parameter(0)
  b0 = f32[] get-tuple-element(bp), index=0
  b1 = f32[] get-tuple-element(bp), index=1
  b2 = f32[] get-tuple-element(bp), index=2
  ROOT br = (f32[], f32[], f32[]) tuple(b1, b2, b0)
}
cond { cp = (f32[], f32[], f32[]) parameter(0)  ROOT f = pred[] constant(false) }
ENTRY main {
  c1 = f32[] constant(1)
  c2 = f32[] constant(2)
  c3 = f32[] constant(3)
  init = (f32[], f32[], f32[]) tuple(c1, c2, c3)
  ROOT while = (f32[], f32[], f32[]) while(init), condition=cond, body=body
}"""

LATE_TWO = """
wrapped {
  w0 = f32[8] parameter(0)
  w1 = f32[8] parameter(1)
  n0 = f32[8] negate(w0)
  n1 = f32[8] negate(w1)
  ROOT op = (f32[8], f32[8]) tuple(n0, n1)
}
ENTRY main {
  p0 = f32[8] parameter(0)
  p1 = f32[8] parameter(1)
  start = ((f32[8], ()), (f32[8], f32[8]), s32[]) async-start(p0), calls=wrapped, output_to_operand_aliasing={{1,0}: (0, {})}
  update = ((f32[8], f32[8]), (f32[8], f32[8]), s32[]) async-update(start, p1)
  ROOT done = (f32[8], f32[8]) async-done(update)
}"""


def test_separate_values_have_separate_buffers() -> None:
    """5-separate"""
    assert len(run(modules.ADD).buffers) == 3


def test_a_tuple_holds_one_buffer_twice() -> None:
    """5-tuple"""
    alias = run(
        "ENTRY main { p0 = f32[] parameter(0)  p1 = f32[] parameter(1)\n"
        "  ROOT t = (f32[], f32[], f32[]) tuple(p0, p1, p0) }"
    )
    assert positions(alias, "p0{}") == {"p0{}", "t{0}", "t{2}"}
    root = alias.module.entry.root
    assert not alias.is_distinct(root)
    assert not alias.is_ambiguous(root)


def test_outputs_share_with_their_parameters() -> None:
    """5-io-aliases"""
    alias = run(ALIASED.format(a=0, b=1, roots="negate0, negate1"))
    assert positions(alias, "negate0{}") == {
        "param{0}",
        "gte0{}",
        "negate0{}",
        "tuple{0}",
    }
    assert positions(alias, "negate1{}") == {
        "param{1}",
        "gte1{}",
        "negate1{}",
        "tuple{1}",
    }


def test_crossed_aliases_share_everything() -> None:
    """5-crossed-aliases"""
    alias = run(ALIASED.format(a=1, b=0, roots="gte0, gte1"))
    assert positions(alias, "param{0}") == {
        "param{0}",
        "param{1}",
        "gte0{}",
        "gte1{}",
        "tuple{0}",
        "tuple{1}",
    }


def test_one_output_aliases_once() -> None:
    """5-output-aliased-twice"""
    text = ALIASED.format(a=0, b=1, roots="gte0, gte1").replace("{1}: (0", "{0}: (0")
    with pytest.raises(HloError):
        AliasAnalysis.run(msa.parse(text))


def test_aliases_reach_through_loops() -> None:
    """5-io-alias-while"""
    expected = {"param{1}", "while{1}", "bp{1}", "cp{1}", "add{}", "negate2{}"}
    assert frozenset(expected) in buffers(run(ALIASED_WHILE))


def test_a_computation_called_twice_is_ambiguous() -> None:
    """5-call-twice"""
    alias = run(CALLED_TWICE)
    callee = alias.module.computation("callee")
    found = alias.buffers_at(callee.parameters[0])
    names = {str(v.position) for b in found for v in b.values}
    assert names == {"c1{}", "add{}"}
    assert alias.is_ambiguous(callee.parameters[0])
    with pytest.raises(HloError, match="2 buffers"):
        alias.unique_buffer_at(callee.parameters[0])


def test_calls_pass_buffers_through() -> None:
    """5-call"""
    alias = run(modules.CALL)
    assert positions(alias, "c1{}") == {"c1{}", "a{}"}
    assert positions(alias, "add{}") == {"add{}", "call{}"}


def test_sequential_loops_share_one_buffer_per_element() -> None:
    """5-sequential-whiles"""
    alias = run(modules.SEQUENTIAL_WHILES)
    expected = {f"{x}{i}{{1}}" for i in range(3) for x in ("b", "q", "while")}
    expected |= {"c2{}", *(f"add{i}{{}}" for i in range(3))}
    assert frozenset(expected) in buffers(alias)


def test_nested_loops_share_with_all_levels() -> None:
    """5-nested-whiles"""
    alias = run(modules.NESTED_WHILE)
    shared = next(b for b in buffers(alias) if "c2{}" in b)
    assert {"entry_while{1}", "nested_while{1}", "ip{1}", "op{1}", "add{}"} <= shared


def test_swizzling_joins_all_elements() -> None:
    """5-swizzling: the elements, the tables and the predicate are three buffers."""
    alias = run(SWIZZLE3)
    assert len(alias.buffers) == 3
    elements = {f"{x}{{{i}}}" for x in ("while", "bp", "cp") for i in range(3)}
    assert frozenset({"c1{}", "c2{}", "c3{}", *elements}) in buffers(alias)


def test_a_bitcast_is_no_buffer() -> None:
    """5-bitcast"""
    assert len(run(modules.BITCAST).buffers) == 1


IN_PLACE = [
    ("5-dus", DUS_FUSION, "a{}", {"a{}", "f{}"}),
    ("5-dus-multi-output", MULTI_OUTPUT, "a{}", {"a{}", "f{1}"}),
    ("5-chained-dus", CHAINED_DUS, "a{}", {"a{}"}),
    (
        "5-async-late-binding-0",
        LATE_TWO,
        "p0{}",
        {"p0{}", "w0{}", "start{0,0}", "update{0,0}", "n0{}", "op{0}"}
        | {"start{1,0}", "update{1,0}", "done{0}"},
    ),
    ("5-async-late-binding-1", LATE_TWO, "p1{}", {"p1{}", "w1{}", "update{0,1}"}),
]


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [row[1:] for row in IN_PLACE],
    ids=[row[0] for row in IN_PLACE],
)
def test_in_place(text, position, expected) -> None:
    assert positions(run(text), position) == expected


def test_live_out_buffers() -> None:
    alias = run(modules.ADD)
    assert [str(b.values[0].position) for b in alias.live_out_buffers] == ["add{}"]


def test_an_alias_of_a_missing_parameter_is_refused() -> None:
    module = msa.parse(ALIASED.format(a=0, b=1, roots="gte0, gte1"))
    from msa.hlo import Alias

    module.aliases = (Alias((0,), 7, ()),)
    with pytest.raises(HloError, match="parameter 7"):
        AliasAnalysis.run(module)
