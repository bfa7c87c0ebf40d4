"""Colours of GPU buffers: rows of group H of the outcomes."""

from __future__ import annotations

import pytest

import msa
from msa.analysis import AliasAnalysis
from msa.errors import OptionsError
from msa.passes.binding import (
    BindingError,
    GpuColoring,
    SymmetricFilter,
    annotation_wishes,
    assign_colors,
    can_use_allocation,
    compose,
    layout_wishes,
    parse_memory_spaces,
)


def colors(text: str, options: GpuColoring | None = None) -> dict[str, int]:
    """Colours by defining position."""
    module = msa.parse(text)
    alias = AliasAnalysis.run(module)
    found = assign_colors(alias, (options or GpuColoring()).wishes)
    values = alias.dataflow.values
    assert set(found) == {v.id for v in values}, "every value has a colour"
    return {str(v.position): found[v.id] for v in values}


def test_parameter_H1_MB4() -> None:
    assert colors("ENTRY e { ROOT p = f32[4] parameter(0) }") == {"p{}": 0}


REDUCE = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(x), replica_groups={}, to_apply=add
}"""


@pytest.mark.parametrize(
    ("options", "color"),
    [
        (GpuColoring(), 0),
        (GpuColoring(user_buffers=True), 1),
        (GpuColoring(filters=(SymmetricFilter(),)), 1),
        (GpuColoring(user_buffers=True, filters=(SymmetricFilter(),)), 1),
    ],
    ids=["off", "user-buffers", "symmetric", "both"],
)
def test_all_reduce_H2_MB5(options: GpuColoring, color: int) -> None:
    found = colors(REDUCE, options)
    assert found == {"a{}": 0, "b{}": 0, "s{}": 0, "x{}": color, "r{}": color}


def reduces(*shapes: str) -> str:
    adds = "".join(
        f"""
add{k} {{ a{k} = {s.split("[")[0]}[] parameter(0)
  b{k} = {s.split("[")[0]}[] parameter(1)
  ROOT t{k} = {s.split("[")[0]}[] add(a{k}, b{k}) }}"""
        for k, s in enumerate(shapes)
    )
    body = "".join(
        f"  x{k} = {s} parameter({k})\n"
        f"  r{k} = {s} all-reduce(x{k}), replica_groups={{}}, to_apply=add{k}\n"
        for k, s in enumerate(shapes)
    )
    parts = ", ".join(f"r{k}" for k in range(len(shapes)))
    return (
        f"{adds}\nENTRY e {{\n{body}  ROOT t = ({', '.join(shapes)}) tuple({parts})\n}}"
    )


def test_type_and_size_H3_MB7() -> None:
    options = GpuColoring(filters=(SymmetricFilter("all-reduce", "f32", 4096),))
    found = colors(reduces("f32[1024]", "s32[1024]", "f32[2048]"), options)
    assert [found[f"r{k}{{}}"] for k in range(3)] == [1, 0, 0]


def test_all_kinds_H4() -> None:
    options = GpuColoring(filters=(SymmetricFilter("all", "f32", 4096),))
    text = reduces("f32[1024]", "f32[2048]").replace(
        "  ROOT t = (f32[1024], f32[2048]) tuple(r0, r1)",
        """  y = f32[512] parameter(2)
  g = f32[1024] all-gather(y), dimensions={0}, replica_groups={{0,1}}
  ROOT t = (f32[1024], f32[2048], f32[1024]) tuple(r0, r1, g)""",
    )
    found = colors(text, options)
    assert [found[f"{n}{{}}"] for n in ("r0", "g", "r1")] == [1, 1, 0]


def test_one_filter_per_kind_H5() -> None:
    filters = (
        SymmetricFilter("all-reduce", "f32"),
        SymmetricFilter("all-gather", "s32"),
    )
    text = reduces("f32[8]").replace(
        "  ROOT t = (f32[8]) tuple(r0)",
        """  y = s32[4] parameter(1)
  g = s32[8] all-gather(y), dimensions={0}, replica_groups={{0,1}}
  ROOT t = (f32[8], s32[8]) tuple(r0, g)""",
    )
    found = colors(text, GpuColoring(filters=filters))
    assert (found["r0{}"], found["g{}"]) == (1, 1)


def test_overlapping_filters_H6() -> None:
    filters = tuple(SymmetricFilter("all-reduce", "f32", n) for n in (4096, 8192))
    found = colors(reduces("f32[1024]", "f32[2048]"), GpuColoring(filters=filters))
    assert (found["r0{}"], found["r1{}"]) == (1, 1)


PAIR = "(f32[8], f32[8])"


def call(shape: str, attributes: str = "") -> str:
    return f"""ENTRY e {{
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT c = {shape} custom-call(x, y), custom_call_target="k"{attributes}
}}"""


def test_multicast_kernel_H7() -> None:
    found = colors(call(PAIR), GpuColoring(multimem_targets=frozenset({"k"})))
    assert [found[f"c{i}"] for i in ("{}", "{0}", "{1}")] == [0, 1, 1]


def asking(**wanted: str) -> str:
    pairs = ",".join(f'{k}_memory_spaces="{v}"' for k, v in wanted.items())
    return f", frontend_attributes={{{pairs}}}"


def test_operands_attribute_H8() -> None:
    found = colors(call("f32[8]", asking(operands="{0:1}")))
    assert (found["x{}"], found["y{}"]) == (1, 0)


def test_results_attribute_H9() -> None:
    assert colors(call("f32[8]", asking(results="{0:1}")))["c{}"] == 1
    found = colors(call(PAIR, asking(results="{0:1,1:1}")))
    assert [found[f"c{i}"] for i in ("{}", "{0}", "{1}")] == [0, 1, 1]


def test_layout_H10() -> None:
    assert colors(call("f32[8]{0:S(1)}"))["c{}"] == 1
    assert colors(call("f32[8]{0}"))["c{}"] == 0


@pytest.mark.parametrize(
    ("text", "spaces"),
    [
        ("{0:1}", {0: 1}),
        ("{0:1,1:0,7:2}", {0: 1, 1: 0, 7: 2}),
        ("{}", {}),
        (" { 0 : 1 , 2:1 } ", {0: 1, 2: 1}),
    ],
)
def test_attribute_text_H11_MB6(text: str, spaces: dict[int, int]) -> None:
    assert parse_memory_spaces(text) == spaces


@pytest.mark.parametrize("text", ["0:1", "{0}", "{a:b}", "{0:9}", "{0:1:2}", "{", ""])
def test_unreadable_attribute_H11_MB6(text: str) -> None:
    with pytest.raises(BindingError):
        parse_memory_spaces(text)


def test_contradiction_names_both_H12_MB4() -> None:
    text = REDUCE.replace("x = f32[8] parameter", "x = f32[8]{0:S(5)} parameter")
    with pytest.raises(BindingError) as caught:
        colors(text, GpuColoring(user_buffers=True))
    assert set(caught.value.colors) == {1, 5}
    assert "in memory space 5 by x (layout)" in str(caught.value)
    assert "in 1 by r (collective)" in str(caught.value)


def test_storage_shared_in_place_H13() -> None:
    text = REDUCE.replace(
        "  ROOT r = f32[8] all-reduce(x)",
        """  u = f32[1] parameter(1)
  i = s32[] parameter(2)
  c = f32[8] copy(x)
  d = f32[8] dynamic-update-slice(c, u, i)
  ROOT r = f32[8] all-reduce(d)""",
    )
    found = colors(text, GpuColoring(user_buffers=True))
    assert found["c{}"] == found["d{}"] == 1
    assert found["x{}"] == 0


def test_reuse_goes_one_way_H14_MB9() -> None:
    assert can_use_allocation(0, 1)
    assert not can_use_allocation(1, 0)
    assert can_use_allocation(1, 0, {1: frozenset({0})})


def test_first_rule_wins_on_request_MB4() -> None:
    text = call("f32[8]{0:S(2)}", asking(results="{0:1}"))
    alias = AliasAnalysis.run(msa.parse(text))
    with pytest.raises(BindingError):
        assign_colors(alias, compose(layout_wishes, annotation_wishes))
    first = compose(layout_wishes, annotation_wishes, on_conflict="first")
    assert assign_colors(alias, first)[alias.dataflow.values[-1].id] == 2


def test_filters_are_checked() -> None:
    with pytest.raises(OptionsError):
        SymmetricFilter("all-gossip")
    with pytest.raises(OptionsError):
        SymmetricFilter("all", "f31")
